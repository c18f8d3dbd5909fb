//go:build linux

package faults_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
	"github.com/gozzard/gozzard/test/sim"
)

var (
	overloadHosts = flag.Int("faults.overload.hosts", 150, "simulated hosts of V15")
	overloadTime  = flag.Duration("faults.overload", 6*time.Second, "how long V15 overloads the server")
)

// overload is a server with simulated hosts, and callers that give it work.
type overload struct {
	t     *testing.T
	s     *ft.Server
	other *ft.API // another app
	hosts []ft.J
	names atomic.Int64

	refused atomic.Int64 // calls
	calls   sync.WaitGroup
	mu      sync.Mutex
	tasks   []string // of flood
}

// overloadNames is on how many processes of each host callers operate: operations on one process run one after another.
const overloadNames = 10

// overloadRounds is how often V15 tries. Other programs on the machine take processor time at any moment, so one round may
// say too little about the server. A load that feeds itself fails in every round.
const overloadRounds = 3

// overloadSlower is how many times as long 99 of 100 small tasks may take. Behind all large tasks they would take ten
// times as long and more.
const overloadSlower = 5

// V15: a server that gets three times what it can do does as much as at its limit, rejects the rest, and is at rest soon
// after the load ends: no repeat makes more load. Every attempt that it accepted has its verdict, and the small tasks of
// another app take about as long as they do at the limit.
func TestV15Overload(t *testing.T) {
	o := startOverload(t)
	rest := cpuPerSecond(o.s, 3*time.Second)

	// Overload it.
	var r overloadRound
	for range overloadRounds {
		r = o.round()
		fmt.Println("fault V15:", r)
		if t.Failed() || r.ratio() >= 0.8 && r.slower() <= overloadSlower {
			break
		}
	}
	if r.ratio() < 0.8 {
		t.Errorf("at 3 times the load the server does %.0f %% of what it can do", 100*r.ratio())
	}
	if r.slower() > overloadSlower {
		t.Errorf("at 3 times the load 99 of 100 small tasks of another app take %.1f times as long", r.slower())
	}

	// Let it come to rest. All verdicts are final, so nothing is left to repeat.
	awaitRest(t, o.s, "V15", rest)
}

// awaitRest waits until the server uses about as little processor time as before a load, a minute at most.
func awaitRest(t *testing.T, s *ft.Server, id string, before float64) {
	t.Helper()
	ended, last := time.Now(), 0.0
	ft.Until(t, time.Minute, func() string {
		return fmt.Sprintf("the server uses %.0f ms of a processor a second, and %.0f before the load", last, before)
	}, func() bool {
		last = cpuPerSecond(s, 2*time.Second)
		return last <= 2*before+50
	})
	fmt.Printf("fault %s: at rest %.0f s after the load\n", id, time.Since(ended).Seconds())
}

// overloadRound is what one round found.
type overloadRound struct {
	limit, over overloadPhase // at the limit, and at three times of it
	sent        int           // operations in calls
	refused     int64         // calls
}

// overloadPhase is what the server did in some time.
type overloadPhase struct {
	took     time.Duration
	cpu      time.Duration // of the server
	idle     time.Duration // of all processors of the machine
	verdicts int64
	small    []time.Duration // of tasks of another app, sorted
}

// ratio compares what the server does at three times its load with what it can do.
func (r overloadRound) ratio() float64 { return float64(r.limit.cost()) / float64(r.over.cost()) }

// slower compares the times of small tasks.
func (r overloadRound) slower() float64 {
	return float64(quantile(r.over.small, 0.99)) / float64(max(quantile(r.limit.small, 0.99), time.Millisecond))
}

// cost is the processor time that a verdict takes, with the time in which processors had nothing to do: that could have been
// used. So it grows when the server does useless things and when it waits, and does not depend on what other programs
// leave of the machine.
func (p overloadPhase) cost() time.Duration {
	return max((p.cpu+p.idle)/time.Duration(max(p.verdicts, 1)), 1).Round(time.Microsecond)
}

// String is for the output of the test.
func (r overloadRound) String() string {
	return fmt.Sprintf("at capacity %v; at 3 times the load %v; %d operations in calls, %d calls refused", r.limit, r.over,
		r.sent, r.refused)
}

// String is for the output of the test.
func (p overloadPhase) String() string {
	n := time.Duration(max(p.verdicts, 1))
	return fmt.Sprintf("%.0f verdicts a second, each for %v of processor time of the server and %v of idle time, %d small tasks "+
		"of another app: p50 %v, p90 %v, p99 %v", float64(p.verdicts)/p.took.Seconds(), (p.cpu / n).Round(time.Microsecond),
		(p.idle / n).Round(time.Microsecond), len(p.small), quantile(p.small, 0.5), quantile(p.small, 0.9),
		quantile(p.small, 0.99))
}

// round measures what the server can do, and then gives it three times as much.
func (o *overload) round() (r overloadRound) {
	// What it can do: callers that wait for each task before the next one.
	r.limit = o.phase(func() int64 {
		var done atomic.Int64
		began := time.Now()
		for range 3 {
			o.calls.Go(func() {
				for time.Since(began) < *overloadTime {
					done.Add(o.await(o.s.API, o.operate(o.s.API, o.hosts)))
				}
			})
		}
		o.calls.Wait()
		return done.Load()
	})
	if r.limit.verdicts == 0 {
		o.t.Fatal("the server executes nothing")
	}

	// Three times that, by callers that do not wait, until the last verdict.
	r.over = o.phase(func() (done int64) {
		o.refused.Store(0)
		o.tasks = nil
		r.sent = o.flood(3*float64(r.limit.verdicts)/r.limit.took.Seconds(), *overloadTime)
		o.calls.Wait()
		for _, task := range o.tasks {
			done += o.await(o.s.API, task)
		}
		return done
	})
	r.refused = o.refused.Load()
	return r
}

// phase measures what the server does during work, which counts verdicts, with small tasks of another app beside it.
func (o *overload) phase(work func() int64) (p overloadPhase) {
	began, cpu, idle := time.Now(), o.s.CPU(), machineIdle(o.t)
	stop := make(chan struct{})
	var other sync.WaitGroup
	other.Go(func() { o.smallTasks(stop, &p.small) })

	p.verdicts = work()
	p.took, p.cpu, p.idle = time.Since(began), o.s.CPU()-cpu, machineIdle(o.t)-idle
	close(stop)
	other.Wait()

	slices.Sort(p.small)
	if len(p.small) == 0 {
		o.t.Error("no small task of another app got its verdict")
	}
	return p
}

// startOverload starts everything, and registers the processes.
func startOverload(t *testing.T) *overload {
	t.Helper()
	o := &overload{t: t, s: ft.StartServer(t, "", "--log-level", "warn")}
	o.s.StartSim(t, *overloadHosts)
	o.hosts = simulated(*overloadHosts)
	awaitHosts(t, o.s, o.hosts)

	// Make another app, and let both operate once on every process.
	o.other = otherApp(t, o.s)
	for range overloadNames {
		o.await(o.s.API, o.operate(o.s.API, o.hosts))
	}
	return o
}

// simulated names the first hosts of a simulated fleet.
func simulated(n int) (hosts []ft.J) {
	for i := range n {
		hosts = append(hosts, ft.J{"ip": simulatedIP(i), "bk_cloud_id": 0})
	}
	return hosts
}

// simulatedIP is the address of a simulated host, counted from 0.
func simulatedIP(i int) string { return sim.Addr(0, i).IP.String() }

// awaitHosts waits until all hosts are online.
func awaitHosts(t *testing.T, s *ft.Server, hosts []ft.J) {
	t.Helper()
	online := 0
	words := func() string { return fmt.Sprintf("%d of %d hosts are online", online, len(hosts)) }
	ft.Until(t, 2*time.Minute, words, func() bool {
		var states map[string]struct {
			Alive int `json:"bk_agent_alive"`
		}
		s.OK("get_agent_status", ft.J{"hosts": hosts}, &states)
		online = 0
		for _, state := range states {
			online += state.Alive
		}
		return online == len(hosts)
	})
}

// otherApp makes an app that may do everything.
func otherApp(t *testing.T, s *ft.Server) *ft.API {
	t.Helper()
	cred, err := json.Marshal(ft.J{"bk_app_code": s.Cred.AppCode, "bk_app_secret": s.Cred.Secret,
		"bk_username": s.Cred.Username})
	if err != nil {
		t.Fatal(err)
	}
	ans, err := s.Post("/api/v1/apps", []byte(`{"code": "other", "asserts_users": true, "unknown_users": true, "grants": [{"role": "admin"}]}`),
		http.Header{"X-Bkapi-Authorization": {string(cred)}})
	var made struct{ Secret string }
	if json.Unmarshal(ans.Raw, &made) != nil || made.Secret == "" { // err only says that it has another form
		t.Fatalf("cannot make an app: %s, %v", ans.Raw, err)
	}
	api := s.For(t)
	api.Cred.AppCode, api.Cred.Secret = "other", made.Secret
	return api
}

// operate reloads a process on hosts. It returns the task, "" when the server refuses the call for now.
func (o *overload) operate(api *ft.API, hosts []ft.J) string {
	name := fmt.Sprintf("p%d", o.names.Add(1)%overloadNames)
	ans, err := api.Try("operate_proc", ft.J{"meta": ft.J{"namespace": api.Cred.AppCode, "name": name}, "op_type": 8,
		"hosts": hosts, "spec": ft.J{"identity": ft.J{"proc_name": name, "setup_path": "/srv/" + name,
			"pid_path": "/srv/" + name + "/pid", "user": "root"}, "control": ft.J{"start_cmd": "ok", "stop_cmd": "ok",
			"reload_cmd": "ok"}, "resource": ft.J{"cpu": 10, "mem": 10}, "monitor_policy": ft.J{"auto_type": 1}}})
	var d struct {
		TaskID string `json:"task_id"`
	}
	switch {
	case err != nil:
		o.t.Errorf("a call failed: %v", err)
	case ans.Code == 1306429:
		o.refused.Add(1)
	case ans.Code != 0 || json.Unmarshal(ans.Data, &d) != nil:
		o.t.Errorf("a call failed: %s", ans.Raw)
	}
	return d.TaskID
}

// await waits until a task is final. It returns how many of its attempts were executed.
func (o *overload) await(api *ft.API, task string) int64 {
	if task == "" {
		return 0
	}
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); {
		status, body := api.Get(o.t, "/api/v1/tasks/"+url.PathEscape(task)+"?wait=30s&show=none")
		var state struct {
			Final  bool
			Counts struct{ Done int64 }
		}
		if status != 200 || json.Unmarshal([]byte(body), &state) != nil {
			o.t.Errorf("task %s: HTTP %d %s", task, status, body)
			return 0
		}
		if state.Final {
			return state.Counts.Done
		}
	}
	o.t.Errorf("task %s is not final after two minutes", task)
	return 0
}

// flood calls at a rate of operations a second, whatever comes of it. It returns how many operations it called for.
func (o *overload) flood(rate float64, d time.Duration) (sent int) {
	every := time.Duration(float64(len(o.hosts)) / rate * float64(time.Second))
	tick := time.NewTicker(max(every, time.Millisecond))
	defer tick.Stop()
	for end := time.Now().Add(d); time.Now().Before(end); sent += len(o.hosts) {
		<-tick.C
		o.calls.Go(func() {
			task := o.operate(o.s.API, o.hosts)
			o.mu.Lock()
			defer o.mu.Unlock()
			o.tasks = append(o.tasks, task)
		})
	}
	return sent
}

// smallTasks operates on one host at a time until stop is closed, and adds the times until the verdicts.
func (o *overload) smallTasks(stop chan struct{}, times *[]time.Duration) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		case <-time.After(50 * time.Millisecond):
		}
		began := time.Now()
		task := o.operate(o.other, o.hosts[i%len(o.hosts):][:1])
		o.await(o.other, task)
		if task != "" {
			*times = append(*times, time.Since(began))
		}
	}
}

// cpuPerSecond is the processor time that the server uses in a second, in milliseconds.
func cpuPerSecond(s *ft.Server, d time.Duration) float64 {
	began, before := time.Now(), s.CPU()
	time.Sleep(d)
	return float64((s.CPU() - before).Milliseconds()) / time.Since(began).Seconds()
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(math.Ceil(q*float64(len(sorted))))-1].Round(time.Millisecond)
}

// machineIdle is how long the processors of the machine had nothing to do since its start.
func machineIdle(t *testing.T) time.Duration {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(stat)) // cpu user nice system idle
	if len(f) < 5 {
		t.Fatalf("/proc/stat: %s", stat)
	}
	ticks, err := strconv.ParseInt(f[4], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(ticks) * (time.Second / 100)
}
