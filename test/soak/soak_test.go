//go:build linux

package soak_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/policy"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

var (
	duration  = flag.Duration("soak.for", 40*time.Second, "how long callers and faults go on")
	seed      = flag.Uint64("soak.seed", 0, "of the plan; 0 draws one")
	processes = flag.Int("soak.processes", 60, "daemons, at most 300")
	agents    = flag.Int("soak.agents", 3, "agents, each on an address of its own")
	callers   = flag.Int("soak.callers", 16, "callers, each with one request at a time")
	ordinary  = flag.Bool("soak.user", false, "agents and daemons of an ordinary account, without cgroups")
	calm      = flag.Bool("soak.calm", false, "no faults: only callers")
)

func TestMain(m *testing.M) {
	flag.Parse()
	ft.Main(m)
}

// soak is one run with its fleet and everything that was done to it.
type soak struct {
	t      *testing.T
	root   string // of the daemons
	seed   uint64
	user   string // account of agents and daemons
	server *ft.Server
	native *client.Client
	agents []*agent
	all    []*daemon
	byDir  map[string]*daemon
	watch  *watcher
	began  time.Time

	overAt time.Time // when callers and faults stop
	marks  atomic.Int64

	mu         sync.Mutex
	requests   []*request
	faults     []fault        // of server and agents
	counts     map[string]int // of faults, by kind
	bystanders map[string]int // pids by name

	vmu        sync.Mutex
	violations map[string][]violation

	attempts   []*attempt // from the record, when the load is over
	tasks      map[string]bool
	footprints []footprint
}

// agent is an agent and its host.
type agent struct {
	*ft.Program
	host int
}

// TestSoak is the soak. It prints a table whose violations must all be zero.
func TestSoak(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: the agents and the definitions have different accounts")
	}
	s := newSoak(t)
	t.Logf("seed %d", s.seed)
	s.startEverything()

	// Disturb it.
	s.overAt = time.Now().Add(*duration)
	var work sync.WaitGroup
	for i := range *callers {
		work.Go(func() { s.call(s.random(uint64(i))) })
	}
	if !*calm {
		plan := []func(*rand.Rand){s.disturbDaemons, s.disturbServer, s.disturbFiles, s.disturbDefinitions,
			s.disturbDefinitions, s.disturbDefinitions}
		for _, a := range s.agents {
			plan = append(plan, func(r *rand.Rand) { s.disturbAgent(r, a) })
		}
		for i, f := range plan {
			work.Go(func() { f(s.random(1000 + uint64(i))) })
		}
	}
	work.Wait()

	// Judge it.
	s.settle()
	s.judgeFinalState()
	s.judgeHistory()
	s.judgeLeaks()
	s.report()
}

// random makes the numbers of one part of the plan, so that the parts do not depend on each other's pace.
func (s *soak) random(part uint64) *rand.Rand { return rand.New(rand.NewPCG(s.seed, part)) }

func (s *soak) over() bool { return !time.Now().Before(s.overAt) }

// pause sleeps between two lengths of time, or until the soak is over.
func (s *soak) pause(r *rand.Rand, from, to time.Duration) {
	time.Sleep(min(from+time.Duration(r.Int64N(int64(to-from))), max(0, time.Until(s.overAt))))
}

func newSoak(t *testing.T) *soak {
	t.Helper()
	s := &soak{t: t, seed: *seed, root: openDir(t), byDir: map[string]*daemon{}, counts: map[string]int{},
		bystanders: map[string]int{}, violations: map[string][]violation{}, began: time.Now()}
	s.user = "root"
	if *ordinary {
		s.user = "nobody"
	}
	if s.seed == 0 {
		s.seed = uint64(time.Now().UnixNano()) % 1_000_000
	}

	// Build the daemon under its three names.
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(s.root, "goosed"), "./goosed")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if b, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build goosed: %v\n%s", err, b)
	}
	for _, name := range []string{"goosectl", "gander"} {
		if err := os.Link(filepath.Join(s.root, "goosed"), filepath.Join(s.root, name)); err != nil {
			t.Fatal(err)
		}
	}

	// Make the journal, which every account may write to.
	journal := filepath.Join(s.root, "journal")
	if err := os.WriteFile(journal, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(journal, 0o666); err != nil {
		t.Fatal(err)
	}
	s.watch = watch(t, journal)
	t.Cleanup(s.endStrays) // before the folder is removed, after the agents have ended
	return s
}

// openDir is a folder that other accounts can enter.
func openDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// startEverything starts server, agents, bystanders and the first half of the daemons.
func (s *soak) startEverything() {
	s.server = ft.StartServer(s.t, "")
	s.server.Client = &http.Client{Timeout: 30 * time.Second}
	for n := 1; n <= *agents; n++ {
		s.agents = append(s.agents, &agent{Program: s.startAgent(n), host: n})
	}
	var err error
	s.native, err = client.New(s.server.Cred.URL, client.Credentials{AppCode: s.server.Cred.AppCode,
		AppSecret: s.server.Cred.Secret, Username: s.server.Cred.Username})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(s.native.Close)
	s.measure()

	// Bystanders are older than every daemon.
	for i := range 12 {
		s.startBystander(fmt.Sprintf("bystander%d", i))
	}

	s.layDaemons()
	s.defineDaemons()
}

// startAgent starts an agent of root, or of an ordinary account, which has no group of its own.
func (s *soak) startAgent(n int) *ft.Program {
	if !*ordinary {
		return s.server.StartAgent(s.t, n, "")
	}
	return s.server.StartAgentAs(s.t, n, s.user, nil, policy.Permissive).Program
}

// startBystander starts a process of the same program and account that no definition names.
func (s *soak) startBystander(name string) {
	d := &daemon{id: name, kind: kind{name: "bystander", nopid: true}, dir: filepath.Join(s.root, name)}
	d.lay(s.t, s.root)
	cmd := exec.Command(filepath.Join(s.root, "goosed"), "bystander")
	cmd.Dir = d.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: ft.Credential(s.t, s.user)}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	s.bystanders[name] = cmd.Process.Pid
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
}

// layDaemons makes the folders of all daemons and distributes them over hosts and doors.
func (s *soak) layDaemons() {
	r := s.random(1 << 40)
	all := kinds()
	n := min(*processes, 300)
	for i := range n {
		k := all[pick(r, all)]
		if i < len(all) { // each kind at least once
			k = all[i]
		}
		if i%2 == 1 {
			k.stop = false
		}
		d := &daemon{kind: k, id: fmt.Sprintf("%s%03d", k.name, i), space: ownSpace, host: 1 + i%*agents, account: s.user}
		d.process = d.id
		d.dir = filepath.Join(s.root, d.id)
		// GSEKit wants a stop command and a pid file; Job wants start.sh and stop.sh, and checks for so long that the
		// process has another name by then.
		switch {
		case i%10 == 4 && !k.nopid && !k.mortal && k.name != "stubborn":
			d.space, d.process, d.stop = kitSpace, d.id+"_1", true
		case i%10 == 7 && !k.nopid && !k.mortal && k.name != "stubborn" && k.name != "exec":
			d.space, d.process = jobSpace, ""
			d.stop, d.restart, d.reload, d.kill = true, false, false, false
		}
		d.lay(s.t, s.root)
		s.all, s.byDir[d.dir] = append(s.all, d), d
	}

	for i, p := range s.programs() {
		d := &daemon{kind: p.kind(), id: fmt.Sprintf("%s%03d", p.name, n+i), space: ownSpace, host: 1 + i%*agents,
			program: p, account: s.user}
		d.process, d.dir = d.id, filepath.Join(s.root, d.id)
		d.lay(s.t, s.root)
		if p.prepare != nil {
			p.prepare(s.t, d)
		}
		s.watch.follow(d)
		s.all, s.byDir[d.dir] = append(s.all, d), d
	}
}

// pick draws a kind by its share.
func pick(r *rand.Rand, all []kind) int {
	sum := 0
	for _, k := range all {
		sum += k.share
	}
	n := r.IntN(sum)
	for i, k := range all {
		if n -= k.share; n < 0 {
			return i
		}
	}
	return 0
}
