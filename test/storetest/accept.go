package storetest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/taskname"
)

func acceptRoundTrip(t *testing.T, s control.Store) {
	list := attempts(3)
	list[0].Key = gozzard.Key{Namespace: "游戏业务", Name: "登录服务"}
	list[0].Labels = map[string]string{"大区": "华南一区", "proc_name": "登录"}
	list[0].Session, list[0].Adopt = 7, true
	list[1].Action, list[1].Spec, list[1].Labels = gozzard.ActionKill, nil, nil
	list[1].Addr = gozzard.HostAddr{}
	list[1].Agent, list[1].State = "", gozzard.AttemptNotExecuted
	list[1].Outcome = gozzard.Outcome{Code: gozzard.CodeUnreachable, Message: "没有这台主机"}
	list[2].State = gozzard.AttemptOK
	list[2].Spec = spec("另一个")
	list[2].Deadline, list[2].Expires = time.Time{}, time.Time{}
	list[2].Outcome = gozzard.Outcome{Code: gozzard.CodeOK, Message: "done", Hosted: true, Forced: true,
		Detail: &gozzard.Detail{PID: 4711, Hosted: true, Cmdline: "./登录 -f", Version: "1.2", CPU: 0.25, CPUAvg: 12.5,
			Mem: 3.5, MemKB: 1 << 33, ZoneOffset: 28800}}
	n := newTask(list)
	n.Task.Caller = gozzard.Caller{App: "bk_app", User: "张三", Asserted: true}
	acc, err := s.Accept(t.Context(), n)
	must(t, err)

	if acc.Known || acc.Task.Seq <= 0 || acc.Task.ID != gozzard.NewTaskID(acc.Task.Seq, start) {
		t.Fatalf("accepted %+v", acc)
	}

	equal(t, "task filled in", n.Task, acc.Task)

	for i := range n.Attempts {
		equal(t, "reference filled in", n.Attempts[i].Ref, gozzard.AttemptRef{Task: acc.Task.Seq, Index: int32(i)})
	}

	task, err := s.Task(t.Context(), acc.Task.Seq)
	must(t, err)
	equal(t, "task", task, acc.Task)
	got, err := s.Attempts(t.Context(), acc.Task.Seq)
	must(t, err)
	equal(t, "attempts", got, n.Attempts)
}

func acceptEmpty(t *testing.T, s control.Store) {
	n := accept(t, s, nil)
	got, err := s.Attempts(t.Context(), n.Task.Seq)
	must(t, err)
	equal(t, "attempts", len(got), 0)
}

func acceptOrder(t *testing.T, s control.Store) {
	var last gozzard.TaskSeq
	for range 20 {
		n := accept(t, s, attempts(1))
		if n.Task.Seq <= last {
			t.Fatalf("task %d came after %d", n.Task.Seq, last)
		}
		last = n.Task.Seq
	}
}

// acceptAnnounced: Accept announces a task with everything filled in, once, in the order of numbers, and before it
// returns.
func acceptAnnounced(t *testing.T, s control.Store) {
	const tasks = 60
	committed := make(chan *record.NewTask, tasks)
	var announced []gozzard.TaskSeq
	var mu sync.Mutex // held from the receipt to the note, so that announced has the order of the channel
	receive := func() {
		mu.Lock()
		defer mu.Unlock()
		for {
			select {
			case n := <-committed:
				announced = append(announced, n.Task.Seq)
				if n.Task.ID == "" || n.Attempts[1].Ref != (gozzard.AttemptRef{Task: n.Task.Seq, Index: 1}) {
					t.Errorf("announced before it was filled in: %+v", n.Task)
				}
			default:
				return
			}
		}
	}

	var wg sync.WaitGroup
	for range tasks {
		wg.Go(func() {
			n := newTask(attempts(2))
			n.Committed = committed
			acc, err := s.Accept(t.Context(), n)
			if err != nil {
				t.Errorf("accept: %v", err)
			}

			receive()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Contains(announced, acc.Task.Seq) {
				t.Error("accepted before it was announced")
			}
		})
	}

	wg.Wait()
	equal(t, "announced", len(announced), tasks)

	if !slices.IsSorted(announced) {
		t.Errorf("announced out of order: %v", announced)
	}
}

// acceptAfterWaiting: where several servers accept tasks, an attempt is recorded as dispatched only if no older one on its
// agent waits.
func acceptAfterWaiting(t *testing.T, s control.Store) {
	const own = 3
	for _, inOrder := range []bool{false, true} {
		for i, older := range []gozzard.AttemptState{gozzard.AttemptPending, gozzard.AttemptDispatched,
			gozzard.AttemptUnknown, gozzard.AttemptNotExecuted} {
			list := attempts(2)
			for k := range list { // other agents in each round
				list[k].Agent = gozzard.AgentID(fmt.Sprintf("agent-%v-%d-%d", inOrder, i, k))
				list[k].State, list[k].Session = gozzard.AttemptDispatched, own
			}
			before := attempts(1)
			before[0].Agent, before[0].State = list[0].Agent, older
			accept(t, s, before)

			n := newTask(list)
			n.InOrder = inOrder
			acc, err := s.Accept(t.Context(), n)
			must(t, err)
			got, err := s.Attempts(t.Context(), acc.Task.Seq)
			must(t, err)
			equal(t, "announced", got, n.Attempts)

			state, session := gozzard.Birth(own, !inOrder || older != gozzard.AttemptPending)
			equal(t, fmt.Sprintf("after %v", older), got[0].State, state)
			equal(t, "its session", got[0].Session, session)
			equal(t, "another agent", got[1].State, gozzard.AttemptDispatched)
		}
	}
}

func acceptMany(t *testing.T, s control.Store) {
	n := newTask(attempts(2500))
	for i := range n.Attempts {
		n.Register = append(n.Register, record.Process{
			ID: gozzard.ProcID{Agent: n.Attempts[i].Agent, Key: n.Attempts[i].Key}, Spec: n.Attempts[i].Spec,
			Wanted: gozzard.StateRunning, RegisteredAt: start})
	}
	acc, err := s.Accept(t.Context(), n)
	must(t, err)
	got, err := s.Attempts(t.Context(), acc.Task.Seq)
	must(t, err)
	equal(t, "attempts", got, n.Attempts)
	equal(t, "processes", len(processes(t, s, nil)), len(n.Register))
}

// acceptStrange: no text that a caller or an agent can send makes a write fail.
func acceptStrange(t *testing.T, s control.Store) {
	evil := "a\x00b\xff'; DROP TABLE tasks; --\U0001F986"
	list := attempts(1)
	list[0].ResultKey = evil
	list[0].Labels = map[string]string{evil: evil}
	n := newTask(list)
	n.Task.Caller = gozzard.Caller{App: evil, User: evil}
	n.Task.Door, n.Audit.Act, n.Audit.Caller = evil, evil, n.Task.Caller
	n.IdempotencyKey = evil + strings.Repeat("长", 200)
	acc, err := s.Accept(t.Context(), n)
	must(t, err)
	again, err := s.Accept(t.Context(), n)
	must(t, err)

	if !again.Known || again.Task.Seq != acc.Task.Seq {
		t.Fatalf("the key was not found again: %+v", again)
	}

	many := attempts(700) // large tasks are written in another way than small ones
	for i := range many {
		many[i].ResultKey, many[i].Session = evil, math.MaxUint64
	}
	accept(t, s, many)

	openSession(t, s, list[0].Agent, 1)
	dispatch(t, s, list[0], 1)
	row := settlement(list[0], gozzard.AttemptFailed)
	row.Outcome = gozzard.Outcome{Code: gozzard.CodeCommandFailed, Message: evil + strings.Repeat("x", 100_000)}
	settle(t, s, []bool{true}, row)
	h := host("evil", 1, 1, 1)
	h.Info.Hostname, h.Info.Degraded = evil, []string{evil}
	_, _, err = s.OpenSession(t.Context(), h)
	must(t, err)
	_, err = s.Hosts(t.Context())
	must(t, err)
	_, err = s.Attempts(t.Context(), acc.Task.Seq)
	must(t, err)
	_, err = s.Audit(t.Context(), 1)
	must(t, err)
	processes(t, s, []gozzard.ProcID{{Agent: gozzard.AgentID(evil), Key: gozzard.Key{Namespace: evil, Name: evil}}})
}

func acceptAudit(t *testing.T, s control.Store) {
	first := accept(t, s, attempts(2))
	second := accept(t, s, attempts(1))
	rows, err := s.Audit(t.Context(), 10)
	must(t, err)
	equal(t, "rows", len(rows), 2)

	if rows[0].Seq <= rows[1].Seq {
		t.Fatalf("row %d is listed before %d", rows[0].Seq, rows[1].Seq)
	}

	for i, n := range []*record.NewTask{second, first} {
		want := n.Audit
		want.Seq, want.TaskID = rows[i].Seq, taskname.Of(n.Task.ID)
		equal(t, "audit row", rows[i], want)
	}
}

func idempotencySame(t *testing.T, s control.Store) {
	n := newTask(attempts(2))
	n.IdempotencyKey = "deploy-钥匙-1"
	first, err := s.Accept(t.Context(), n)
	must(t, err)
	again := newTask(attempts(2))
	again.IdempotencyKey = n.IdempotencyKey
	committed := make(chan *record.NewTask, 1)
	again.Committed = committed
	acc, err := s.Accept(t.Context(), again)
	must(t, err)
	equal(t, "known tasks announced as new ones", len(committed), 0)
	equal(t, "known", acc, record.Accepted{Task: first.Task, Known: true})
	rows, err := s.Audit(t.Context(), 10)
	must(t, err)
	equal(t, "audit rows", len(rows), 1)
	open, err := s.Open(t.Context())
	must(t, err)
	equal(t, "open attempts", len(open), 2)

	// The same of some agents.
	agents := []gozzard.AgentID{open[1].Agent, "unknown", open[0].Agent}
	of, err := s.OpenOf(t.Context(), agents)
	must(t, err)
	equal(t, "open attempts of both agents", of, open)
	of, err = s.OpenOf(t.Context(), agents[:2])
	must(t, err)
	equal(t, "open attempts of one agent", of, open[1:])
	of, err = s.OpenOf(t.Context(), nil)
	must(t, err)
	equal(t, "open attempts of no agent", len(of), 0)
}

func idempotencyOther(t *testing.T, s control.Store) {
	n := newTask(attempts(1))
	n.IdempotencyKey = "k"
	_, err := s.Accept(t.Context(), n)
	must(t, err)
	other := newTask(attempts(1))
	other.IdempotencyKey, other.RequestHash = "k", [32]byte{1}
	committed := make(chan *record.NewTask, 1)
	other.Committed = committed
	_, err = s.Accept(t.Context(), other)
	wantKind(t, err, gozzard.ErrInvalid)
	equal(t, "rejected tasks announced", len(committed), 0)
	if name := taskname.Of(n.Task.ID); !strings.Contains(err.Error(), name) {
		t.Errorf("the error does not name task %s: %v", name, err)
	}

	open, err := s.Open(t.Context())
	must(t, err)
	equal(t, "open attempts", len(open), 1)
}

func idempotencyScope(t *testing.T, s control.Store) {
	for _, c := range []gozzard.Caller{{App: "a"}, {App: "b"}, {App: "a", User: "u"}, {App: "a", User: "v"}} {
		has, err := s.HasKey(t.Context(), c, "k")
		must(t, err)
		equal(t, "key before its task", has, false)
		n := newTask(attempts(1))
		n.IdempotencyKey, n.Task.Caller = "k", c
		acc, err := s.Accept(t.Context(), n)
		must(t, err)
		if acc.Known {
			t.Fatalf("the key of another app or user counts for %+v", c)
		}
		has, err = s.HasKey(t.Context(), c, "k")
		must(t, err)
		equal(t, "key after its task", has, true)
	}
	for range 2 {
		accept(t, s, attempts(1)) // without a key a task is never known
	}
}

func idempotencyConcurrent(t *testing.T, s control.Store) {
	const callers = 50
	var wg sync.WaitGroup
	got := make([]record.Accepted, callers)
	errs := make([]error, callers)
	for i := range callers {
		wg.Go(func() {
			n := newTask(attempts(3))
			n.IdempotencyKey = "once"
			got[i], errs[i] = s.Accept(t.Context(), n)
		})
	}

	wg.Wait()
	created := 0
	for i := range callers {
		must(t, errs[i])
		if !got[i].Known {
			created++
		}
		equal(t, fmt.Sprintf("task of caller %d", i), got[i].Task, got[0].Task)
	}

	equal(t, "tasks created", created, 1)
	open, err := s.Open(t.Context())
	must(t, err)
	equal(t, "open attempts", len(open), 3)
	rows, err := s.Audit(t.Context(), 100)
	must(t, err)
	equal(t, "audit rows", len(rows), 1)
}
