package storetest

import (
	"crypto/sha256"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
)

func relayRecord(id string) enrol.RelayRecord {
	return enrol.RelayRecord{ID: id, Name: "plant " + id, Areas: []int{3, 4}, State: enrol.RelayInvited,
		Digest: sha256.Sum256([]byte(id)), Created: start, Expires: start.Add(time.Hour), CreatedBy: "admin/me"}
}

// enrolRelays: relays are added, changed, seen and removed, each change with its row.
func enrolRelays(t *testing.T, s EnrolRecord) {
	must(t, s.AddRelay(t.Context(), relayRecord("b"), enrolAudit("relay:token:b")))
	must(t, s.AddRelay(t.Context(), relayRecord("a"), enrolAudit("relay:token:a")))

	// A change that is refused changes nothing.
	refused := errors.New("refused")
	_, err := s.ChangeRelay(t.Context(), "a", func(r enrol.RelayRecord) (enrol.RelayRecord, error) {
		r.State = enrol.RelayActive
		return r, refused
	}, enrolAudit("relay:join:a"))
	if !errors.Is(err, refused) {
		t.Fatalf("got %v", err)
	}
	_, err = s.ChangeRelay(t.Context(), "unknown", func(r enrol.RelayRecord) (enrol.RelayRecord, error) { return r, nil },
		enrolAudit("relay:join:unknown"))
	wantKind(t, err, gozzard.ErrNotFound)

	// A change, and where the relay is.
	got, err := s.ChangeRelay(t.Context(), "a", func(r enrol.RelayRecord) (enrol.RelayRecord, error) {
		r.State, r.Serial, r.Previous, r.NotAfter = enrol.RelayActive, "02", "01", start.Add(2*time.Hour)
		r.Agents, r.API = "10.0.0.1:1", ":2"
		return r, nil
	}, enrolAudit("relay:join:a"))
	must(t, err)
	if got.State != enrol.RelayActive || got.Digest != relayRecord("a").Digest {
		t.Errorf("got %+v", got)
	}
	must(t, s.SeeRelay(t.Context(), "a", "server-1", 7))
	list, err := s.Relays(t.Context())
	must(t, err)
	if len(list) != 2 || list[0].ID != "a" || list[1].ID != "b" {
		t.Fatalf("got %+v", list)
	}
	a, b := list[0], list[1]
	if a.Name != "plant a" || !slices.Equal(a.Areas, []int{3, 4}) || a.State != enrol.RelayActive || a.Serial != "02" || a.Previous != "01" ||
		!a.NotAfter.Equal(start.Add(2*time.Hour)) || a.Agents != "10.0.0.1:1" || a.API != ":2" || a.Server != "server-1" || a.Hosts != 7 ||
		a.Seen.IsZero() || a.Ago > time.Minute || a.CreatedBy != "admin/me" {
		t.Errorf("got %+v", a)
	}
	if b.State != enrol.RelayInvited || !b.Seen.IsZero() || !b.Expires.Equal(start.Add(time.Hour)) {
		t.Errorf("got %+v", b)
	}

	// The end.
	must(t, s.RemoveRelay(t.Context(), "a", enrolAudit("relay:remove:a")))
	wantKind(t, s.RemoveRelay(t.Context(), "a", enrolAudit("relay:remove:a")), gozzard.ErrNotFound)
	if list, err = s.Relays(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("got %+v, %v", list, err)
	}

	rows, err := s.Audit(t.Context(), 10)
	must(t, err)
	var acts []string
	for _, r := range rows {
		acts = append(acts, r.Act)
	}
	if !slices.Equal(acts, []string{"relay:remove:a", "relay:join:a", "relay:token:a", "relay:token:b"}) {
		t.Errorf("the audit has %q", acts)
	}
}
