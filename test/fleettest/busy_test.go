//go:build linux

package fleettest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// TestV12MoreOperationsThanFitIntoTheirTime: 40 restarts of one process at once on a host that is never away. Those that
// had to wait too long are not executed, and their text says that they waited; none says that the host was away.
func TestV12MoreOperationsThanFitIntoTheirTime(t *testing.T) {
	s := ft.StartServer(t, "")
	s.StartAgent(t, 1, "")
	d := newCommanded(t, openFolder(t), "gzcrowded")
	d.op(s, opStart, 0)

	// Send them all.
	body := ft.J{"meta": ft.J{"namespace": "gse", "name": d.Name}, "op_type": opRestart, "hosts": []ft.J{ft.Host(1)},
		"spec": d.Spec(ft.J{"op_timeout": 5})}
	var tasks []string
	for range 40 {
		tasks = append(tasks, s.Operate("operate_proc", body))
	}

	// Wait until every verdict is known.
	done, waited := 0, 0
	for _, task := range tasks {
		var e ft.Entry
		ft.Until(t, 2*time.Minute, func() string { return fmt.Sprintf("no verdict: %+v", e) }, func() bool {
			for _, e = range s.Results(task) {
				if strings.Contains(e.Msg, "did not answer") || strings.Contains(e.Msg, "no answer") {
					t.Errorf("a host that was never away: %+v", e)
				}
			}
			return e.Code != 115 && !strings.Contains(e.Msg, "not known yet")
		})

		switch {
		case e.Code == 0:
			done++
		case e.Code == 65535 && strings.HasPrefix(e.Msg,
			"not executed: its time was over while it waited for other operations on the same process"):
			waited++
		default:
			t.Errorf("%+v", e)
		}
	}

	// Both kinds are there, and the verdicts are true.
	if done == 0 || waited == 0 || d.Count("restart") != done {
		t.Errorf("%d done, %d waited too long, %d restarts", done, waited, d.Count("restart"))
	}
	fmt.Printf("fault V12: of 40 restarts at once %d were done and %d waited too long and say so\n", done, waited)
}
