//go:build linux

package console_test

import (
	"slices"
	"testing"

	"github.com/gozzard/gozzard/test/console"
)

// auditActs: the filters of the audit find what was done, and are taken back.
func auditActs(p *console.Page) {
	p.Go("/console/audit")
	p.WaitText("nothing was changed or removed")
	p.Click("button", "Check again")
	p.WaitText("nothing was changed or removed")
	p.Fill("Act", "app:delete")
	p.Press(console.Enter)
	p.Until("one row", `document.querySelectorAll(".audit-table tbody tr").length === 1`)
	p.WaitText("Delete an app till")
	p.Fill("User", "nobody")
	p.Press(console.Enter)
	p.WaitText("No row fits")
	p.Accessible()
	p.Click("button", "Clear the filters")
	p.Until("many rows", `document.querySelectorAll(".audit-table tbody tr").length > 5`)
}

// auditMore: the audit has more rows than the page shows at first. With the others they are the whole audit, in order.
func auditMore(t *testing.T, f *console.Fleet, p *console.Page) {
	t.Helper()
	for range 100 {
		if err := f.Client.DisableUser(t.Context(), "ada", false); err != nil {
			t.Fatal(err)
		}
	}

	p.Click("button", "Read again")
	p.Click("button", "Show more")
	p.Until("more rows", `document.querySelectorAll(".audit-table tbody tr").length > 100`)
	p.WaitNo("button", "Show more") // a second page is enough for everything

	var shown []int64
	p.Eval(`[...document.querySelectorAll(".audit-table tbody th a")].map((a) => Number(a.innerText))`, &shown)
	page, err := f.Client.Audit(t.Context(), 0, 1000)
	if err != nil {
		t.Fatal(err)
	}

	var want []int64
	for _, r := range page.Rows {
		if r.Seq <= shown[0] {
			want = append(want, r.Seq)
		}
	}
	slices.Reverse(want)
	if !slices.Equal(shown, want) {
		t.Errorf("the page has the rows %v, the server %v", shown, want)
	}
}
