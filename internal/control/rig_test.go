package control_test

import (
	"cmp"
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/sqlstore"
	"github.com/gozzard/gozzard/test/storetest"
)

// rig is a control plane over a real record. The test is in the place of the agents: it collects the commands and makes
// the reports.
type rig struct {
	t     *testing.T
	path  string
	lease time.Duration
	quota int
	// window is how many operations are sent and not answered; 0 is the default.
	window int
	// slack and resend are times; 0 are those of most tests.
	slack, resend time.Duration
	// helloRate is how many sessions are opened in a second; 0 is the default.
	helloRate float64

	joining *control.Joining // nil: the default
	// newestGen and defaultAccount are what agents say in HELLO.
	newestGen      uint64
	defaultAccount string
	histories      bool // agents keep histories
	files          bool // agents write files
	// around, unless nil, is what the plane gets instead of the store itself.
	around func(*sqlstore.Store) control.Store
	store  *sqlstore.Store
	plane  *control.Plane
	// server and peers are set for one of several servers, and shared is their record.
	server  string
	peers   control.PeerLink
	through bool // commands for agents of others go through their homes
	shared  *sqlstore.Store
	stop    func()

	mu   sync.Mutex
	sent map[gozzard.AgentID][]*gozzard.Command

	refused sync.Map // rules by which a report was refused

	hold atomic.Bool // every operation that needs a second person waits
}

const me, other = gozzard.AgentID("agent-1"), gozzard.AgentID("agent-2")

var caller = gozzard.Caller{App: "app", User: "admin", Asserted: true, Rights: gozzard.Everything()}

// bare is a caller as the record has it: rights are not recorded.
func bare(c gozzard.Caller) gozzard.Caller {
	c.Rights = nil
	return c
}

func newRig(t *testing.T) *rig { return newRigWith(t, time.Minute) }

// newRigWith sets the lease. Tests of agents that are silent have a short one.
func newRigWith(t *testing.T, lease time.Duration) *rig {
	r := &rig{t: t, lease: lease, path: filepath.Join(t.TempDir(), "gozzard.db"),
		sent: map[gozzard.AgentID][]*gozzard.Command{}}
	r.start()
	t.Cleanup(func() { r.stop() })
	return r
}

// newRigQuota sets how many open attempts an app may have.
func newRigQuota(t *testing.T, quota int) *rig {
	r := &rig{t: t, lease: time.Minute, quota: quota, path: filepath.Join(t.TempDir(), "gozzard.db"),
		sent: map[gozzard.AgentID][]*gozzard.Command{}}
	r.start()
	t.Cleanup(func() { r.stop() })
	return r
}

// newRigAround gives the plane something around the record.
func newRigAround(t *testing.T, around func(*sqlstore.Store) control.Store) *rig {
	r := &rig{t: t, lease: time.Minute, around: around, path: filepath.Join(t.TempDir(), "gozzard.db"),
		sent: map[gozzard.AgentID][]*gozzard.Command{}}
	r.start()
	t.Cleanup(func() { r.stop() })
	return r
}

// start begins a run of the server on the same record.
func (r *rig) start() {
	r.t.Helper()

	store, closeStore := r.shared, func() error { return nil }
	if store == nil {
		store = r.open()
		closeStore = store.Close
	}

	var given control.Store = store
	if r.around != nil {
		given = r.around(store)
	}

	plane, err := control.New(r.t.Context(), control.Options{
		Store: given, Topology: store, Dispatch: r, Live: fleet.New(), Slack: cmp.Or(r.slack, 300*time.Millisecond),
		Resend: cmp.Or(r.resend, 50*time.Millisecond), Lease: r.lease, Quota: r.quota, Window: r.window,
		HelloRate: r.helloRate, Joining: r.joining, Hold: func(ctx context.Context, _ *gozzard.Operation, _ []gozzard.Attempt) error {
			if r.hold.Load() && !gozzard.IsApproved(ctx) {
				return gozzard.Errorf(gozzard.ErrUserForbidden, "this needs a second person")
			}
			return nil
		},
		Peers: r.peers, ThroughHome: r.through, Server: r.server, Events: 50, Refresh: time.Second, Answer: 500 * time.Millisecond,
		Observe: control.Observer{Refused: func(rule string) { r.refused.Store(rule, true) }},
	})
	if err != nil {
		r.t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- plane.Run(ctx) }()
	r.store, r.plane = store, plane
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			r.t.Error(err)
		}
		if err := closeStore(); err != nil {
			r.t.Error(err)
		}
	})
}

// open opens the record of the rig.
func (r *rig) open() *sqlstore.Store {
	r.t.Helper()
	storetest.NewSQLite(r.t, r.path)
	store, err := sqlstore.OpenSQLite(r.t.Context(), r.path,
		sqlstore.Options{Fatal: func(err error) { r.t.Errorf("fatal: %v", err) }})
	if err != nil {
		r.t.Fatal(err)
	}
	return store
}

// Send collects the commands of the plane.
func (r *rig) Send(to gozzard.AgentID, _ int, cmd *gozzard.Command) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent[to] = append(r.sent[to], cmd)
	return nil
}

// commands lists the commands of one kind to an agent.
func (r *rig) commands(to gozzard.AgentID, kind gozzard.CommandKind) []*gozzard.Command {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []*gozzard.Command
	for _, c := range r.sent[to] {
		if c.Kind == kind {
			out = append(out, c)
		}
	}
	return out
}

func (r *rig) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.sent)
}

func (r *rig) until(words string, cond func() bool) {
	r.t.Helper()
	for end := time.Now().Add(20 * time.Second); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatal(words)
		}
	}
}

var journalA, journalB = gozzard.JournalPos{ID: [16]byte{1}, LSN: 10}, gozzard.JournalPos{ID: [16]byte{2}, LSN: 1}

// hello opens a session as an agent and waits for the welcome.
func (r *rig) hello(agent gozzard.AgentID, session uint64, pos gozzard.JournalPos, open ...gozzard.OpReport) {
	r.t.Helper()
	n := len(r.commands(agent, gozzard.CommandWelcome))
	addr := gozzard.HostAddr{Cloud: 0}
	ip, err := gozzard.ParseIP("127.0.0." + string(agent[len(agent)-1]))
	if err != nil {
		r.t.Fatal(err)
	}
	addr.IP = ip
	r.plane.Receive(agent, 0, &gozzard.Report{Version: 1, Kind: gozzard.ReportHello, Session: session, Journal: pos,
		Hello: &gozzard.Hello{Host: gozzard.HostInfo{Agent: agent, Addrs: []gozzard.HostAddr{addr},
			DefaultAccount: r.defaultAccount, History: r.histories, Files: r.files}, Open: open, NewestGen: r.newestGen}})
	r.until("no welcome", func() bool { return len(r.commands(agent, gozzard.CommandWelcome)) > n })
}

func (r *rig) heartbeat(agent gozzard.AgentID, session uint64) {
	r.plane.Receive(agent, 0, &gozzard.Report{Version: 1, Kind: gozzard.ReportHeartbeat, Session: session})
}

func (r *rig) report(agent gozzard.AgentID, session uint64, res ...gozzard.OpReport) {
	r.plane.Receive(agent, 0, &gozzard.Report{Version: 1, Kind: gozzard.ReportResults, Session: session,
		Journal: journalA, Results: res})
}

var key = gozzard.Key{Namespace: "gse", Name: "网关"}

func spec(timeout int) *gozzard.Spec {
	p := gozzard.DefaultPolicy()
	p.OpTimeout, p.StartCheckSecs, p.StopCheckSecs = timeout, 0, 0
	return &gozzard.Spec{Identity: gozzard.Identity{ProcName: "p"},
		Control: gozzard.Control{Start: "./start", Reload: "./reload"}, Policy: p}
}

// operate requests one action on agents and returns the task.
func (r *rig) operate(action gozzard.Action, wait time.Duration, agents ...gozzard.AgentID) gozzard.Task {
	r.t.Helper()
	it := gozzard.Item{Action: action, Key: key, Spec: spec(60)}
	for _, a := range agents {
		it.Targets = append(it.Targets, gozzard.Target{Agent: a, ResultKey: string(a)})
	}
	task, err := r.plane.Operate(r.t.Context(), &gozzard.Operation{Caller: caller, Items: []gozzard.Item{it},
		WaitOffline: wait})
	if err != nil {
		r.t.Fatal(err)
	}
	return task
}

// op waits until an operation is sent and returns it.
func (r *rig) op(agent gozzard.AgentID, session uint64, task gozzard.Task) gozzard.Op {
	r.t.Helper()
	var found gozzard.Op
	r.until("the operation was not sent", func() bool {
		for _, c := range r.commands(agent, gozzard.CommandOperate) {
			for _, o := range c.Ops {
				if c.Session == session && o.Ref.Task == task.Seq {
					found = o
					return true
				}
			}
		}
		return false
	})

	return found
}

// verdict waits until the attempt of an agent is in a state.
func (r *rig) verdict(task gozzard.Task, agent gozzard.AgentID, want gozzard.AttemptState,
	code gozzard.Code) gozzard.Attempt {
	r.t.Helper()
	var last gozzard.Attempt
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		res, err := r.plane.Results(r.t.Context(), caller, task.ID)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, a := range res.Attempts {
			if a.ResultKey == string(agent) {
				last = a
			}
		}
		if last.State == want && last.Outcome.Code == code {
			return last
		}
	}

	r.t.Fatalf("wanted %s %s, got %s %+v", want, code, last.State, last.Outcome)
	return last
}

func done(op gozzard.Op, code gozzard.Code) gozzard.OpReport {
	return gozzard.OpReport{ID: op.ID, Ref: op.Ref, Phase: gozzard.PhaseDone,
		Outcome: gozzard.Outcome{Code: code, Hosted: true}}
}
