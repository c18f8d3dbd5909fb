package audit_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/audit"
)

// TestTR12QueriesAreCounted: of each app few different queries a minute have rows of their own. All others are counted,
// none twice, and an app with many queries does not take the rows of another.
func TestTR12QueriesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &held{}
		r := audit.New(audit.Options{Store: store})
		ctx, cancel := context.WithCancel(t.Context())
		end := make(chan error, 1)
		go func() { end <- r.Run(ctx) }()

		own := map[string]int{}
		ask := func(app, user, content string, recorded bool) {
			row := gozzard.AuditRow{Caller: gozzard.Caller{App: app, User: user}, Act: "operate:query",
				Origin: gozzard.Origin{Door: "gse", RequestID: "r"}}
			copy(row.Content[:], content)
			quiet, done := r.FoldQuery(row)
			done(recorded)
			if !quiet && recorded {
				own[app]++
			}
		}

		const minutes, each = 3, 1000
		for range minutes {
			ask("quiet", "u", "failed", false) // not recorded: it has neither a row nor a number
			for i := range each {
				ask("loud", fmt.Sprint("user", i), fmt.Sprint(i), true)
				ask("loud", "u", "same", true)
				ask("quiet", "u", "same", true)
				ask("quiet", "u", "same", false)
				ask("", fmt.Sprint("person", i%10), "same", true)
			}
			time.Sleep(70 * time.Second)
		}
		cancel()
		if err := <-end; err != nil {
			t.Fatal(err)
		}

		counted := map[string]int{}
		for i := range store.rows {
			row := &store.rows[i]
			if row.Count == 0 || row.Outcome == "" || row.Door != "gse" || row.Act != "operate:query" || row.TaskID != "" {
				t.Errorf("%+v", row)
			}
			counted[row.Caller.App] += row.Count
		}
		if own["loud"] != minutes*16 || own["quiet"] != minutes || own[""] != minutes*10 {
			t.Errorf("own rows: %v", own)
		}
		for app, want := range map[string]int{"loud": 2, "quiet": 1, "": 1} {
			if got := own[app] + counted[app]; got != want*minutes*each {
				t.Errorf("%q: %d of %d queries are in the audit", app, got, want*minutes*each)
			}
		}
		if len(store.rows) > minutes*(16+1+1+10) {
			t.Errorf("%d rows about numbers", len(store.rows))
		}

		// After the last rows are written nothing is counted any more.
		if quiet, _ := r.FoldQuery(gozzard.AuditRow{}); quiet {
			t.Error("counted after the end")
		}
	})
}
