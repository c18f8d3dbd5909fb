package storetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/taskname"
)

// AuditRecord is a store with its audit.
type AuditRecord interface {
	control.Store
	control.AuditStore
}

// RunAudit runs the contract of control.AuditStore. open gives a new, empty store and closes it at the end of the test.
func RunAudit(t *testing.T, open func(t *testing.T) AuditRecord) {
	for _, c := range []struct {
		name string
		test func(*testing.T, AuditRecord)
	}{
		{"empty", auditEmpty},
		{"every row is chained", auditChained},
		{"many at once", auditConcurrent},
		{"verdicts stay after their task is pruned", auditOfVerdicts},
		{"nothing to do is no failure", auditOfNothingToDo},
		{"refusals by policy", auditOfPolicy},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

func auditEmpty(t *testing.T, s AuditRecord) {
	head, err := s.AuditHead(t.Context())
	must(t, err)
	equal(t, "head", head, gozzard.AuditHead{})
	equal(t, "rows", len(followAudit(t, s)), 0)
}

// followAudit reads the whole audit in small pages and checks its chain.
func followAudit(t *testing.T, s AuditRecord) (all []gozzard.AuditLink) {
	t.Helper()
	head, err := s.AuditHead(t.Context())
	must(t, err)
	var check gozzard.AuditCheck
	for {
		page, err := s.AuditAfter(t.Context(), check.Head.Seq, 7)
		must(t, err)
		for i := range page {
			must(t, check.Follow(&page[i]))
		}
		all = append(all, page...)
		if len(page) == 0 {
			must(t, check.End(head))
			return all
		}
	}
}

func auditChained(t *testing.T, s AuditRecord) {
	var want []string
	for i := range 10 {
		n := newTask(attempts(3))
		n.Audit.HostsHash = gozzard.HashHosts(n.Attempts)
		n.Audit.Act = strings.Repeat("作", i) + "\x00\xff"
		n.Audit.At = start.Add(time.Duration(i) * 333 * time.Microsecond) // finer than the record stores
		_, err := s.Accept(t.Context(), n)
		must(t, err)
		want = append(want, taskname.Of(n.Task.ID))
	}

	must(t, s.SetGroups(t.Context(), nil, gozzard.AuditRow{At: start, Act: "set_groups"}))
	links := followAudit(t, s)
	equal(t, "rows", len(links), 11)
	got := make([]string, 0, len(links))
	for i := range links[:10] {
		got = append(got, links[i].TaskID)
		if links[i].HostsHash == [32]byte{} {
			t.Error("a row has no hash of its hosts")
		}
	}

	equal(t, "tasks in order", got, want)
	newest, err := s.Audit(t.Context(), 100)
	must(t, err)
	slices.Reverse(newest)

	for i := range newest {
		equal(t, "the same row", newest[i], links[i].AuditRow)
	}
}

func auditConcurrent(t *testing.T, s AuditRecord) {
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if _, err := s.Accept(t.Context(), newTask(attempts(1))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	equal(t, "rows", len(followAudit(t, s)), 160)
}

func auditOfVerdicts(t *testing.T, s AuditRecord) {
	n := newTask(attempts(5))
	n.Task.At = start.Add(-2 * time.Hour)
	for i, state := range []gozzard.AttemptState{gozzard.AttemptOK, gozzard.AttemptFailed, gozzard.AttemptOK,
		gozzard.AttemptNotExecuted, gozzard.AttemptInterrupted} {
		n.Attempts[i].State = state
	}

	_, err := s.Accept(t.Context(), n)
	must(t, err)
	pruned, err := s.Prune(t.Context(), start.Add(-time.Hour), 10)
	must(t, err)
	equal(t, "pruned", pruned, 1)
	links := followAudit(t, s)
	equal(t, "rows", len(links), 2)
	last := links[1]
	equal(t, "act", last.Act, "verdicts:ok=2,failed=1,not_executed=1,interrupted=1")
	equal(t, "task", last.TaskID, taskname.Of(n.Task.ID))
	equal(t, "caller", last.Caller, n.Task.Caller)
	equal(t, "targets", last.Targets, 5)
}

// auditOfNothingToDo: an attempt that found nothing to do counts as noted in the audit, as in the list of tasks. The same code
// of another action is a failure.
func auditOfNothingToDo(t *testing.T, s AuditRecord) {
	list := attempts(4)
	for i, a := range []gozzard.Action{gozzard.ActionStop, gozzard.ActionKill, gozzard.ActionReload, gozzard.ActionStop} {
		list[i].Action, list[i].State = a, gozzard.AttemptDispatched
	}
	n := accept(t, s, list)
	for i, a := range n.Attempts {
		row := settlement(a, gozzard.AttemptFailed)
		row.Outcome = gozzard.Outcome{Code: gozzard.CodeNotRunning}
		if i == 3 {
			row.To, row.Outcome.Code = gozzard.AttemptOK, gozzard.CodeOK
		}
		settle(t, s, []bool{true}, row)
	}

	links := followAudit(t, s)
	equal(t, "act", links[1].Act, "verdicts:ok=1,failed=1,noted=2")
	equal(t, "outcome", links[1].Outcome, "not_running=3,ok=1")

	// The same for a task that has its verdicts when it is accepted.
	done := newTask(attempts(1))
	done.Attempts[0].Action, done.Attempts[0].State = gozzard.ActionStop, gozzard.AttemptFailed
	done.Attempts[0].Outcome.Code = gozzard.CodeNotRunning
	_, err := s.Accept(t.Context(), done)
	must(t, err)
	links = followAudit(t, s)
	equal(t, "act", links[len(links)-1].Act, "verdicts:noted=1")
}

// auditOfPolicy: a task that the policies of hosts rejected has one row about it, however many hosts there are.
func auditOfPolicy(t *testing.T, s AuditRecord) {
	const hosts = 40
	n := accept(t, s, attempts(hosts))
	for i, a := range n.Attempts {
		row := settlement(a, gozzard.AttemptNotExecuted)
		row.Outcome = gozzard.Outcome{Code: gozzard.CodeRefused, Policy: i%2 == 0,
			Message: fmt.Sprintf("reason %d\nforged %s", i%10, strings.Repeat("x", 1000))}
		settle(t, s, []bool{true}, row)
	}

	links := followAudit(t, s)
	equal(t, "rows: of the task, of its verdicts, of the refusals", len(links), 3)
	row := links[2].AuditRow
	equal(t, "act", row.Act, "refused:policy")
	equal(t, "task", row.TaskID, taskname.Of(n.Task.ID))
	equal(t, "row of the task", row.Ref, links[0].Seq)
	equal(t, "caller", row.Caller, n.Task.Caller)
	equal(t, "accounts", row.Accounts, gozzard.AgentAccount)
	equal(t, "targets", row.Targets, hosts/2)
	if !strings.HasPrefix(row.Outcome, "refused by policy: reason 0 forged") || len(row.Outcome) > 700 ||
		!strings.HasSuffix(row.Outcome, "; 8 with other reasons") {
		t.Errorf("outcome: %q", row.Outcome)
	}

	// Other refusals of hosts have none.
	other := accept(t, s, attempts(1))
	refused := settlement(other.Attempts[0], gozzard.AttemptNotExecuted)
	refused.Outcome = gozzard.Outcome{Code: gozzard.CodeRefused, Message: `"policy":true`}
	settle(t, s, []bool{true}, refused)
	equal(t, "rows", len(followAudit(t, s)), 5)
}
