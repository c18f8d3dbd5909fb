package main

import (
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// TestAdviceToRepeat: the advice to repeat a task stands only where the same request may succeed later.
func TestAdviceToRepeat(t *testing.T) {
	for _, c := range []struct {
		code    gozzard.Code
		message string
		want    bool
	}{
		{gozzard.CodeCommandFailed, "exited with 1", true},
		{gozzard.CodeUnreachable, "host 0:10.0.0.1 is offline", true},
		{gozzard.CodeUnreachable, "host 0:10.0.0.1 is not in the fleet: it never joined, or it has left", false},
		{gozzard.CodeRefused, "permission: account root is not allowed", false},
		{gozzard.CodeNoDefinition, "register it first", false},
	} {
		done := client.Attempt{Verdict: client.Done, Code: gozzard.CodeOK}
		failed := client.Attempt{Verdict: client.Failed, Code: c.code, Message: c.message}
		if got := worthRepeating(&client.Task{Attempts: []client.Attempt{done, failed}}); got != c.want {
			t.Errorf("%s %q: %v", c.code, c.message, got)
		}
		if worthRepeating(&client.Task{Attempts: []client.Attempt{done}}) {
			t.Error("repeat although nothing failed")
		}
	}
}
