package configfile

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/gozzard/gozzard"
)

// TestPreviewTurns: a caller that floods the server with previews waits for itself, and others come between its own.
func TestPreviewTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPreviews()
		entered := make(chan string, 100)
		enter := func(ctx context.Context, owner string) chan func() {
			out := make(chan func(), 1)
			go func() {
				leave, err := p.enter(ctx, owner)
				if err != nil {
					entered <- owner + ": " + err.Error()
					return
				}
				entered <- owner
				out <- leave
			}()
			synctest.Wait()
			return out
		}

		// One caller has one turn, and a number that may wait.
		ctx, cancel := context.WithCancel(t.Context())
		first := enter(t.Context(), "flood")
		for range maxWaiting {
			enter(ctx, "flood")
		}
		if len(entered) != 1 {
			t.Fatalf("%d previews of one caller run", len(entered))
		}
		if _, err := p.enter(t.Context(), "flood"); gozzard.KindOf(err) != gozzard.ErrRateLimited {
			t.Fatalf("one more: %v", err)
		}

		// Another caller has a turn at once, and a third one comes before what the flood has waiting.
		second := enter(t.Context(), "other")
		third := enter(t.Context(), "third")
		if len(entered) != 2 {
			t.Fatalf("%d previews run", len(entered))
		}
		(<-first)()
		synctest.Wait()
		(<-second)()
		(<-third)()
		synctest.Wait()
		cancel()
		synctest.Wait()
		var got []string
		for len(entered) > 0 {
			got = append(got, <-entered)
		}
		if len(got) != 3+maxWaiting || got[0] != "flood" || got[1] != "other" {
			t.Fatalf("%q", got)
		}
	})
}

// TestPreviewLeft: previews of callers that are gone take no turn, and leave nothing behind.
func TestPreviewLeft(t *testing.T) {
	p := newPreviews()
	leave, err := p.enter(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range maxWaiting {
		if _, err := p.enter(ctx, "a"); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	leave()
	if len(p.running)+len(p.queued)+p.waiting.Len() != 0 {
		t.Fatalf("%v run, %v wait", p.running, p.queued)
	}
	if leave, err = p.enter(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	leave()
}
