package gozzard_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
)

func auditRow() gozzard.AuditRow {
	return gozzard.AuditRow{Seq: 7, At: time.UnixMilli(1700000000123), Act: "operate:start", TaskID: "T1", Targets: 3,
		Caller:      gozzard.Caller{App: "a", User: "u", Asserted: true},
		RequestHash: [32]byte{1}, HostsHash: [32]byte{2}}
}

// TestTR1RuleOneStays: rows of earlier versions keep their hash. The value was computed by the version before rule 2.
func TestTR1RuleOneStays(t *testing.T) {
	r := auditRow()
	r.Legacy = true
	const want = "9c6e8f32db8ecd516e31ba85adbf4a35e5f9caae6b17380b91bcac1da0a2c683"
	if got := r.Chain(gozzard.AuditHash{9}).String(); got != want {
		t.Fatalf("rule 1 gives %s, want %s", got, want)
	}
}

// TestTR1RuleTwoCoversEverything changes every field of a row.
func TestTR1RuleTwoCoversEverything(t *testing.T) {
	first := auditRow()
	seen := map[gozzard.AuditHash]string{first.Chain(gozzard.AuditHash{}): "nothing"}
	for name, change := range map[string]func(*gozzard.AuditRow){
		"rule":       func(r *gozzard.AuditRow) { r.Legacy = true },
		"door":       func(r *gozzard.AuditRow) { r.Door = "x" },
		"source":     func(r *gozzard.AuditRow) { r.Source = "x" },
		"request id": func(r *gozzard.AuditRow) { r.RequestID = "x" },
		"accounts":   func(r *gozzard.AuditRow) { r.Accounts = "x" },
		"outcome":    func(r *gozzard.AuditRow) { r.Outcome = "x" },
		"ref":        func(r *gozzard.AuditRow) { r.Ref = 1 },
		"count":      func(r *gozzard.AuditRow) { r.Count = 1 },
		"content":    func(r *gozzard.AuditRow) { r.Content[0] = 1 },
		"act":        func(r *gozzard.AuditRow) { r.Act = "x" },
	} {
		r := auditRow()
		change(&r)
		hash := r.Chain(gozzard.AuditHash{})
		if other, twice := seen[hash]; twice {
			t.Errorf("%s and %s have the same hash", name, other)
		}
		seen[hash] = name
	}
}

// TestTR1NothingIsAddedToAnOldRow: rule 1 does not cover the newer fields, so a row of that rule must not have them.
func TestTR1NothingIsAddedToAnOldRow(t *testing.T) {
	l := gozzard.AuditLink{AuditRow: auditRow()}
	l.Legacy = true
	l.Hash = l.Chain(gozzard.AuditHash{})
	if err := new(gozzard.AuditCheck).Follow(&l); err != nil {
		t.Fatal(err)
	}

	l.Source = "192.0.2.1"
	if err := new(gozzard.AuditCheck).Follow(&l); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Fatalf("a source that was added to an old row is accepted: %v", err)
	}
}

func TestHostLines(t *testing.T) {
	a, err := gozzard.ParseHostAddr("0:10.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	hosts := gozzard.ParseHostLines(gozzard.HostLines([]gozzard.Attempt{{Agent: "one", Addr: a}}))
	if len(hosts) != 1 || !hosts[0].Is("one") || !hosts[0].Is("10.0.0.1") || !hosts[0].Is("0:10.0.0.1") ||
		hosts[0].Is("10.0.0.2") || hosts[0].Is("") {
		t.Fatalf("got %+v", hosts)
	}
}

// TestAuditFindsFormerWords: rows of earlier versions have other words for two operations. Each word finds both, in
// operations only.
func TestAuditFindsFormerWords(t *testing.T) {
	for _, c := range []struct {
		act, action string
		want        bool
	}{
		{"operate:host", "manage", true}, {"operate:manage", "host", true}, {"operate:start,unhost", "unmanage", true},
		{"job:host job 5", "manage", true}, {"retry:unmanage job 5", "unhost", true}, {"operate:unhost", "manage", false},
		{"host:remove x", "manage", false}, {"host:remove x", "host", true}, {"operate:start", "manage", false},
	} {
		f := gozzard.AuditFilter{Action: c.action}
		if got := f.Match(&gozzard.AuditRow{Act: c.act}); got != c.want {
			t.Errorf("the action %s finds the act %q: %v", c.action, c.act, got)
		}
	}
}
