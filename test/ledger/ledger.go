//go:build linux

package ledger

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// Ledger sends operations whose effect is one line in a file. Each has a unique mark. The ledger compares the verdicts
// with what really happened.
type Ledger struct {
	t testing.TB
	// apis are the servers. A caller that gets no acknowledgement from one tries the next one.
	apis []*ft.API
	// Dir has the files with the effects.
	Dir string
	// Prefix distinguishes the marks of several ledgers of one server.
	Prefix string
	// Addr is the address of a host; nil means loopback addresses.
	Addr func(host int) string
	// Cloud is the cloud area of the hosts.
	Cloud int
	// User is the account of the operations, "" for root.
	User string
	// Notes is the file with the effects of a simulated fleet, "" for real hosts.
	Notes string
	// Pause is between two operations of a caller of Load. Without one, callers send faster than a slow machine executes.
	Pause time.Duration
	// Within is how long Collect waits for all verdicts.
	Within time.Duration
	// MayFail: the fault may prevent commands from starting. Then they must have had no effect.
	MayFail bool
	// Calm has the marks of operations that no fault disturbed, see Afterwards.
	Calm map[string]bool

	mu    sync.Mutex
	tasks map[string]string // mark → task
}

// New makes a ledger that sends to the servers of an installation.
func New(t testing.TB, apis ...*ft.API) *Ledger {
	return &Ledger{t: t, apis: apis, Dir: t.TempDir(), Within: 3 * time.Minute, tasks: map[string]string{},
		Calm: map[string]bool{}}
}

// Use goes on in another test, or with other servers.
func (l *Ledger) Use(t testing.TB, apis ...*ft.API) { l.t, l.apis = t, apis }

// Tasks are the acknowledged operations so far: the task of each mark.
func (l *Ledger) Tasks() map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.tasks)
}

// Send repeats one operation until it is acknowledged, each time at the next server. All repeats have the same idempotency
// key, so it is accepted once. proc chooses one of several processes, and the server that is tried first.
func (l *Ledger) Send(mark string, host int, proc int, stop <-chan struct{}) {
	body := l.Operation(mark, host, proc)
	for try := proc; ; try++ {
		ans, err := l.apis[try%len(l.apis)].TryWith(Path, body, http.Header{"Idempotency-Key": {mark}})
		if err == nil && ans.Code == 0 {
			l.Acknowledged(mark, ans)
			return
		}
		select {
		case <-stop:
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Path is the call that the operations of a ledger use.
const Path = "/api/c/compapi/v2/gse/operate_proc_v2/"

// Operation is the body of a call with the operation of a mark.
func (l *Ledger) Operation(mark string, host, proc int) ft.J {
	name := fmt.Sprintf("p%d", proc)
	command := fmt.Sprintf("echo %s >> ledger-%d-%s", mark, host, name)
	if l.Notes != "" {
		command = "note " + mark
	}
	user := cmp.Or(l.User, "root")
	spec := ft.J{
		"identity": ft.J{"proc_name": "gzledger", "setup_path": l.Dir, "pid_path": l.Dir + "/none.pid", "user": user},
		"control":  ft.J{"reload_cmd": command},
	}

	ip := fmt.Sprintf("127.0.0.%d", host)
	if l.Addr != nil {
		ip = l.Addr(host)
	}
	return ft.J{"meta": ft.J{"namespace": "faults", "name": name}, "op_type": 8, "spec": spec,
		"hosts": []ft.J{{"ip": ip, "bk_cloud_id": l.Cloud}}}
}

// Acknowledged notes the task that a caller got for a mark. A mark has one task, however often it was sent.
func (l *Ledger) Acknowledged(mark string, ans ft.Answer) {
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

// Effects counts the lines of each mark.
func (l *Ledger) Effects() map[string]int {
	n := map[string]int{}
	if l.Notes != "" {
		for note, times := range ReadNotes(l.t, l.Notes) {
			_, mark, _ := strings.Cut(note, " ")
			n[mark] += times
		}
		return n
	}

	files, err := filepath.Glob(filepath.Join(l.Dir, "ledger-*"))
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

// Load sends operations from several callers until stop is called. stop waits for them. At most limit operations are
// sent.
func (l *Ledger) Load(callers, hosts, limit int) (stop func()) {
	quit, prefix := make(chan struct{}), l.Prefix
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := 0; i < limit/callers; i++ {
				select {
				case <-quit:
					return
				default:
				}
				l.Send(fmt.Sprintf("%sm%d-%d", prefix, c, i), 1+(c+i)%hosts, c, quit)
				if l.Pause > 0 {
					time.Sleep(l.Pause)
				}
			}
		})
	}

	return func() { close(quit); wg.Wait() }
}

// Steady sends one operation after the other with a pause between them until stop is called. stop waits for the last
// one.
func (l *Ledger) Steady(host int, pause time.Duration) (stop func()) {
	quit := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			l.Send(fmt.Sprintf("%ss%d-%d", l.Prefix, host, i), host, i%8, quit)
			select {
			case <-quit:
				return
			case <-time.After(pause):
			}
		}
	})

	return func() { close(quit); wg.Wait() }
}

// Afterwards sends operations to hosts on which the fault is over. Nothing disturbs them, so all must be executed: a
// system that stays safe by rejecting its work fails here.
func (l *Ledger) Afterwards(n int, hosts ...int) {
	l.t.Helper()
	never := make(chan struct{})
	for i := range n {
		mark := fmt.Sprintf("%scalm-%d", l.Prefix, i)
		l.Calm[mark] = true
		l.Send(mark, hosts[i%len(hosts)], i%8, never)
		// A newer operation on the same process would replace this one.
		l.Verdict(mark, l.tasks[mark], time.Now().Add(time.Minute))
	}
}

// ReadNotes counts the lines that commands of simulated hosts noted.
func ReadNotes(t testing.TB, path string) map[string]int {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	n := map[string]int{}
	for line := range strings.Lines(string(text)) {
		n[strings.TrimSuffix(line, "\n")]++
	}
	return n
}
