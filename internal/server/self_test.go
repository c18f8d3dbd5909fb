package server

import (
	"context"
	"testing"

	"github.com/gozzard/gozzard/client"
)

// The checks read the whole record, so callers share them; one that goes away does not make them fail.
func TestSelfChecksAreShared(t *testing.T) {
	calls := 0
	c := &selfChecks{data: "folder", check: func(ctx context.Context, data string) []client.Finding {
		calls++
		if ctx.Err() != nil || data != "folder" {
			t.Errorf("checked %q with a context that is %v", data, ctx.Err())
		}
		return []client.Finding{{Level: "OK", Check: "record"}}
	}}

	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 3 {
		if list, at := c.Findings(gone); len(list) != 1 || at.IsZero() {
			t.Errorf("%+v at %v", list, at)
		}
	}
	if calls != 1 {
		t.Errorf("%d checks", calls)
	}
}
