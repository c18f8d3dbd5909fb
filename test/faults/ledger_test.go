//go:build linux

package faults_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

var scale = flag.Int("faults.scale", 1, "multiplies the number of kills and operations")

func TestMain(m *testing.M) {
	flag.Parse()
	ft.Main(m)
}

// ledger sends operations whose effect is one line in a file, with a mark of its own each, and holds the verdicts
// against what really happened.
type ledger struct {
	t   *testing.T
	api *ft.API
	dir string
	// prefix tells the marks of several ledgers of one server apart.
	prefix string
	// addr is the address of a host; nil for those of loopback.
	addr func(host int) string
	// mayFail: the fault lets commands fail to start; then they must have had no effect.
	mayFail bool

	mu    sync.Mutex
	tasks map[string]string // mark → task
}

func newLedger(t *testing.T, api *ft.API) *ledger {
	return &ledger{t: t, api: api, dir: t.TempDir(), tasks: map[string]string{}}
}

// send asks for one operation until it is acknowledged; repeats carry the same key, so it is accepted once. proc
// chooses one of several processes.
func (l *ledger) send(mark string, host int, proc int, stop <-chan struct{}) {
	name := fmt.Sprintf("p%d", proc)
	spec := ft.J{
		"identity": ft.J{"proc_name": "gzledger", "setup_path": l.dir, "pid_path": l.dir + "/none.pid", "user": "root"},
		"control":  ft.J{"reload_cmd": fmt.Sprintf("echo %s >> ledger-%d-%s", mark, host, name)},
	}
	ip := fmt.Sprintf("127.0.0.%d", host)

	if l.addr != nil {
		ip = l.addr(host)
	}

	body := ft.J{"meta": ft.J{"namespace": "faults", "name": name}, "op_type": 8, "spec": spec,
		"hosts": []ft.J{{"ip": ip, "bk_cloud_id": 0}}}
	for {
		ans, err := l.api.TryWith("/api/c/compapi/v2/gse/operate_proc_v2/", body,
			http.Header{"Idempotency-Key": {mark}})
		if err == nil && ans.Code == 0 {
			var d struct {
				TaskID string `json:"task_id"`
			}
			if err := json.Unmarshal(ans.Data, &d); err != nil {
				l.t.Errorf("%s: %v", mark, err)
				return
			}
			l.mu.Lock()
			l.tasks[mark] = d.TaskID
			l.mu.Unlock()
			return
		}
		select {
		case <-stop:
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// effects counts the lines of each mark.
func (l *ledger) effects() map[string]int {
	files, err := filepath.Glob(filepath.Join(l.dir, "ledger-*"))
	if err != nil {
		l.t.Fatal(err)
	}

	n := map[string]int{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			l.t.Fatal(err)
		}
		for _, mark := range strings.Fields(string(b)) {
			n[mark]++
		}
	}

	return n
}

// figures is what a fault test reports.
type figures struct {
	ops, lost, stuck, twice, wrong int
	ok, failed, never, interrupted int
	why                            map[string]int // of what was not executed
}

func (f figures) String() string {
	return fmt.Sprintf("%d operations acknowledged: %d lost, %d stuck, %d twice, %d wrong verdicts (%d ok, %d interrupted, %d not executed, %d failed)",
		f.ops, f.lost, f.stuck, f.twice, f.wrong, f.ok, f.interrupted, f.never, f.failed)
}

// add sums up; the reasons are left out.
func (f *figures) add(g figures) {
	for _, p := range []struct {
		to *int
		n  int
	}{{&f.ops, g.ops}, {&f.lost, g.lost}, {&f.stuck, g.stuck}, {&f.twice, g.twice}, {&f.wrong, g.wrong},
		{&f.ok, g.ok}, {&f.failed, g.failed}, {&f.never, g.never}, {&f.interrupted, g.interrupted}} {
		*p.to += p.n
	}
}

// settle waits for every verdict and compares it with the effects.
func (l *ledger) settle() figures {
	l.t.Helper()
	f := figures{why: map[string]int{}}
	verdicts := map[string]ft.Entry{}
	deadline := time.Now().Add(3 * time.Minute)
	for mark, task := range l.tasks {
		f.ops++
		for {
			ans, err := l.api.Try("get_proc_operate_result", ft.J{"task_id": task})
			out := map[string]ft.Entry{}
			if err == nil && ans.Code == 0 && json.Unmarshal(ans.Data, &out) == nil && len(out) == 1 {
				for _, e := range out {
					verdicts[mark] = e
				}
				if e := verdicts[mark]; e.Code != 115 && !strings.Contains(e.Msg, "not known yet") {
					break
				}
			} else if err == nil && ans.Code != 0 {
				f.lost++
				l.t.Logf("%s: task %s: %s", mark, task, ans.Raw)
				break
			}
			if time.Now().After(deadline) {
				f.stuck++
				l.t.Logf("%s: task %s is stuck at %+v (%v)", mark, task, verdicts[mark], err)
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
	}

	done := l.effects()
	for mark, e := range verdicts {
		n := done[mark]
		if n > 1 {
			f.twice++
		}
		wrong := false
		switch {
		case e.Code == 0:
			f.ok++
			wrong = n != 1
		case strings.Contains(e.Msg, "interrupted"):
			f.interrupted++
			wrong = n > 1
		case strings.Contains(e.Msg, "not executed"), e.Code == 117:
			f.never++
			f.why[e.Msg[:min(len(e.Msg), 60)]]++
			wrong = n != 0
		default:
			f.failed++
			wrong = !l.mayFail || n != 0 // once started the command cannot fail
		}
		if wrong {
			f.wrong++
			l.t.Logf("%s: %d effects, verdict %+v", mark, n, e)
		}
	}

	return f
}

// judge prints the figures and fails on anything lost, stuck, twice or wrong.
func (l *ledger) judge(id string) {
	l.t.Helper()
	f := l.settle()
	fmt.Printf("fault %s: %s\n", id, f)
	for why, n := range f.why {
		fmt.Printf("fault %s:   %d × %s\n", id, n, why)
	}
	if f.lost+f.stuck+f.twice+f.wrong > 0 || f.ops == 0 {
		l.t.Errorf("fault %s: %s", id, f)
	}
}

// load sends operations from several callers until stop is called, which waits for them. At most limit operations
// are sent.
func (l *ledger) load(callers, hosts, limit int) (stop func()) {
	quit := make(chan struct{})
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := 0; i < limit/callers; i++ {
				select {
				case <-quit:
					return
				default:
				}
				l.send(fmt.Sprintf("m%d-%d", c, i), 1+(c+i)%hosts, c, quit)
			}
		})
	}

	return func() { close(quit); wg.Wait() }
}

// steady sends one operation after the other with a pause in between until stop is called, which waits for the last
// one.
func (l *ledger) steady(host int, pause time.Duration) (stop func()) {
	quit := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			l.send(fmt.Sprintf("%ss%d-%d", l.prefix, host, i), host, i%8, quit)
			select {
			case <-quit:
				return
			case <-time.After(pause):
			}
		}
	})

	return func() { close(quit); wg.Wait() }
}
