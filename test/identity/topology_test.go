//go:build linux

package identity_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/gozzard/gozzard/client"
)

// document is a business with one process on the host of the world.
func (p *proc) document(program string) []byte {
	return fmt.Appendf(nil, `biz: %d
name: identity
clouds: [{id: 0, name: default area}]
sets:
  - {id: %d, name: one, env: 3, modules: [{id: %d, name: one, instances: [
      {id: %d, name: one, host: {ip: %s, cloud: 0}, processes: [{id: %d, name: gzalias, func_name: %s, user: %s, work_path: %s, pid_file: %s,
          start_cmd: ./start.sh, stop_cmd: ./stop.sh, timeout: 30, start_check_secs: 1}]}]}]}
`, p.w.n, p.w.n, p.w.n, p.w.n, p.w.ip(), p.w.n, program, p.w.account, p.Dir, p.PIDFile())
}

// P19: a topology is applied that has another name for a running process. Nothing is touched.
func TestP19TopologyWithAnotherName(t *testing.T) {
	each(t, func(w *world) {
		p := w.daemon("topology", "gzold")
		biz := client.BusinessSelection{Biz: w.n, Expression: "*.*.*.*.*"}
		apply := func(program string) {
			w.t.Helper()
			if _, err := w.own.ApplyTopology(w.t.Context(), w.n, p.document(program), client.ApplyOptions{}); err != nil {
				w.t.Fatalf("topology: %v", err)
			}
		}
		row := func() client.Process {
			page, err := w.own.Processes(w.t.Context(), client.ProcessQuery{BusinessSelection: biz}, 0, 10)
			if err != nil || len(page.Processes) != 1 {
				w.t.Fatalf("%+v, %v", page, err)
			}
			return page.Processes[0]
		}

		// Start it.
		apply("gzold")
		accepted, err := w.own.Operate(w.t.Context(), client.Operation{Action: "start",
			Selection: client.Selection{BusinessSelection: biz}})
		if err != nil {
			w.t.Fatal(err)
		}
		if a := p.finish(accepted); a.Verdict != client.Done {
			w.t.Fatalf("start: %+v", a)
		}
		pid := p.main()
		p.awaitLive("the status does not show it", func() bool { return int(row().PID) == pid && row().Managed })

		// Apply another name.
		apply("gznew")
		w.holds("after another name was applied", 3*time.Second, func() (string, bool) {
			r, m := row(), p.mains()
			return fmt.Sprintf("%+v, calls %v, processes %v", r, p.Calls(), named(m)), len(m) == 1 && m[0] == pid &&
				int(r.PID) == pid && r.State == "running" && len(p.Calls()) == 1
		})
	})
}
