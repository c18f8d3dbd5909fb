package specjson_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/specjson"
)

// TestEffectiveDefaults: what the definition says stays and is not marked, and what it does not say is filled in with the
// value that the agent uses.
func TestEffectiveDefaults(t *testing.T) {
	fields, defaults := specjson.Effective(readFlat(t, `{"command":"sleep 1","restart":{"policy":"on-failure"},
		"health":{"tcp":"127.0.0.1:80","timeout":"4s"}}`))
	got, err := specjson.Object(fields).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"command":"sleep 1","restart":{"policy":"on-failure","delay":"10s","quick":4},` +
		`"health":{"tcp":"127.0.0.1:80","timeout":"4s","interval":"30s","failures":3,"restart":false},` +
		`"timeout":"60s","folder":"/","proc_name":"sleep","nice":0,"stop_signal":"TERM","stop_timeout":"10s",` +
		`"start_check":"5s","orphans":"kill"}`
	if string(got) != want {
		t.Errorf("effective is\n%s, want\n%s", got, want)
	}
	wantPaths := []string{"timeout", "folder", "proc_name", "nice", "stop_signal", "stop_timeout", "start_check", "orphans",
		"restart.delay", "restart.quick", "health.interval", "health.failures", "health.restart"}
	if !slices.Equal(defaults, wantPaths) {
		t.Errorf("defaults are %q", defaults)
	}

	// Reading it gives the same process: only the words of the defaults are added.
	again := readFlat(t, string(got))
	again.Policy.HealthInterval, again.Policy.HealthThreshold, again.Policy.StopSignal, again.Policy.Orphans = 0, 0, "", ""
	plain := readFlat(t, `{"command":"sleep 1","restart":{"policy":"on-failure"},
		"health":{"tcp":"127.0.0.1:80","timeout":"4s"}}`)
	if !bytes.Equal(gozzard.EncodeSpec(again), gozzard.EncodeSpec(plain)) {
		t.Errorf("registering it gives\n%s, not\n%s", gozzard.EncodeSpec(again), gozzard.EncodeSpec(plain))
	}

	// A periodic process has no restarts.
	fields, _ = specjson.Effective(readFlat(t, `{"command":"sleep 1","schedule":"0 3 * * *"}`))
	if m := specjson.Map(fields); m["restart"] != nil || m["overlap"] != "skip" {
		t.Errorf("a periodic process: %v", m)
	}
}

func readFlat(t *testing.T, doc string) *gozzard.Spec {
	t.Helper()
	d, faults := readDocument(t, doc)
	if faults != nil {
		t.Fatal(faults)
	}
	return d.Spec
}
