//go:build linux

package fleettest_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// rolledProcess notes each restart in a file. A restart fails where there is a file "broken", and with port 666 the process ends soon.
const rolledProcess = `func_name: sleep, work_path: CONF, pid_file: CONF/HOST.pid, start_cmd: "sleep 1000 & echo $! >HOST.pid", stop_cmd: "kill $(cat HOST.pid)",
  restart_cmd: "echo r >>HOST.restarts; test ! -e HOST.broken || exit 3; kill $(cat HOST.pid); s=1000; grep -q :666 127.0.0.HOST.conf && s=3; sleep $s & echo $! >HOST.pid",
  start_check_secs: 1`

// rollout is a business on three hosts that run.
type rollout struct {
	*configRig
	restarts [3]int // of each host, as they must be
}

func newRollout(t *testing.T) *rollout {
	t.Helper()
	r := &rollout{configRig: newConfigRig(t, 3, rolledProcess)}
	r.startAll()
	r.apply(80)
	r.run(0, "^release: 3 done of 3$", "release", "nginx")
	return r
}

// hosts checks which port each host has in its file, and how often its process was restarted since the last look.
func (r *rollout) hosts(what string, ports, restarts [3]int) {
	r.t.Helper()
	for i := range ports {
		r.has(i+1, fmt.Sprintf("listen 127.0.0.%d:%d;\n", i+1, ports[i]))
		r.restarts[i] += restarts[i]
		if n := strings.Count(r.read(fmt.Sprintf("%d.restarts", i+1)), "r"); n != r.restarts[i] {
			r.t.Errorf("%s: host %d has %d restarts, want %d", what, i+1, n, r.restarts[i])
		}
	}
}

// begin starts a rollout, waits until the first host has its file, and returns the number of the job.
func (r *rollout) begin(credentials string, port int, watch string) string {
	r.t.Helper()
	r.apply(port)
	out := r.runAs(credentials, 0, "^[0-9]+$", "release", "nginx", "--then", "restart", "--batch", "1", "--watch", watch, "--detach")
	ft.Until(r.t, time.Minute, func() string { return "the first host does not get its file" },
		func() bool { return strings.Contains(r.read("127.0.0.1.conf"), fmt.Sprintf(":%d;", port)) })
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return lines[len(lines)-1]
}

// ends waits for the end of a job, which must print what a pattern says.
func (r *rollout) ends(job string, code int, prints string) {
	r.t.Helper()
	ft.Until(r.t, 2*time.Minute, func() string { return "job " + job + " does not end" }, func() bool {
		page, err := r.job(job)
		return err == nil && (page == "succeeded" || page == "failed")
	})
	r.run(code, prints, "history", job)
}

// job reads the state of a job.
func (r *rollout) job(id string) (string, error) {
	var out struct {
		State string `json:"state"`
	}
	admin := &tenant{API: r.s.API, t: r.t}
	if code, text := admin.native(http.MethodGet, "/api/v1/config/jobs/"+id+"?biz=2", nil, &out); code != http.StatusOK {
		return "", fmt.Errorf("%d %s", code, text)
	}
	return out.State, nil
}

// TestConfigRollout releases from batch to batch with agents that run: failures stop it before it reaches the next hosts.
func TestConfigRollout(t *testing.T) {
	t.Parallel() // it mostly waits
	r := newRollout(t)

	// One failure stops it, and a number of them if that is allowed.
	broken := filepath.Join(r.conf, "2.broken")
	r.write(broken, "")
	r.apply(81)
	r.run(6, "(?s)the rollout stopped before this host \\(1 failed, at most 0 may fail\\): nothing was written here.*, 1 failed, 1 not tried of 3",
		"release", "nginx", "--then", "restart", "--batch", "1")
	r.hosts("one failure", [3]int{81, 81, 80}, [3]int{1, 1, 0})
	r.apply(82)
	r.run(6, "^release: 2 done, 1 failed of 3$", "release", "nginx", "--then", "restart", "--batch", "1", "--max-failed", "1")
	r.hosts("one failure that may be", [3]int{82, 82, 82}, [3]int{1, 1, 1})
	if err := os.Remove(broken); err != nil {
		t.Fatal(err)
	}

	// A process that ends while it is watched has failed, although its restart was good.
	r.apply(666)
	r.run(1, "the file was released, but then: the process", "release", "nginx", "--then", "restart", "--batch", "2", "--watch", "8s")
	r.hosts("processes that end", [3]int{666, 666, 82}, [3]int{1, 1, 0})

	// What a rollout cannot be.
	r.run(2, "need --batch", "release", "nginx", "--watch", "8s")
	r.run(2, "at most 1h", "release", "nginx", "--batch", "1", "--watch", "61m")
	r.run(2, "batch", "release", "nginx", "--batch", "1000000")
}

// TestConfigRolloutOfAKilledServer kills the server while the first batch is watched. It goes on, and nothing happens twice.
func TestConfigRolloutOfAKilledServer(t *testing.T) {
	t.Parallel() // it mostly waits
	r := newRollout(t)
	job := r.begin(filepath.Join(r.s.Data, "credentials.json"), 83, "5s")
	r.s.Kill(syscall.SIGKILL)
	r.has(2, "listen 127.0.0.2:80;\n")
	r.has(3, "listen 127.0.0.3:80;\n")
	r.s.Again()
	r.s.AwaitReady()
	r.ends(job, 0, "^release: 3 done of 3$")
	r.hosts("the server is back", [3]int{83, 83, 83}, [3]int{1, 1, 1})
}

// TestTT5RolloutStopped: a rollout ends by hand and with the rights of its creator, and not by a stranger.
func TestTT5RolloutStopped(t *testing.T) {
	t.Parallel() // it mostly waits
	r := newRollout(t)
	may := func(biz int, actions ...string) ft.J {
		return ft.J{"role": "operator", "businesses": []int{biz}, "accounts": []string{"*"}, "actions": actions}
	}
	grant := may(2, "configure", "restart", "query")
	roller := r.credentials(newTenant(t, r.s, "roller", grant))
	stranger := r.credentials(newTenant(t, r.s, "roll-stranger", may(3, "configure")))
	watcher := r.credentials(newTenant(t, r.s, "roll-watcher", may(2, "query")))

	// By hand: it does not wait until its time to watch is over.
	job := r.begin(roller, 84, "1h")
	r.runAs(stranger, 5, "", "stop", job, "--biz", "2")
	r.runAs(stranger, 5, "", "stop", job, "--biz", "3")
	r.runAs(watcher, 4, "may not release configuration files", "stop", job, "--biz", "2")
	r.run(0, "stops", "stop", job)
	r.ends(job, 6, "the job was stopped before it came to this host: nothing was written here")
	r.hosts("stopped", [3]int{84, 80, 80}, [3]int{1, 0, 0})
	r.run(1, "has ended", "stop", job)
	r.run(2, "number of a job", "stop", "x")

	// A creator that loses the right reaches no further host.
	job = r.begin(roller, 85, "6s")
	admin := &tenant{API: r.s.API, t: t}
	if status, text := admin.native(http.MethodDelete, "/api/v1/grants", ft.J{"app": "roller", "grant": grant}, nil); status/100 != 2 {
		t.Fatalf("%d %s", status, text)
	}
	r.ends(job, 1, "may not configure business 2 any more")
	r.hosts("the right is gone", [3]int{85, 80, 80}, [3]int{1, 0, 0})
}
