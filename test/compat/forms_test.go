//go:build linux

package compat_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Since the golden answers were recorded, our own API writes some things in another form (ADR 0048). The recorded
// answers are compared in the present form:
//
//   - a host is an object of agent, cloud and ip under the key host, where the three keys stood flat, and has all
//     three keys;
//   - a time is RFC 3339 in UTC with three digits of milliseconds, or null, where it was a number or had other digits;
//   - hosted is called managed;
//   - an attempt that found nothing to do has the state noted, where it was failed.
//
//   - a process of a host that is offline has the state unknown, and its state under last_state (ADR 0046);
//   - the actions host and unhost are called manage and unmanage (ADR 0047), update is called register;
//   - a host that was removed from the fleet is not listed (ADR 0052).
//
// Nothing else of a recorded answer is left out: every value of it is compared. What answers have besides, since later
// versions, is listed in addedToProcess and in withoutAdded.

// addedToProcess are the keys of a process that recorded answers do not have.
var addedToProcess = []string{"kind", "mem_bytes", "restarts", "exit", "next_at", "last_run", "health", "health_message"}

// withoutAdded removes from a present answer what recorded ones do not have.
func withoutAdded(v any) {
	switch v := v.(type) {
	case map[string]any:
		if v["wanted"] != nil && v["stale"] != nil {
			for _, key := range addedToProcess {
				delete(v, key)
			}
		}
		if v["task_id"] != nil && v["attempts"] != nil {
			delete(v, "waiting") // the hosts that it waits for
			delete(v, "door")
		}
		withoutForgets(v)
		for _, e := range v {
			withoutAdded(e)
		}
	case []any:
		for _, e := range v {
			withoutAdded(e)
		}
	}
}

// formerAnswer is an answer of a BlueKing door as it was when the golden answers were recorded. Since then entries of V1 and
// of Job have errcode and errmsg, too, a module without a template has the number 0, where it was null, and the message
// about a host that is not in the fleet has other words.
func formerAnswer(answer []byte) []byte {
	answer = notInFleet.ReplaceAll(answer, []byte("no agent has ever reported from $1"))
	return noTemplate.ReplaceAll(oldNames.ReplaceAll(answer, nil), []byte(`"service_template_id":null$1`))
}

var (
	oldNames   = regexp.MustCompile(`,"errcode":-?[0-9]+,"errmsg":"(?:[^"\\]|\\.)*"`)
	notInFleet = regexp.MustCompile(`((?:agent|host) [0-9A-Za-z:._-]+) is not in the fleet: it never joined, or it has left`)
	noTemplate = regexp.MustCompile(`"service_template_id":0([,}])`)
)

// withoutForgets removes from an audit the rows that the first start of the present program adds at its end: it forgets
// the hosts that were removed from the fleet. The head is then the last row that was there before.
func withoutForgets(v map[string]any) {
	rows, ok := v["rows"].([]any)
	head, known := v["head"].(map[string]any)
	if !ok || !known {
		return
	}

	for len(rows) > 1 {
		last, _ := rows[len(rows)-1].(map[string]any)
		before, _ := rows[len(rows)-2].(map[string]any)
		if act, _ := last["act"].(string); !strings.HasPrefix(act, "forget:") || head["hash"] != last["hash"] {
			break
		}
		rows = rows[:len(rows)-1]
		head["hash"], head["seq"] = before["hash"], before["seq"]
	}
	v["rows"] = rows
}

// formerActions are the words of actions that have another name now.
var formerActions = map[any]string{"host": "manage", "unhost": "unmanage", "update": "register"}

// withoutRemoved leaves the hosts out that were removed from the fleet.
func withoutRemoved(v map[string]any) {
	hosts, ok := v["hosts"].([]any)
	if !ok {
		return
	}
	kept := []any{}
	for _, h := range hosts {
		if host, ok := h.(map[string]any); !ok || host["trust"] != "removed" {
			kept = append(kept, h)
		}
	}
	if gone := len(hosts) - len(kept); gone > 0 {
		v["hosts"], v["count"] = kept, json.Number(strconv.Itoa(len(kept)))
	}
}

// numberTimes are the keys of times that were Unix seconds.
var numberTimes = map[string]bool{"registered_at": true, "started_at": true, "reported_at": true, "last_start": true}

// renamed are the keys that have another name now.
var renamed = map[string]string{"hosted": "managed", "hosted_instances": "managed_instances"}

// presentSection converts one recorded answer: its question, its status and its document.
func presentSection(t *testing.T, section string) string {
	t.Helper()
	at := strings.Index(section, "\n{")
	if at < 0 {
		return section // not a document
	}

	d := json.NewDecoder(strings.NewReader(section[at:]))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("a recorded answer is not JSON: %v\n%s", err, section)
	}

	b, err := json.MarshalIndent(present(v), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	tail := ""
	if strings.HasSuffix(section, "\n") {
		tail = "\n"
	}
	return section[:at+1] + string(bytes.TrimRight(b, "\n")) + tail
}

// present converts a recorded value.
func present(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return presentObject(v)
	case []any:
		for i := range v {
			v[i] = present(v[i])
		}
	case string:
		if at, err := time.Parse(time.RFC3339Nano, v); err == nil {
			return presentTime(at)
		}
	}
	return v
}

func presentObject(v map[string]any) any {
	// The values, under their present names.
	out := make(map[string]any, len(v))
	for key, e := range v {
		if n, ok := e.(json.Number); ok && numberTimes[key] {
			seconds, err := n.Int64()
			if err != nil {
				return err.Error()
			}
			out[key] = presentTime(time.Unix(seconds, 0))
			continue
		}
		if name, ok := renamed[key]; ok {
			key = name
		}
		out[key] = present(e)
	}

	// The state of a process of which there is no news.
	if stale, ok := out["stale"].(bool); ok && stale && out["wanted"] != nil {
		if out["reported_at"] != nil {
			out["last_state"] = out["state"]
		}
		out["state"] = "unknown"
	}

	// Hosts that are not listed any more, and words of actions.
	withoutRemoved(out)
	if word, ok := formerActions[out["action"]]; ok && out["verdict"] != nil {
		out["action"] = word
	}

	// An attempt that found nothing to do.
	if out["verdict"] == "noted" {
		out["state"] = "noted"
	}

	// The host of a process, and that of an attempt.
	if _, process := out["namespace"]; process && out["agent"] != nil && out["cloud"] != nil {
		out["host"] = map[string]any{"agent": out["agent"], "cloud": out["cloud"], "ip": out["ip"]}
		delete(out, "agent")
		delete(out, "cloud")
		delete(out, "ip")
	}
	if host, ok := out["host"].(map[string]any); ok && out["action"] != nil {
		for _, key := range []string{"agent", "ip"} {
			if host[key] == nil {
				host[key] = ""
			}
		}
	}

	return out
}

// presentTime is null for a time that is not known.
func presentTime(at time.Time) any {
	if at.IsZero() || at.Unix() <= 0 {
		return nil
	}
	return at.UTC().Format("2006-01-02T15:04:05.000Z")
}

// TestPresentForms: the conversion changes the forms and keeps the values.
func TestPresentForms(t *testing.T) {
	then := `GET x
200
{
 "processes": [{"agent": "a1", "cloud": 3, "ip": "10.0.0.1", "namespace": "shop", "hosted": true,
  "registered_at": 1700000001, "started_at": 0, "pid": 1700000001}],
 "attempts": [{"action": "stop", "host": {"cloud": 0, "ip": "10.0.0.2"},
  "detail": {"hosted": false, "last_start": 1700000001}}],
 "members": [{"agent": "a1", "cloud": 3, "ips": ["10.0.0.1"], "enrolled": "2026-11-15T16:21:20.5Z"}],
 "at": "2026-11-15T16:21:20Z", "expires": "0001-01-01T00:00:00Z"
}`
	now := `{"at":"2026-11-15T16:21:20.000Z","attempts":[{"action":"stop","detail":{"last_start":"2023-11-14T22:13:21.000Z",` +
		`"managed":false},"host":{"agent":"","cloud":0,"ip":"10.0.0.2"}}],"expires":null,` +
		`"members":[{"agent":"a1","cloud":3,"enrolled":"2026-11-15T16:21:20.500Z","ips":["10.0.0.1"]}],` +
		`"processes":[{"host":{"agent":"a1","cloud":3,"ip":"10.0.0.1"},"managed":true,"namespace":"shop","pid":1700000001,` +
		`"registered_at":"2023-11-14T22:13:21.000Z","started_at":null}]}`

	got := presentSection(t, then)
	head, body, _ := strings.Cut(got, "\n{")
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte("{"+body)); err != nil {
		t.Fatal(err)
	}
	if head != "GET x\n200" || compact.String() != now {
		t.Errorf("converted to\n%s\n%s\nnot\n%s", head, compact.String(), now)
	}
}
