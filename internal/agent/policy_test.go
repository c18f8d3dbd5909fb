package agent_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
)

// rules is a policy that a test changes while the agent runs. It distinguishes definitions by their account.
type rules struct {
	mu   sync.Mutex
	no   map[gozzard.Action]bool
	deny string // account
	most int
	def  string // the account of definitions that name none
}

func (p *rules) DefaultAccount() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.def
}

func (p *rules) FormerAccount() string { return "" }

func (p *rules) KeptAccount() string { return p.DefaultAccount() }

func (p *rules) File(_, account, _ string, _ int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.deny != "" && account == p.deny {
		return fmt.Errorf("no file of %s (files in policy.yaml)", account)
	}
	return nil
}

func (p *rules) set(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

func (p *rules) Action(a gozzard.Action) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.no[a] {
		return fmt.Errorf("no %s (ops in policy.yaml)", a)
	}
	return nil
}

func (p *rules) Definition(_ string, s *gozzard.Spec) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.Identity.User == "" && p.def == "" {
		return errors.New("no account (default_user in policy.yaml)")
	}
	if p.deny != "" && s.Identity.User == p.deny {
		return fmt.Errorf("no account %s (allow_root in policy.yaml)", s.Identity.User)
	}
	return nil
}

func (p *rules) Script(_, account string, _ *gozzard.ScriptSpec) error {
	return p.Definition("", &gozzard.Spec{Identity: gozzard.Identity{User: account}})
}

func (p *rules) Processes(n int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.most > 0 && n > p.most {
		return errors.New("too many (max_processes in policy.yaml)")
	}
	return nil
}

func governed(t *testing.T) (*rig, *rules) {
	p := &rules{def: "own", no: map[gozzard.Action]bool{}}
	r := newRig(t)
	r.o.Policy = p
	r.start()
	r.connect()
	return r, p
}

func specOf(user, start string) []byte {
	s, err := gozzard.DecodeSpec(spec(start))
	if err != nil {
		panic(err)
	}
	s.Identity.User, s.Control.Health = user, "ok"
	s.Policy.HealthInterval, s.Policy.HealthRestart = 1, true
	return gozzard.EncodeSpec(s)
}

// verdict runs an operation to its end.
func (r *rig) verdict(a gozzard.Action, spec []byte) gozzard.OpReport {
	r.t.Helper()
	op := r.op(a, "")
	op.Spec = spec
	r.do(op)
	pass(2 * time.Second)
	return r.last(op.ID)
}

func (r *rig) wantVerdict(a gozzard.Action, spec []byte, phase gozzard.Phase, code gozzard.Code, words string) {
	r.t.Helper()
	got := r.verdict(a, spec)
	if got.Phase != phase || got.Outcome.Code != code || !strings.Contains(got.Outcome.Message, words) {
		r.t.Errorf("%s: %s %+v, want %s/%s %q", a, got.Phase, got.Outcome, phase, code, words)
	}
}

// TE5: an operation that the owner of the host forbids never begins, and nothing of it is stored.
func TestTE5RefusedOperationsNeverBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := governed(t)
		p.set(func() { p.deny, p.no[gozzard.ActionKill] = "root", true })

		for _, a := range []gozzard.Action{
			gozzard.ActionStart, gozzard.ActionStop, gozzard.ActionRestart, gozzard.ActionReload, gozzard.ActionHost,
			gozzard.ActionRegister, gozzard.ActionUpdate,
		} {
			r.wantVerdict(a, specOf("root", "ok"), gozzard.PhaseNever, gozzard.CodeRefused,
				"no account root (allow_root in policy.yaml)")
		}

		r.wantVerdict(gozzard.ActionKill, specOf("svc", "ok"), gozzard.PhaseNever, gozzard.CodeRefused,
			"no kill (ops in policy.yaml)")

		// What runs nothing is answered, and nothing of it is stored either.
		r.wantVerdict(gozzard.ActionQuery, specOf("root", "ok"), gozzard.PhaseDone, gozzard.CodeOK, "")
		r.wantVerdict(gozzard.ActionUnhost, specOf("root", "ok"), gozzard.PhaseDone, gozzard.CodeNoDefinition, "")

		if n := r.a.Processes(); n != 0 {
			t.Errorf("%d processes are kept", n)
		}
		if n := r.host.Starts(key); n != 0 {
			t.Errorf("%d starts", n)
		}

		r.stop()
		r.start()
		r.connect()

		if open := r.hello().Hello.Open; len(open) != 0 || r.a.Processes() != 0 {
			t.Errorf("after a restart: %v, %d processes", phases(open), r.a.Processes())
		}

		r.wantVerdict(gozzard.ActionStart, specOf("svc", "ok"), gozzard.PhaseDone, gozzard.CodeOK, "")
		r.wantVerdict(gozzard.ActionUpdate, specOf("root", "ok"), gozzard.PhaseNever, gozzard.CodeRefused,
			"no account root")
		r.wantVerdict(gozzard.ActionStop, nil, gozzard.PhaseDone, gozzard.CodeOK, "") // by the definition that was kept
	})
}

// A policy that forbids what was allowed does not touch a running process. The agent does nothing more for the process
// until the policy allows it again.
func TestPolicyThatForbidsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := governed(t)
		r.wantVerdict(gozzard.ActionStart, specOf("root", "ok"), gozzard.PhaseDone, gozzard.CodeOK, "")
		p.set(func() { p.deny = "root" })
		before := r.host.Commands(key, gozzard.ActionQuery)
		pass(10 * time.Minute)

		if n := len(r.host.Live(key)); n != 1 {
			t.Fatalf("%d processes live", n)
		}
		if n := r.host.Commands(key, gozzard.ActionQuery); n != before {
			t.Errorf("%d probes were run", n-before)
		}

		r.wantVerdict(gozzard.ActionStop, nil, gozzard.PhaseNever, gozzard.CodeRefused, "no account root")
		r.wantVerdict(gozzard.ActionQuery, nil, gozzard.PhaseDone, gozzard.CodeOK, "")
		r.host.End(key, supervise.Exit{Known: true, Code: 1})
		pass(30 * time.Minute)

		if n := r.host.Starts(key); n != 1 {
			t.Errorf("%d starts", n)
		}

		r.stop() // it is no different for what is found at the start
		r.start()
		r.connect()
		pass(30 * time.Minute)

		if n := r.host.Starts(key); n != 1 {
			t.Errorf("%d starts after a restart of the agent", n)
		}
		if text := r.shown(); !strings.Contains(text, "no account root (allow_root in policy.yaml)") {
			t.Errorf("the status says %q", text)
		}

		p.set(func() { p.deny = "" })
		pass(10 * time.Minute)

		if n := len(r.host.Live(key)); n != 1 {
			t.Errorf("%d processes live when it is allowed again", n)
		}

		p.set(func() { p.deny = "root" })
		r.wantVerdict(gozzard.ActionUnhost, specOf("root", "ok"), gozzard.PhaseDone, gozzard.CodeOK, "")
		r.wantVerdict(gozzard.ActionUnregister, nil, gozzard.PhaseDone, gozzard.CodeOK, "")
	})
}

// shown is the message of the newest status.
func (r *rig) shown() (text string) {
	for _, rep := range r.taken(gozzard.ReportStatus) {
		for _, s := range rep.Statuses {
			text = s.Message
		}
	}
	return text
}

func TestPolicyCountsProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := governed(t)
		p.set(func() { p.most = 3 })
		var ops []gozzard.Op
		for i := range 10 {
			op := r.op(gozzard.ActionStart, "sleep 1s") // all at once: none is managed before the others begin
			op.Key.Name = fmt.Sprintf("web%d", i)
			ops = append(ops, op)
		}

		r.do(ops...)
		pass(10 * time.Second)
		good := 0
		for _, op := range ops {
			switch got := r.last(op.ID); {
			case got.Outcome.Code == gozzard.CodeOK:
				good++
				again := r.op(gozzard.ActionReload, "")
				again.Key = op.Key
				r.do(again)
				pass(time.Second)
				if got := r.last(again.ID); got.Outcome.Code != gozzard.CodeOK {
					t.Errorf("what is there is refused: %+v", got)
				}
			case got.Phase != gozzard.PhaseNever || got.Outcome.Code != gozzard.CodeRefused ||
				!strings.Contains(got.Outcome.Message, "max_processes"):
				t.Errorf("%+v", got)
			}
		}

		if good != 3 || r.a.Processes() != 3 {
			t.Errorf("%d started, %d kept", good, r.a.Processes())
		}

		gone := r.op(gozzard.ActionUnregister, "")
		for _, op := range ops {
			if r.last(op.ID).Outcome.Code == gozzard.CodeOK {
				gone.Key = op.Key
			}
		}

		r.do(gone)
		pass(time.Second)
		r.wantVerdict(gozzard.ActionStart, spec("ok"), gozzard.PhaseDone, gozzard.CodeOK, "")
	})
}
