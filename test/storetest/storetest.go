// Package storetest has the contracts of the record as tests: those of control.Store, control.TopologyStore,
// control.AuditStore, configfile.Store, waves.Store, upgrade.Store, enrol.Store and auth.Store. Every implementation runs them.
package storetest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/record"
)

// Run runs the contract of control.Store. open gives a new, empty store and closes it at the end of the test.
func Run(t *testing.T, open func(t *testing.T) control.Store) {
	for _, c := range []struct {
		name string
		test func(*testing.T, control.Store)
	}{
		{"accept: round trip", acceptRoundTrip},
		{"accept: an empty task", acceptEmpty},
		{"accept: numbers and order", acceptOrder},
		{"accept: announced in the order of numbers", acceptAnnounced},
		{"accept: many attempts", acceptMany},
		{"accept: strange texts", acceptStrange},
		{"accept: after what waits", acceptAfterWaiting},
		{"accept: audit", acceptAudit},

		{"idempotency: same request", idempotencySame},
		{"idempotency: other request", idempotencyOther},
		{"idempotency: scope is app and user", idempotencyScope},
		{"idempotency: 50 at once", idempotencyConcurrent},

		{"quotas: 40 calls at once", quotaConcurrent},
		{"quotas: all of a task or nothing", quotaTogether},
		{"quotas: a repeated request", quotaKnown},

		{"contents: once, bounded in time", contentsKept},

		{"settle: every state to every state", settleStates},
		{"settle: wrong operation, agent, session or reference", settleGuards},
		{"settle: from one state only", settleFrom},
		{"settle: rows of one attempt in order", settleTwice},
		{"settle: many rows", settleMany},
		{"settle: processes", settleProcesses},
		{"settle: definitions that hosts reject", settleRejected},
		{"settle: a process that a later operation defines again", settleDefinedAgain},
		{"settle: journal", settleJournal},

		{"dispatch: states", dispatchStates},
		{"dispatch: sessions", dispatchSessions},

		{"session: newer only", sessionNewer},
		{"session: of several agents", sessionsOf},
		{"session: since when the journal is known", sessionJournal},
		{"session: whether definitions were restored after a lost journal", sessionRestored},
		{"session: never below the recorded protocol", sessionProtocol},
		{"session: description", sessionDescription},
		{"session: lifts the generations of an agent", sessionLifts},
		{"open: of one and of all", openAttempts},
		{"events: what caused them", eventCauses},
		{"events: round trip", eventRoundTrip},
		{"events: each once, also from several writers", eventOnce},
		{"events: filters and pages", eventPages},
		{"events: removed by age", eventsByAge},
		{"events: hosts, namespaces and processes share the room", eventsByNumber},
		{"processes: register and list", processesList},
		{"processes: many pages", processesPages},

		{"rebind", rebind},
		{"forget", forget},
		{"groups", groups},
		{"audit: limit", auditLimit},

		{"prune", prune},
		{"prune: large tasks and shared definitions", pruneLarge},
		{"tasks: lists by app and user", taskLists},
		{"tasks: items, verdicts and hosts", taskParts},

		{"not found", notFound},
		{"context", contexts},
		{"concurrency", concurrency},
		{"ping", func(t *testing.T, s control.Store) { must(t, s.Ping(t.Context())) }},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

// start is the time of everything in these tests. Stores keep milliseconds.
var start = time.Date(2026, 3, 4, 5, 6, 7, 891_000_000, time.UTC)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if reflect.DeepEqual(got, want) { // cmp takes seconds for thousands of attempts
		return
	}
	opts := cmp.Options{cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmpopts.EquateEmpty()}
	if d := cmp.Diff(want, got, opts); d != "" {
		t.Fatalf("%s (-want +got):\n%s", what, d)
	}
}

func wantKind(t *testing.T, err error, kind gozzard.ErrorKind) {
	t.Helper()
	var e *gozzard.Error
	if !errors.As(err, &e) || e.Kind != kind {
		t.Fatalf("got error %v, want one of kind %s", err, kind)
	}
}

func agentID(i int) gozzard.AgentID { return gozzard.AgentID(fmt.Sprintf("agent-%05d", i)) }

func addr(i int) gozzard.HostAddr {
	return gozzard.HostAddr{Cloud: 3, IP: netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})}
}

func spec(name string) []byte {
	return gozzard.EncodeSpec(&gozzard.Spec{Identity: gozzard.Identity{ProcName: name},
		Control: gozzard.Control{Start: "./start.sh " + name}, Policy: gozzard.DefaultPolicy()})
}

// attempts makes n pending attempts on n hosts.
func attempts(n int) []gozzard.Attempt {
	list := make([]gozzard.Attempt, n)
	body := spec("gamesvr")
	for i := range list {
		list[i] = gozzard.Attempt{
			Op: gozzard.NewOpID(), Agent: agentID(i), Addr: addr(i),
			Key:    gozzard.Key{Namespace: "bk.ns", Name: "gamesvr"},
			Action: gozzard.ActionStart, ResultKey: fmt.Sprintf("%s:bk.ns:gamesvr", addr(i)), Spec: body,
			State: gozzard.AttemptPending, Deadline: start.Add(time.Minute), Expires: start.Add(time.Hour),
		}
	}
	return list
}

// sampleTrace is a trace with a state.
const sampleTrace = gozzard.Trace("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 vendor=1")

func newTask(list []gozzard.Attempt) *record.NewTask {
	caller := gozzard.Caller{App: "bk_test", User: "admin"}
	hash := sha256.Sum256([]byte("request"))
	return &record.NewTask{
		Task:        gozzard.Task{Caller: caller, Door: "gse.v2", At: start, Targets: len(list), Trace: sampleTrace},
		Attempts:    list,
		RequestHash: hash,
		Audit: gozzard.AuditRow{At: start, Caller: caller, Act: "operate:start", RequestHash: hash,
			Targets: len(list)},
	}
}

// accept records attempts as one task.
func accept(t *testing.T, s control.Store, list []gozzard.Attempt) *record.NewTask {
	t.Helper()
	n := newTask(list)
	acc, err := s.Accept(t.Context(), n)
	must(t, err)
	if acc.Known {
		t.Fatal("a task without a key was known")
	}
	return n
}

// openSession registers a session of an agent that must be new.
func openSession(t *testing.T, s control.Store, agent gozzard.AgentID, session uint64) {
	t.Helper()
	_, opened, err := s.OpenSession(t.Context(), host(agent, session, 1, 1))
	must(t, err)
	if !opened {
		t.Fatalf("session %d of %s was not opened", session, agent)
	}
}

func host(agent gozzard.AgentID, session uint64, journal byte, lsn uint64) record.Host {
	return record.Host{Info: gozzard.HostInfo{Agent: agent}, Session: session,
		Journal: gozzard.JournalPos{ID: [16]byte{journal}, LSN: lsn}, LastSeen: start}
}

// dispatch marks one attempt as sent, and checks that it moved.
func dispatch(t *testing.T, s control.Store, a gozzard.Attempt, session uint64) {
	t.Helper()
	moved, err := s.Dispatch(t.Context(), []record.Dispatch{{Ref: a.Ref, Agent: a.Agent, Session: session,
		Deadline: start.Add(time.Minute)}})
	must(t, err)
	equal(t, "dispatched", moved, []bool{true})
}

func settlement(a gozzard.Attempt, to gozzard.AttemptState) record.Settlement {
	return record.Settlement{Ref: a.Ref, Op: a.Op, Agent: a.Agent, To: to,
		Outcome: gozzard.Outcome{Code: gozzard.CodeOK, Message: "→ " + to.String()}}
}

// settle records verdicts, and checks which of them moved their attempt.
func settle(t *testing.T, s control.Store, want []bool, rows ...record.Settlement) {
	t.Helper()
	moved, err := s.Settle(t.Context(), rows)
	must(t, err)
	equal(t, "moved", moved, want)
}

// states reads the states of a task's attempts.
func states(t *testing.T, s control.Store, seq gozzard.TaskSeq) []gozzard.AttemptState {
	t.Helper()
	list, err := s.Attempts(t.Context(), seq)
	must(t, err)
	out := make([]gozzard.AttemptState, len(list))
	for i := range list {
		out[i] = list[i].State
	}
	return out
}

func processes(t *testing.T, s control.Store, ids []gozzard.ProcID) []record.Process {
	t.Helper()
	var list []record.Process
	for p, err := range s.Processes(context.WithoutCancel(t.Context()), ids) {
		must(t, err)
		p.Task = 0 // processesList looks at it
		list = append(list, p)
	}
	return list
}
