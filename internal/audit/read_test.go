package audit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/audit"
)

// full is a record that takes nothing.
type full struct{}

func (full) AddAudit(context.Context, []gozzard.AuditRow) error {
	return errors.New("the disk is full")
}

// TestReads: every content that a caller sees has a row at once, however many others it has seen before. Equal ones within a
// minute are counted. What cannot be recorded is an error.
func TestReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &held{}
		r := audit.New(audit.Options{Store: store})
		ctx, cancel := context.WithCancel(t.Context())
		end := make(chan error, 1)
		go func() { end <- r.Run(ctx) }()
		read := func(content string) gozzard.AuditRow {
			row := gozzard.AuditRow{Caller: gozzard.Caller{App: "a"}, Act: "read:file"}
			copy(row.Content[:], content)
			if err := r.Read(ctx, row); err != nil {
				t.Fatal(err)
			}
			return row
		}

		const files = 2000
		for i := range files {
			row := read(fmt.Sprint(i))
			if n, last := store.last(); n != i+1 || last.Content != row.Content {
				t.Fatalf("after %d reads of different files there are %d rows", i+1, n)
			}
		}
		for range 5 {
			read("0")
		}
		if n, _ := store.last(); n != files {
			t.Errorf("equal reads at once: %d rows", n)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if n, last := store.last(); n != files+1 || last.Count != 5 {
			t.Errorf("after the minute: %d rows, the last counts %d", n, last.Count)
		}
		read("0")
		if n, _ := store.last(); n != files+2 {
			t.Errorf("in the next minute: %d rows", n)
		}

		cancel()
		if err := <-end; err != nil {
			t.Fatal(err)
		}
		if audit.New(audit.Options{Store: full{}}).Read(t.Context(), gozzard.AuditRow{}) == nil {
			t.Error("a record that takes nothing is no error")
		}
	})
}
