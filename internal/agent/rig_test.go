package agent_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/agent"
	"github.com/gozzard/gozzard/test/sim"
)

// rig is an agent over a simulated machine, with a scripted server in the place of the link. It lives in a synctest
// bubble: waiting costs nothing and Wait means that everything that can happen has happened.
type rig struct {
	t    *testing.T
	dir  string
	host *sim.Host
	o    agent.Options
	a    *agent.Agent

	cancel context.CancelFunc
	ended  chan error

	mu      sync.Mutex
	reports []*gozzard.Report
	session uint64 // of the newest HELLO
	next    uint64 // generation
	mute    bool   // nothing is answered
	noAcks  bool   // verdicts are not acknowledged
	noBeats bool   // heartbeats are not answered
	noRound bool   // full reports are not acknowledged
	deaf    bool   // events are not acknowledged

	part func(q *gozzard.ContentQuery) []*gozzard.ContentPart // answers a question for a part of a content

	oldRounds bool // full reports are no heartbeats, as for an older server

	interval time.Duration // sent with the Welcome
}

var key = gozzard.Key{Namespace: "shop", Name: "web"}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, dir: filepath.Join(t.TempDir(), "state"), host: sim.NewHost()}
	t.Cleanup(func() { r.stop() })
	return r
}

// start runs an agent on the rig's folder and machine.
func (r *rig) start() {
	r.t.Helper()
	o := r.o
	o.Dir, o.Host = r.dir, r.host
	o.Info.Hostname = "h1"
	a, err := agent.New(o)
	if err != nil {
		r.t.Fatalf("New: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.a, r.cancel, r.ended = a, cancel, make(chan error, 1)
	go func() { r.ended <- a.Run(ctx, r) }()
	synctest.Wait()
}

func (r *rig) stop() {
	if r.cancel == nil {
		return
	}
	r.cancel()
	if err := <-r.ended; err != nil {
		r.t.Errorf("Run: %v", err)
	}
	r.cancel = nil
}

// connect opens a session.
func (r *rig) connect() {
	r.t.Helper()
	r.a.Connected()
	synctest.Wait()
	time.Sleep(time.Second) // on the clock of the test: what the session sends later has been sent
	synctest.Wait()
}

// online is a rig with an open session.
func online(t *testing.T) *rig {
	r := newRig(t)
	r.start()
	r.connect()
	return r
}

// Send implements agent.Link: it keeps the report and answers as a server does.
func (r *rig) Send(rep *gozzard.Report) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reports = append(r.reports, rep)

	if rep.Kind == gozzard.ReportHello {
		r.session = rep.Session
	}
	if r.mute {
		return nil
	}

	cmd := &gozzard.Command{Version: 1, Session: rep.Session, Kind: gozzard.CommandAck}
	switch rep.Kind {
	case gozzard.ReportHello:
		cmd.Kind, cmd.Beat, cmd.Interval = gozzard.CommandWelcome, rep.Hello.Run, r.interval
	case gozzard.ReportHeartbeat:
		if r.noBeats {
			return nil
		}
		cmd.Beat = rep.Beat
	case gozzard.ReportResults:
		if r.noAcks {
			return nil
		}
		for _, res := range rep.Results {
			if _, final := gozzard.Finalise(res.Phase, res.Outcome.Code); final {
				cmd.Acked = append(cmd.Acked, res.ID)
			}
		}
	case gozzard.ReportStatus:
		if r.noRound || rep.Round == 0 || rep.Part+1 < rep.Parts {
			return nil
		}
		cmd.AckRound = rep.Round
		if !r.oldRounds {
			cmd.Beat = rep.Beat
		}
	case gozzard.ReportEvents:
		if r.deaf {
			return nil
		}
		cmd.AckEvents = rep.Events[len(rep.Events)-1].Seq
	case gozzard.ReportContent:
		for _, p := range r.part(rep.Content) {
			r.a.Receive(&gozzard.Command{Version: 1, Session: rep.Session, Kind: gozzard.CommandContent, Content: p})
		}
		return nil
	case gozzard.ReportLogs, gozzard.ReportHistory:
		return nil
	}

	r.a.Receive(cmd)
	return nil
}

func (r *rig) set(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

// taken returns the reports of a kind since the last call of forget.
func (r *rig) taken(kind gozzard.ReportKind) (out []*gozzard.Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rep := range r.reports {
		if rep.Kind == kind {
			out = append(out, rep)
		}
	}
	return out
}

func (r *rig) forget() { r.set(func() { r.reports = nil }) }

// hello is the newest one.
func (r *rig) hello() *gozzard.Report {
	r.t.Helper()
	all := r.taken(gozzard.ReportHello)
	if len(all) == 0 {
		r.t.Fatal("no HELLO was sent")
	}
	return all[len(all)-1]
}

// said lists what was reported of an operation.
func (r *rig) said(id gozzard.OpID) (out []gozzard.OpReport) {
	for _, rep := range r.taken(gozzard.ReportResults) {
		for _, res := range rep.Results {
			if res.ID == id {
				out = append(out, res)
			}
		}
	}
	return out
}

// last is the newest report of an operation.
func (r *rig) last(id gozzard.OpID) gozzard.OpReport {
	r.t.Helper()
	all := r.said(id)
	if len(all) == 0 {
		return gozzard.OpReport{}
	}
	return all[len(all)-1]
}

func spec(start string) []byte {
	return gozzard.EncodeSpec(&gozzard.Spec{
		Identity: gozzard.Identity{ProcName: "web"}, Control: gozzard.Control{Start: start, Stop: "ok", Reload: "ok"},
		Policy: gozzard.Policy{Kind: gozzard.KindResident, OpTimeout: 600, StartInterval: 1, StartRetries: 3},
	})
}

// op makes an operation with the next generation.
func (r *rig) op(action gozzard.Action, start string) gozzard.Op {
	r.next++
	o := gozzard.Op{ID: gozzard.NewOpID(), Ref: gozzard.AttemptRef{Task: gozzard.TaskSeq(r.next), Index: 3},
		Gen: r.next, Action: action, Key: key}
	if start != "" {
		o.Spec = spec(start)
	}
	return o
}

func (r *rig) send(session uint64, ops ...gozzard.Op) {
	r.a.Receive(&gozzard.Command{Version: 1, Kind: gozzard.CommandOperate, Session: session, Ops: ops})
	synctest.Wait()
}

func (r *rig) do(ops ...gozzard.Op) { r.send(r.session, ops...) }

func (r *rig) cancelOps(ids ...gozzard.OpID) {
	r.a.Receive(&gozzard.Command{Version: 1, Kind: gozzard.CommandCancel, Session: r.session, Cancel: ids})
	synctest.Wait()
}

func (r *rig) ack(ids ...gozzard.OpID) {
	r.a.Receive(&gozzard.Command{Version: 1, Kind: gozzard.CommandAck, Session: r.session, Acked: ids})
	synctest.Wait()
}

// pass waits in virtual time.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// phases formats reports for messages.
func phases(all []gozzard.OpReport) (out []string) {
	for _, o := range all {
		out = append(out, fmt.Sprintf("%s/%s", o.Phase, o.Outcome.Code))
	}
	return out
}

// copyDir is what a crash at this moment would leave.
func copyDir(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}

		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		}

		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}

		return os.WriteFile(filepath.Join(to, rel), b, 0o600)
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
