//go:build linux

package faults_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
	"github.com/gozzard/gozzard/test/ledger"
)

// netFleet is a server and three enrolled hosts. Each is in its own network namespace, and each host has a running
// daemon.
type netFleet struct {
	*ft.Network
	t      *testing.T
	s      *ft.Server
	dirs   [4]string
	agents [4]*ft.Program
	ds     [4]*ft.Daemon
	many   *ledger.Ledger // operations that were sent while one direction was lost
}

// TestNetwork: three agents in three network namespaces enrol over TLS with a server in a fourth. They operate, lose
// the network, reconnect, are cloned and revoked.
func TestNetwork(t *testing.T) {
	t.Parallel() // it mostly waits
	needs(t, "ip", "nsenter")
	f := &netFleet{t: t, Network: ft.NewNetwork(t, 3)}
	f.s = f.StartServer()
	root := openDir(t)
	for i := 1; i <= 3; i++ {
		f.ds[i] = ft.NewDaemon(t, root, "gznet"+strconv.Itoa(i))
		f.dirs[i] = t.TempDir()
		f.agents[i] = f.Join(f.s, i, f.dirs[i])
		endFirst(t, f.agents[i])
	}

	for i := 1; i <= 3; i++ {
		f.await(i, true, time.Minute)
		must(t, f.Operate(f.s, i, f.ds[i], 0), 0)
	}

	t.Run("N1", f.cutCleanly)
	f.many = ledger.New(t, f.s.API)
	f.many.Addr = f.Addr
	t.Run("N2N3", f.lose)
	t.Run("N3Many", f.judgeMany)
	t.Run("A10TS7", f.clone)
	t.Run("Revoked", f.revoke)

	for i := 1; i <= 3; i++ { // whatever happened to the network, no process was affected
		if n := f.ds[i].Count("start"); n != 1 {
			t.Errorf("daemon %d was started %d times", i, n)
		}
		if f.ds[i].Copies() != 1 {
			t.Errorf("daemon %d runs %d times", i, f.ds[i].Copies())
		}
	}
}

func (f *netFleet) await(i int, alive bool, limit time.Duration) time.Duration {
	f.t.Helper()
	begin := time.Now()
	ft.Until(f.t, limit, func() string {
		return "host " + strconv.Itoa(i) + " is not " + map[bool]string{true: "online", false: "offline"}[alive]
	},
		func() bool { return f.Alive(f.s, i) == alive })
	return time.Since(begin)
}

// N1: the connections are reset. Agents reconnect within seconds.
func (f *netFleet) cutCleanly(t *testing.T) {
	needs(t, "ss")
	var before [4]int
	for i := 1; i <= 3; i++ {
		before[i] = f.agents[i].Sessions()
	}

	begin := time.Now()

	if out, err := f.Run(0, "ss", "-K", "sport", "=", ":4230"); err != nil || !strings.Contains(out, "4230") {
		t.Skipf("this kernel does not end connections for others: %v %s", err, out)
	}

	for i := 1; i <= 3; i++ {
		ft.Until(t, time.Minute, func() string { return "no new session: " + f.agents[i].Output() },
			func() bool { return f.agents[i].Sessions() > before[i] })
	}

	t.Logf("N1: three agents had new sessions %s after their connections were reset",
		time.Since(begin).Round(time.Millisecond))
}

// N2 and N3: no packet passes, or none in one direction. The server notices it and answers callers at once with that,
// and every verdict that it gives is true.
func (f *netFleet) lose(t *testing.T) {
	sent := f.sendMany(max(60, 50**scale), 15*time.Second)
	time.Sleep(time.Second) // some operations are under way at that time
	f.In(0, "link", "set", f.Port(1), "down")
	// Host 2 does not receive from the server.
	f.In(0, "neigh", "replace", f.Addr(2), "lladdr", "02:00:00:00:00:99", "dev", "br0", "nud", "permanent")
	// The server does not receive from host 3.
	f.In(3, "neigh", "replace", f.Addr(0), "lladdr", "02:00:00:00:00:99", "dev", "eth0", "nud", "permanent")
	begin := time.Now()
	task := f.s.Operate("operate_proc_v2", ft.J{"meta": ft.J{"namespace": "net", "name": f.ds[2].Name}, "op_type": 1,
		"spec": f.ds[2].Spec(nil), "hosts": []ft.J{f.Host(2)}})
	var took [4]time.Duration
	var wg sync.WaitGroup
	for i := 1; i <= 3; i += 2 { // the server still hears host 2: its connection ends later
		wg.Go(func() { took[i] = f.await(i, false, 40*time.Second) })
	}

	wg.Wait()
	t.Logf("N2: noticed after %s; N3 (agent to server lost): after %s", took[1].Round(100*time.Millisecond),
		took[3].Round(100*time.Millisecond))

	for i := 1; i <= 3; i += 2 {
		if took[i] > 30*time.Second {
			t.Errorf("host %d: noticed after %s", i, took[i])
		}
		asked := time.Now()
		if e := f.Operate(f.s, i, f.ds[i], 1); e.Code != 117 || time.Since(asked) > 5*time.Second {
			t.Errorf("host %d: an operation got %+v after %s", i, e, time.Since(asked))
		}
	}

	sent()
	time.Sleep(max(0, 25*time.Second-time.Since(begin))) // long enough for the server to close the link to host 2
	f.In(0, "link", "set", f.Port(1), "up")
	f.In(0, "neigh", "del", f.Addr(2), "dev", "br0")
	f.In(3, "neigh", "del", f.Addr(0), "dev", "eth0")
	begin = time.Now()

	for i := 1; i <= 3; i++ {
		f.await(i, true, 90*time.Second)
	}

	t.Logf("all three are back %s after the network is", time.Since(begin).Round(100*time.Millisecond))
	e := f.s.Await(task)["0:"+f.Addr(2)+":net:"+f.ds[2].Name]
	t.Logf("N3 (server to agent lost): the stop that was under way ended with %+v", e)
	running := f.ds[2].Copies()
	if fault := stopFault(e, running); fault != "" {
		t.Errorf("%s: verdict %+v, and %d copies run", fault, e, running)
	}
	if running == 0 { // stopped as requested
		f.ds[2] = ft.NewDaemon(t, openDir(f.t), "gznet2b")
		must(t, f.Operate(f.s, 2, f.ds[2], 0), 0)
	}
}

// stopFault describes what is wrong with the verdict of a stop that lost its network, given how many copies run now; ""
// when nothing is.
func stopFault(e ft.Entry, running int) string {
	switch o := ledger.OutcomeOf(e); {
	case running > 1:
		return "the process was started again"
	case o == ledger.Failed:
		return "the stop did nothing that can fail"
	case o == ledger.Executed && running != 0:
		return "a stop that was executed left the process running"
	case o == ledger.NotExecuted && running != 1:
		return "a stop that was not executed ended the process"
	}
	return ""
}

// sendMany sends operations, spread over a while, to the host that receives without being heard and to the one that is
// heard without receiving. The returned function waits until the last one is accepted.
func (f *netFleet) sendMany(n int, over time.Duration) (wait func()) {
	const callers, processes = 8, 16
	var wg sync.WaitGroup
	quit := make(chan struct{})
	for c := range callers {
		wg.Go(func() {
			for i := c; i < n; i += callers {
				f.many.Send("n"+strconv.Itoa(i), 2+i%2, i/2%processes, quit)
				time.Sleep(over / time.Duration(n/callers+1))
			}
		})
	}
	return wg.Wait
}

// N3: the verdicts of operations that were sent while one direction was lost are true.
func (f *netFleet) judgeMany(t *testing.T) {
	if len(f.many.Tasks()) < max(60, 50**scale) {
		t.Errorf("only %d operations were accepted", len(f.many.Tasks()))
	}
	f.many.Use(t, f.s.API)
	f.many.Afterwards(24, 2, 3)
	f.many.Judge("N3", ledger.Floor{OK: 24})
}

// A10: a copy of a state folder runs in another namespace. The server disconnects both agents, neither executes
// anything, and the admin decides.
func (f *netFleet) clone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "copy")
	if out, err := exec.Command("cp", "-a", f.dirs[3], dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}

	begin := time.Now()
	clone := f.Start(1, "clone", "agent", "--data", dir)

	ft.Until(t, time.Minute, func() string { return "no quarantine: " + f.trust(3) },
		func() bool { return f.trust(3) == "quarantined" })

	t.Logf("A10: quarantine after %s", time.Since(begin).Round(time.Millisecond))
	f.await(3, false, time.Minute)

	if e := f.Operate(f.s, 3, f.ds[3], 1); e.Code != 117 || f.ds[3].Copies() != 1 {
		t.Errorf("an operation got %+v, %d copies run", e, f.ds[3].Copies())
	}

	clone.Kill(syscall.SIGKILL)

	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}

	f.CLI(f.s, "hosts", "approve", f.Addr(3))
	f.await(3, true, 90*time.Second)
}

// trust is the trust state of a host on the server.
func (f *netFleet) trust(i int) string {
	var page struct {
		Hosts []struct {
			Trust string `json:"trust"`
			Addrs []struct {
				IP string `json:"ip"`
			} `json:"addrs"`
		} `json:"hosts"`
	}
	if err := json.Unmarshal([]byte(f.CLI(f.s, "hosts", "-o", "json")), &page); err != nil {
		f.t.Fatal(err)
	}

	for _, h := range page.Hosts {
		if len(h.Addrs) > 0 && h.Addrs[0].IP == f.Addr(i) {
			return h.Trust
		}
	}

	return ""
}

func (f *netFleet) revoke(t *testing.T) {
	cuts := strings.Count(f.agents[1].Output(), "link to the server was cut")
	begin := time.Now()
	f.CLI(f.s, "hosts", "revoke", f.Addr(1))

	ft.Until(t, 5*time.Second, func() string { return "the connection is still there" }, func() bool {
		return strings.Count(f.agents[1].Output(), "link to the server was cut") > cuts
	})

	t.Logf("cut %s after the command was given", time.Since(begin).Round(time.Millisecond))
	f.await(1, false, time.Minute)

	if e := f.Operate(f.s, 1, f.ds[1], 1); e.Code != 117 {
		t.Errorf("an operation got %+v", e)
	}
	if f.trust(1) != "revoked" {
		t.Errorf("trust is %q", f.trust(1))
	}
}
