package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/client"
)

// TestServerStates: a drained server is being drained until it is empty.
func TestServerStates(t *testing.T) {
	for want, s := range map[string]client.Server{
		"active":   {Agents: 3, Leases: []string{"jobs"}},
		"draining": {Agents: 1, Drained: true, Silent: 2},
		"drained":  {Drained: true},
	} {
		if got := serverState(&s); got != want {
			t.Errorf("%+v is %s, want %s", s, got, want)
		}
	}
	for want, s := range map[string]client.Server{
		"draining": {Leases: []string{"jobs"}, Drained: true},
		"drained":  {Agents: 7, Drained: true, Silent: 60}, // it is gone
	} {
		if got := serverState(&s); got != want {
			t.Errorf("%+v is %s, want %s", s, got, want)
		}
	}
}

// TestServersThatAreSilent: a server that has not written its row for long is named with what that means. The others are
// only in the table.
func TestServersThatAreSilent(t *testing.T) {
	var out, errs bytes.Buffer
	env := &cliEnv{out: &out, errs: &errs}
	err := env.printServers([]client.Server{
		{ID: "id1", Name: "east", Here: true, Silent: 2, Leases: []string{"jobs", "prune"}},
		{ID: "id2", Name: "we\x1b[31mst", Silent: 3700, Drained: true},
		{ID: "id3", Name: "north", Silent: 1, Lag: 75, Ahead: 300},
		{ID: "id4", Name: "south", Silent: 1, Ahead: -120},
	})
	if err != nil {
		t.Fatal(err)
	}

	rows := strings.Split(out.String(), "\n")
	if len(rows) != 6 || !strings.HasPrefix(rows[1], "east* ") || !strings.Contains(rows[1], " jobs prune ") ||
		!strings.Contains(rows[2], " 1h1m ") || !strings.HasSuffix(strings.TrimSpace(rows[2]), "drained") ||
		strings.Contains(out.String(), "\x1b") {
		t.Errorf("got\n%s", out.String())
	}
	if note := errs.String(); strings.Count(note, "\n") != 4 || !strings.Contains(note, "id2") ||
		!strings.Contains(note, "was last seen 1h1m ago: it does not run, or does not reach the database") ||
		!strings.Contains(note, "server north (id3) runs, but the server that answers has not heard everything from it for 1m15s") ||
		!strings.Contains(note, "the clock of server north (id3) is 5m0s ahead of that of the database") ||
		!strings.Contains(note, "the clock of server south (id4) is 2m0s behind that of the database") ||
		strings.Contains(note, "\x1b") {
		t.Errorf("got the note %q", note)
	}
}
