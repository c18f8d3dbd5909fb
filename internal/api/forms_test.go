package api_test

import (
	"path"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/api"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/test/fleettest"
)

// notHosts are types of answers that have the keys of a host and are none, or that show a host itself.
var notHosts = map[reflect.Type]string{
	reflect.TypeFor[client.HostRef]():    "the form of a host",
	reflect.TypeFor[client.HostAddr]():   "one of the addresses of a host in a list of hosts",
	reflect.TypeFor[client.Member]():     "a host itself, with all its addresses",
	reflect.TypeFor[enrol.Answer]():      "the answer to a host that joins, which its agent of any version reads",
	reflect.TypeFor[client.EnrolToken](): "the agent and the cloud area that a token is for",
}

// otherTimes are keys of times that are the keys of other things elsewhere.
var otherTimes = map[string]bool{"from": true, "changed": true}

// TestFormsOfAnswers: in every type of the answers a time is a client.Time and a host is a client.HostRef under the key
// host, and every recorded answer has these forms.
func TestFormsOfAnswers(t *testing.T) {
	seen := map[reflect.Type]bool{}
	walkType(t, reflect.TypeFor[client.Event](), seen)
	for _, rt := range api.Routes() {
		for _, a := range rt.Answers {
			if a.Value != nil {
				walkType(t, reflect.TypeOf(a.Value), seen)
			}
		}
	}
	if !seen[reflect.TypeFor[client.Process]()] || !seen[reflect.TypeFor[client.Attempt]()] {
		t.Error("the walk did not reach processes and attempts")
	}

	for name, play := range scenarios() {
		t.Run(name, func(t *testing.T) {
			r := newRecorder(t)
			play(t, r)
			for _, e := range r.exchanges {
				if e.status >= 400 || !strings.HasPrefix(e.kind, "application/json") || path.Ext(e.route) == ".json" ||
					strings.HasPrefix(e.route, "/api/v1/topology/{biz}") && !strings.HasSuffix(e.route, "/tree") && e.method == "GET" {
					continue // errors, schemas, and businesses as people wrote them
				}
				for _, fault := range fleettest.FaultsOfForm([]byte(e.body)) {
					t.Errorf("%s %s: %s", e.method, e.path, fault)
				}
			}
		})
	}
}

// walkType judges the fields of a type and of everything in it.
func walkType(t *testing.T, typ reflect.Type, seen map[reflect.Type]bool) {
	t.Helper()
	switch typ.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		walkType(t, typ.Elem(), seen)
		return
	case reflect.Struct:
	default:
		return
	}
	if seen[typ] || typ == reflect.TypeFor[client.Time]() {
		return
	}
	seen[typ] = true
	if typ == reflect.TypeFor[time.Time]() {
		t.Error("an answer has a time.Time, not a client.Time")
		return
	}

	keys := map[string]bool{}
	for i := range typ.NumField() {
		f := typ.Field(i)
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if key == "-" {
			continue
		}
		keys[key] = true
		switch {
		case fleettest.IsTimeKey(key) && f.Type != reflect.TypeFor[client.Time]():
			t.Errorf("%s.%s is a time by its key %s and is of type %s", typ, f.Name, key, f.Type)
		case f.Type == reflect.TypeFor[client.Time]() && !fleettest.IsTimeKey(key) && !otherTimes[key]:
			t.Errorf("%s.%s is a time, which its key %s does not show: add it to IsTimeKey", typ, f.Name, key)
		case key == "host" && f.Type != reflect.TypeFor[client.HostRef](),
			f.Type == reflect.TypeFor[client.HostRef]() && key != "host":
			t.Errorf("%s.%s has the key %s and the type %s", typ, f.Name, key, f.Type)
		case key == "hosted":
			t.Errorf("%s.%s says hosted, not managed", typ, f.Name)
		}
		walkType(t, f.Type, seen)
	}

	if (keys["ip"] || keys["agent"] && keys["cloud"]) && notHosts[typ] == "" {
		t.Errorf("%s has the parts of a host, not a HostRef", typ)
	}
}
