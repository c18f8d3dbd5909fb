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
	if path := os.Getenv(hogMark); path != "" {
		fillOutputDisk(path)
	}
	flag.Parse()
	ft.Main(m)
}

// ledger sends operations whose effect is one line in a file. Each has a unique mark. The ledger compares the verdicts
// with what really happened.
type ledger struct {
	t   testing.TB
	api *ft.API
	dir string
	// prefix distinguishes the marks of several ledgers of one server.
	prefix string
	// addr is the address of a host; nil means loopback addresses.
	addr func(host int) string
	// notes is the file with the effects of a simulated fleet, "" for real hosts.
	notes string
	// within is how long collect waits for all verdicts.
	within time.Duration
	// mayFail: the fault may prevent commands from starting. Then they must have had no effect.
	mayFail bool

	mu    sync.Mutex
	tasks map[string]string // mark → task
	calm  map[string]bool   // marks of operations that no fault disturbed, see afterwards
}

func newLedger(t testing.TB, api *ft.API) *ledger {
	return &ledger{t: t, api: api, dir: t.TempDir(), within: 3 * time.Minute, tasks: map[string]string{},
		calm: map[string]bool{}}
}

// send repeats one operation until it is acknowledged. All repeats have the same idempotency key, so it is accepted
// once. proc chooses one of several processes.
func (l *ledger) send(mark string, host int, proc int, stop <-chan struct{}) {
	body := l.operation(mark, host, proc)
	for {
		ans, err := l.api.TryWith(ledgerPath, body, http.Header{"Idempotency-Key": {mark}})
		if err == nil && ans.Code == 0 {
			l.acknowledged(mark, ans)
			return
		}
		select {
		case <-stop:
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

const ledgerPath = "/api/c/compapi/v2/gse/operate_proc_v2/"

// operation is the body of a call with the operation of a mark.
func (l *ledger) operation(mark string, host, proc int) ft.J {
	name := fmt.Sprintf("p%d", proc)
	command := fmt.Sprintf("echo %s >> ledger-%d-%s", mark, host, name)
	if l.notes != "" {
		command = "note " + mark
	}
	spec := ft.J{
		"identity": ft.J{"proc_name": "gzledger", "setup_path": l.dir, "pid_path": l.dir + "/none.pid", "user": "root"},
		"control":  ft.J{"reload_cmd": command},
	}

	ip := fmt.Sprintf("127.0.0.%d", host)
	if l.addr != nil {
		ip = l.addr(host)
	}
	return ft.J{"meta": ft.J{"namespace": "faults", "name": name}, "op_type": 8, "spec": spec,
		"hosts": []ft.J{{"ip": ip, "bk_cloud_id": 0}}}
}

// acknowledged notes the task that a caller got for a mark. A mark has one task, however often it was sent.
func (l *ledger) acknowledged(mark string, ans ft.Answer) {
	var d struct {
		TaskID string `json:"task_id"`
	}
	if err := json.Unmarshal(ans.Data, &d); err != nil {
		l.t.Errorf("%s: %v", mark, err)
		return
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.tasks[mark]; known != "" && known != d.TaskID {
		l.t.Errorf("%s has two tasks, %s and %s", mark, known, d.TaskID)
	}
	l.tasks[mark] = d.TaskID
}

// effects counts the lines of each mark.
func (l *ledger) effects() map[string]int {
	n := map[string]int{}
	if l.notes != "" {
		for note, times := range readNotes(l.t, l.notes) {
			_, mark, _ := strings.Cut(note, " ")
			n[mark] += times
		}
		return n
	}

	files, err := filepath.Glob(filepath.Join(l.dir, "ledger-*"))
	if err != nil {
		l.t.Fatal(err)
	}

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

// load sends operations from several callers until stop is called. stop waits for them. At most limit operations are
// sent.
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

// steady sends one operation after the other with a pause between them until stop is called. stop waits for the last
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

// afterwards sends operations to hosts on which the fault is over. Nothing disturbs them, so all must be executed: a
// system that stays safe by rejecting its work fails here.
func (l *ledger) afterwards(n int, hosts ...int) {
	l.t.Helper()
	never := make(chan struct{})
	for i := range n {
		mark := fmt.Sprintf("%scalm-%d", l.prefix, i)
		l.calm[mark] = true
		l.send(mark, hosts[i%len(hosts)], i%8, never)
		// A newer operation on the same process would replace this one.
		l.verdict(mark, l.tasks[mark], time.Now().Add(time.Minute))
	}
}
