package storetest

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
)

// EnrolRecord is a store of enrolled agents with its audit.
type EnrolRecord interface {
	enrol.Store
	enrol.RestoreStore
	enrol.RelayStore
	MarkRestored(ctx context.Context, taken, now time.Time) error
	Audit(ctx context.Context, limit int) ([]gozzard.AuditRow, error)
}

// RunEnrol runs the contract of enrol.Store. open returns a new, empty store and closes it at the end of the test.
func RunEnrol(t *testing.T, open func(*testing.T) EnrolRecord) {
	for name, f := range map[string]func(*testing.T, EnrolRecord){
		"tokens": enrolTokens, "one use": enrolOnce, "refused": enrolRefused, "change": enrolChange,
		"restore": enrolRestore, "relays": enrolRelays,
	} {
		t.Run(name, func(t *testing.T) { f(t, open(t)) })
	}
}

func enrolToken(id string, uses int) enrol.TokenRecord {
	return enrol.TokenRecord{ID: id, Digest: sha256.Sum256([]byte(id)), Created: start, Expires: start.Add(time.Hour),
		Uses: uses, Cloud: 3,
		Nets: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}, Approve: true,
		Agent: "agent-1", CreatedBy: "admin/me"}
}

func enrolled(id gozzard.AgentID) enrol.AgentRecord {
	return enrol.AgentRecord{Agent: id, Cloud: 3, IPs: []netip.Addr{netip.MustParseAddr("10.0.0.1")}, Machine: "m",
		Hostname: "主机", State: enrol.StatePending, Reason: "r",
		Serial: "01", Previous: "00", NotAfter: start.Add(time.Hour), Enrolled: start, Changed: start,
		Token: "t"}
}

func enrolAudit(what string) enrol.AuditEntry {
	return enrol.AuditEntry{At: start, Caller: gozzard.Caller{App: "app", User: "me"}, What: what}
}

func enrolTokens(t *testing.T, s EnrolRecord) {
	must(t, s.AddEnrolToken(t.Context(), enrolToken("a", 1), enrolAudit("enrol:token:a")))
	later := enrolToken("b", 5)
	later.Created, later.Nets, later.Approve, later.Agent = start.Add(time.Second), nil, false, ""
	must(t, s.AddEnrolToken(t.Context(), later, enrolAudit("")))
	list, err := s.EnrolTokens(t.Context())
	must(t, err)

	if len(list) != 2 || list[0].ID != "b" || len(list[0].Nets) != 0 {
		t.Fatalf("got %+v", list)
	}
	if got, want := list[1], enrolToken("a", 1); got.Digest != want.Digest || !got.Expires.Equal(want.Expires) ||
		len(got.Nets) != 2 || got.Nets[1] != want.Nets[1] || !got.Approve ||
		got.Agent != want.Agent || got.CreatedBy != want.CreatedBy || got.Revoked || got.Cloud != 3 {
		t.Errorf("got %+v, want %+v", got, want)
	}

	must(t, s.RevokeEnrolToken(t.Context(), "a", enrolAudit("enrol:untoken:a")))
	wantKind(t, s.RevokeEnrolToken(t.Context(), "unknown", enrolAudit("enrol:untoken:unknown")), gozzard.ErrNotFound)
	list, err = s.EnrolTokens(t.Context())
	must(t, err)

	if !list[1].Revoked || list[0].Revoked {
		t.Errorf("got %+v", list)
	}

	rows, err := s.Audit(t.Context(), 10)
	must(t, err)

	if len(rows) != 2 || rows[1].Act != "enrol:token:a" || rows[0].Act != "enrol:untoken:a" ||
		rows[0].Caller.User != "me" {
		t.Errorf("the audit has %+v", rows)
	}
}

// enrolOnce: of many agents that use the last use of a token at the same time, one enrols.
func enrolOnce(t *testing.T, s EnrolRecord) {
	must(t, s.AddEnrolToken(t.Context(), enrolToken("once", 1), enrolAudit("")))
	used := errors.New("used up")
	var wg sync.WaitGroup
	var won, lost atomic.Int64
	for i := range 50 {
		wg.Go(func() {
			id := agentID(i)
			_, err := s.Enrol(t.Context(), "once", id,
				func(k enrol.TokenRecord, known enrol.AgentRecord) (enrol.AgentRecord, error) {
					if k.Used >= k.Uses {
						return enrol.AgentRecord{}, used
					}
					return enrolled(id), nil
				}, enrolAudit("enrol:join"))

			switch {
			case err == nil:
				won.Add(1)
			case errors.Is(err, used):
				lost.Add(1)
			default:
				t.Error(err)
			}
		})
	}

	wg.Wait()

	if won.Load() != 1 || lost.Load() != 49 {
		t.Errorf("%d enrolled, %d were rejected", won.Load(), lost.Load())
	}

	list, err := s.Members(t.Context())
	must(t, err)
	rows, err := s.Audit(t.Context(), 100)
	must(t, err)

	if len(list) != 1 || len(rows) != 1 {
		t.Errorf("%d agents, %d audit rows", len(list), len(rows))
	}
}

// enrolRefused: a rejected enrolment changes nothing, and unknown tokens and agents are zero records.
func enrolRefused(t *testing.T, s EnrolRecord) {
	must(t, s.AddEnrolToken(t.Context(), enrolToken("k", 2), enrolAudit("")))
	no := errors.New("no")
	_, err := s.Enrol(t.Context(), "unknown", "agent-1",
		func(k enrol.TokenRecord, known enrol.AgentRecord) (enrol.AgentRecord, error) {
			if k.ID != "" || known.Agent != "" {
				t.Errorf("got %+v and %+v", k, known)
			}
			return enrol.AgentRecord{}, no
		}, enrolAudit("enrol:join"))
	if !errors.Is(err, no) {
		t.Errorf("got %v", err)
	}

	_, err = s.ChangeMember(t.Context(), "agent-1",
		func(a enrol.AgentRecord) (enrol.AgentRecord, error) { return a, nil }, enrolAudit("x"))

	wantKind(t, err, gozzard.ErrNotFound)
	list, err := s.EnrolTokens(t.Context())
	must(t, err)
	rows, err := s.Audit(t.Context(), 100)
	must(t, err)

	if list[0].Used != 0 || len(rows) != 0 {
		t.Errorf("used %d times, %d audit rows", list[0].Used, len(rows))
	}
}

func enrolChange(t *testing.T, s EnrolRecord) {
	must(t, s.AddEnrolToken(t.Context(), enrolToken("k", 2), enrolAudit("")))
	want := enrolled("agent-1")
	put := func(enrol.TokenRecord, enrol.AgentRecord) (enrol.AgentRecord, error) { return want, nil }
	_, err := s.Enrol(t.Context(), "k", "agent-1", put, enrolAudit("enrol:join"))
	must(t, err)

	got, err := s.ChangeMember(t.Context(), "agent-1", func(a enrol.AgentRecord) (enrol.AgentRecord, error) {
		a.State, a.Reason, a.Serial, a.Previous = enrol.StateRevoked, "", "02", "01"
		return a, nil
	}, enrolAudit("enrol:revoke"))

	must(t, err)
	want.State, want.Reason, want.Serial, want.Previous = enrol.StateRevoked, "", "02", "01"
	list, err := s.Members(t.Context())
	must(t, err)

	for _, a := range append(list, got) {
		if a.IPs[0] != want.IPs[0] || !a.NotAfter.Equal(want.NotAfter) || !a.Enrolled.Equal(want.Enrolled) ||
			!a.Changed.Equal(want.Changed) {
			t.Errorf("got %+v, want %+v", a, want)
		}
		a.IPs, a.NotAfter, a.Enrolled, a.Changed = want.IPs, want.NotAfter, want.Enrolled, want.Changed
		equal(t, "agent", a, want)
	}
}

// enrolRestore: agents that were active in a backup wait until an admin confirms the restore with their number. Other
// agents are not let in by that.
func enrolRestore(t *testing.T, s EnrolRecord) {
	states := map[gozzard.AgentID]enrol.State{"a": enrol.StateActive, "b": enrol.StateActive, "p": enrol.StatePending,
		"q": enrol.StateQuarantined, "r": enrol.StateRevoked}
	must(t, s.AddEnrolToken(t.Context(), enrolToken("t", 10), enrolAudit("")))

	for id, state := range states {
		a := enrolled(id)
		a.State = state
		accept := func(enrol.TokenRecord, enrol.AgentRecord) (enrol.AgentRecord, error) { return a, nil }
		_, err := s.Enrol(t.Context(), "t", id, accept, enrolAudit(""))
		must(t, err)
	}

	from, waiting, err := s.RestoredFrom(t.Context())
	if must(t, err); !from.IsZero() || waiting != 0 {
		t.Fatalf("restored from %v, %d wait, before any restore", from, waiting)
	}

	must(t, s.MarkRestored(t.Context(), start, start.Add(time.Hour)))
	from, waiting, err = s.RestoredFrom(t.Context())
	if must(t, err); !from.Equal(start) || waiting != 2 {
		t.Fatalf("restored from %v, %d wait", from, waiting)
	}

	tokens, err := s.EnrolTokens(t.Context())
	if must(t, err); len(tokens) != 1 || !tokens[0].Revoked {
		t.Errorf("tokens from before the restore: %+v", tokens)
	}

	compare := func(when string, want map[gozzard.AgentID]enrol.State) {
		t.Helper()
		list, err := s.Members(t.Context())
		must(t, err)
		for _, m := range list {
			if m.State != want[m.Agent] || !m.Restored.Equal(start) {
				t.Errorf("%s: %s is %s of %v, want %s", when, m.Agent, m.State, m.Restored, want[m.Agent])
			}
		}
	}

	held := map[gozzard.AgentID]enrol.State{"a": enrol.StateRestored, "b": enrol.StateRestored,
		"p": enrol.StatePending, "q": enrol.StateQuarantined, "r": enrol.StateRevoked}
	compare("restored", held)

	if _, err := s.ConfirmRestore(t.Context(), 3,
		enrolAudit("restore:confirm")); gozzard.KindOf(err) != gozzard.ErrConflict {
		t.Errorf("a wrong number: %v", err)
	}

	compare("refused", held)
	list, err := s.ConfirmRestore(t.Context(), 2, enrolAudit("restore:confirm"))
	if must(t, err); len(list) != 2 || list[0].Agent != "a" || list[0].State != enrol.StateActive {
		t.Errorf("confirmed %+v", list)
	}

	compare("confirmed", states)
	from, _, err = s.RestoredFrom(t.Context())
	if must(t, err); !from.IsZero() {
		t.Errorf("still restored from %v", from)
	}

	audit, err := s.Audit(t.Context(), 2)
	if must(t, err); len(audit) != 2 || audit[0].Act != "restore:confirm" || audit[0].Targets != 2 ||
		audit[1].Act != "restore:"+start.UTC().Format(time.RFC3339) {
		t.Errorf("audit: %+v", audit)
	}
}
