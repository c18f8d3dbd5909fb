package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/upgrade"
)

// ReleaseRecord is a store of releases and upgrades with its audit.
type ReleaseRecord interface {
	upgrade.Store
	Audit(ctx context.Context, limit int) ([]gozzard.AuditRow, error)
}

// RunReleases runs the contract of upgrade.Store. open returns a new, empty store and closes it at the end of the test.
func RunReleases(t *testing.T, open func(*testing.T) ReleaseRecord) {
	for name, f := range map[string]func(*testing.T, ReleaseRecord){"releases": releases, "upgrades": upgrades} {
		t.Run(name, func(t *testing.T) { f(t, open(t)) })
	}
}

func releaseAudit(what string) upgrade.AuditEntry {
	return upgrade.AuditEntry{At: start, Caller: gozzard.Caller{App: "app", User: "me"}, What: what, Targets: 3}
}

func releases(t *testing.T, s ReleaseRecord) {
	rel := upgrade.Release{Version: "1.0.0", Manifest: []byte("{}\x00"), Signature: []byte{1, 2}, Published: start,
		By: "user me"}
	must(t, s.AddRelease(t.Context(), rel, releaseAudit("release:publish:1.0.0")))
	must(t, s.AddRelease(t.Context(), rel, releaseAudit("release:publish:1.0.0"))) // changes nothing
	other := rel
	other.Manifest = []byte("{}")
	wantKind(t, s.AddRelease(t.Context(), other, releaseAudit("x")), gozzard.ErrConflict)
	other.Version, other.Published = "1.1.0", start.Add(time.Hour)
	must(t, s.AddRelease(t.Context(), other, releaseAudit("")))
	list, err := s.Releases(t.Context())
	must(t, err)

	if len(list) != 2 || list[0].Version != "1.1.0" || string(list[1].Manifest) != "{}\x00" ||
		string(list[1].Signature) != "\x01\x02" || !list[1].Published.Equal(start) || list[1].By != "user me" {
		t.Errorf("got %+v", list)
	}

	must(t, s.RemoveRelease(t.Context(), "1.1.0", releaseAudit("release:remove:1.1.0")))
	wantKind(t, s.RemoveRelease(t.Context(), "1.1.0", releaseAudit("x")), gozzard.ErrNotFound)
	must(t, s.AddUpgrade(t.Context(), &upgrade.Upgrade{Version: "1.0.0", Stages: []int{100},
		State: upgrade.StateWaiting, Created: start, Changed: start}, releaseAudit("")))
	wantKind(t, s.RemoveRelease(t.Context(), "1.0.0", releaseAudit("x")), gozzard.ErrConflict)
	rows, err := s.Audit(t.Context(), 10)
	must(t, err)

	if len(rows) != 2 || rows[1].Act != "release:publish:1.0.0" || rows[0].Act != "release:remove:1.1.0" ||
		rows[0].Targets != 3 || rows[0].Caller.User != "me" {
		t.Errorf("the audit has %+v", rows)
	}
}

func upgrades(t *testing.T, s ReleaseRecord) {
	first := &upgrade.Upgrade{Version: "1.0.0", Stages: []int{1, 100}, State: upgrade.StateWaiting, Created: start,
		Changed: start, By: "app a", Hosts: []upgrade.Host{
			{Agent: "z", State: upgrade.HostWaiting}, {Agent: "a", Stage: 1, State: upgrade.HostWaiting},
			{Agent: "主机", Stage: 1, State: upgrade.HostWaiting},
		}}
	must(t, s.AddUpgrade(t.Context(), first, releaseAudit("release:roll:1.0.0")))
	second := &upgrade.Upgrade{Version: "1.1.0", Stages: []int{100}, State: upgrade.StateRunning, Created: start,
		Changed: start}
	wantKind(t, s.AddUpgrade(t.Context(), second, releaseAudit("x")), gozzard.ErrConflict)
	first.State, first.Approved, first.Changed = upgrade.StateRunning, "user me", start.Add(time.Minute)
	must(t, s.SaveUpgrade(t.Context(), first, []upgrade.Host{{Agent: "a", Stage: 1, State: upgrade.HostFailed,
		Reason: "refused: no", Asked: start}}, releaseAudit("release:approve:1.0.0")))
	list, err := s.Upgrades(t.Context(), 5)
	must(t, err)

	if len(list) != 1 {
		t.Fatalf("got %+v", list)
	}

	got := list[0]
	if got.ID != first.ID || got.ID == 0 || got.State != upgrade.StateRunning || got.Approved != "user me" ||
		got.By != "app a" || !got.Changed.Equal(start.Add(time.Minute)) || len(got.Stages) != 2 || got.Stages[0] != 1 ||
		len(got.Hosts) != 3 || got.Hosts[0].Agent != "z" || got.Hosts[2].Agent != "主机" {
		t.Errorf("got %+v", got)
	}

	if h := got.Hosts[1]; h.Agent != "a" || h.Stage != 1 || h.State != upgrade.HostFailed ||
		h.Reason != "refused: no" || !h.Asked.Equal(start) {
		t.Errorf("got %+v", h)
	}

	first.State, first.Reason = upgrade.StateStopped, "why"
	must(t, s.SaveUpgrade(t.Context(), first, nil, releaseAudit("")))
	first.State = upgrade.StateRunning
	wantKind(t, s.SaveUpgrade(t.Context(), first, nil, releaseAudit("x")), gozzard.ErrConflict)
	must(t, s.AddUpgrade(t.Context(), second, releaseAudit("")))
	list, err = s.Upgrades(t.Context(), 1)
	must(t, err)

	if len(list) != 1 || list[0].ID != second.ID || second.ID <= first.ID {
		t.Errorf("got %+v", list)
	}

	rows, err := s.Audit(t.Context(), 10)
	must(t, err)

	if len(rows) != 2 || rows[0].Act != "release:approve:1.0.0" || rows[1].Act != "release:roll:1.0.0" {
		t.Errorf("the audit has %+v", rows)
	}
}
