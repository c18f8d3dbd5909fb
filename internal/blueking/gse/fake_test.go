package gse_test

import (
	"context"
	"fmt"
	"math"
	"net/netip"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/record"
)

// The fleet of these tests.
const (
	agentA = "020000000052540025157e1753363692251c" // 0:10.0.0.2, online
	agentB = "0200000007525400f355781710390005465c" // 0:10.0.0.3, online
	agentC = "agent-seed"                           // 1:10.0.0.1, online; what the documents' samples ask
	agentD = "agent-offline"                        // 0:10.0.0.9, offline
	agentE = "agent-six"                            // 0:2001:db8::1, online
)

const taskID = gozzard.TaskID("20180315180551:1000")

func addr(cloud int, ip string) gozzard.HostAddr {
	return gozzard.HostAddr{Cloud: cloud, IP: netip.MustParseAddr(ip)}
}

// fake is a plane with a fixed fleet. It records its calls.
type fake struct {
	calls   []call
	results map[gozzard.TaskID]record.TaskResults
	last    *gozzard.Operation
	err     error // of every call that can fail
	rows    int   // in namespace gse, for paging
	hosts   []fleet.Host
}

// call is one call as golden files show it.
type call struct {
	Call   string        `json:"call"`
	Door   string        `json:"door,omitempty"`
	Caller string        `json:"caller,omitempty"`
	Key    string        `json:"idempotency_key,omitempty"`
	Items  []itemShown   `json:"items,omitempty"`
	Args   string        `json:"args,omitempty"`
	At     []targetShown `json:"at,omitempty"`
}

type itemShown struct {
	Action  string            `json:"action"`
	Key     string            `json:"key"`
	Labels  map[string]string `json:"labels"`
	Spec    *gozzard.Spec     `json:"spec"`
	Targets []targetShown     `json:"targets"`
	Refused *gozzard.Outcome  `json:"refused,omitempty"`
}

type targetShown struct {
	Agent   string           `json:"agent,omitempty"`
	Addr    string           `json:"addr,omitempty"`
	Key     string           `json:"key"`
	Refused *gozzard.Outcome `json:"refused,omitempty"`
}

func show(ts []gozzard.Target) []targetShown {
	var out []targetShown
	for _, t := range ts {
		s := targetShown{Agent: string(t.Agent), Key: t.ResultKey, Refused: t.Refused}
		if t.Addr.IP.IsValid() {
			s.Addr = t.Addr.String()
		}
		out = append(out, s)
	}
	return out
}

func (f *fake) Operate(_ context.Context, op *gozzard.Operation) (gozzard.Task, error) {
	c := call{Call: "operate", Door: op.Door, Caller: fmt.Sprintf("%s/%s asserted=%v", op.Caller.App, op.Caller.User,
		op.Caller.Asserted), Key: op.IdempotencyKey}
	for _, it := range op.Items {
		c.Items = append(c.Items, itemShown{it.Action.Stored(), it.Key.String(), it.Labels, it.Spec, show(it.Targets),
			it.Refused})
	}
	f.calls, f.last = append(f.calls, c), op
	return gozzard.Task{ID: taskID, Seq: 1000, Caller: op.Caller, Door: op.Door}, f.err
}

// ReadFile knows two files.
func (f *fake) ReadFile(_ context.Context, _ gozzard.Caller, q gozzard.FileRead) (gozzard.FileView, error) {
	f.calls = append(f.calls, call{Call: "read_file", Args: fmt.Sprint(q.Namespace, " ", q.Path, " ", q.Account, " ", q.Transfer),
		At: show([]gozzard.Target{q.Target})})
	content := []byte("hello")
	switch q.Path {
	case "/data/repo/web.conf":
		return gozzard.FileView{Exists: true, Mode: "0640", Size: 5, SHA256: gozzard.FileDigest(content), Content: content}, f.err
	case "/data/repo/run.sh":
		return gozzard.FileView{Exists: true, Mode: "4755", Size: 5, SHA256: gozzard.FileDigest(content), Content: content}, f.err
	}
	return gozzard.FileView{}, f.err
}

func (f *fake) WriteFiles(ctx context.Context, op *gozzard.FileOperation) (gozzard.Task, error) {
	whole, err := control.OperationOf(op)
	if err != nil {
		return gozzard.Task{}, err
	}
	return f.Operate(ctx, whole)
}

func (f *fake) Results(_ context.Context, caller gozzard.Caller, id gozzard.TaskID) (record.TaskResults, error) {
	if f.err != nil {
		return record.TaskResults{}, f.err
	}
	r, ok := f.results[id]
	if !ok || r.Task.Caller.App != caller.App {
		return record.TaskResults{}, gozzard.Errorf(gozzard.ErrNotFound, "task %.10s is unknown", id)
	}
	return r, nil
}

// CancelTask records what is cancelled.
func (f *fake) CancelTask(ctx context.Context, q *record.Cancel) (record.TaskResults, error) {
	res, err := f.Results(ctx, q.Caller, q.Task)
	if err != nil || res.Task.Door != q.Door {
		return record.TaskResults{}, gozzard.Errorf(gozzard.ErrNotFound, "no such task")
	}
	c := call{Call: "cancel", Args: string(q.Task)}
	for i := range res.Attempts {
		if a := &res.Attempts[i]; q.Only == nil || q.Only(a) {
			c.At = append(c.At, targetShown{Key: a.ResultKey})
		}
	}
	f.calls = append(f.calls, c)
	return res, nil
}

// Await ends the last operation: known hosts do what was requested, other results depend on the name.
func (f *fake) Await(_ context.Context, caller gozzard.Caller, id gozzard.TaskID,
	limit time.Duration) (record.TaskResults, error) {
	if id != taskID || limit <= 0 {
		return record.TaskResults{}, fmt.Errorf("await of %q for %v", id, limit)
	}

	res := record.TaskResults{Task: gozzard.Task{ID: id, Caller: caller, Door: f.last.Door}}
	for _, it := range f.last.Items {
		for _, t := range it.Targets {
			a := gozzard.Attempt{Key: it.Key, Action: it.Action, ResultKey: t.ResultKey, State: gozzard.AttemptOK,
				Outcome: gozzard.Outcome{Code: gozzard.CodeOK}}
			h, known := f.Resolve(gozzard.Caller{}, t)
			switch {
			case !known || !h.Online:
				a.State, a.Outcome = gozzard.AttemptNotExecuted,
					gozzard.Outcome{Code: gozzard.CodeUnreachable, Message: "the agent is offline"}
			case it.Key.Name == "slow":
				a.State, a.Outcome = gozzard.AttemptDispatched, gozzard.Outcome{}
			case it.Key.Name == "known" && it.Action == gozzard.ActionRegister:
				a.State, a.Outcome = gozzard.AttemptNotExecuted, gozzard.Outcome{Code: gozzard.CodeAlreadyRegistered}
			case it.Key.Name == "strange" && it.Action == gozzard.ActionUnregister:
				a.State, a.Outcome = gozzard.AttemptFailed, gozzard.Outcome{Code: gozzard.CodeNoDefinition}
			}
			res.Attempts = append(res.Attempts, a)
		}
	}

	return res, nil
}

func knownHosts() []fleet.Host {
	seen := time.Unix(1632830304, 777e6)
	host := func(id string, online bool, a gozzard.HostAddr) fleet.Host {
		return fleet.Host{Info: gozzard.HostInfo{Agent: gozzard.AgentID(id), Addrs: []gozzard.HostAddr{a},
			OS: "linux", Version: "1.2.3", StartedAt: 1632830300},
			Online: online, LastSeen: seen}
	}
	return []fleet.Host{host(agentA, true, addr(0, "10.0.0.2")), host(agentB, true, addr(0, "10.0.0.3")),
		host(agentC, true, addr(1, "10.0.0.1")),
		host(agentD, false, addr(0, "10.0.0.9")), host(agentE, true, addr(0, "2001:db8::1"))}
}

func (f *fake) Resolve(_ gozzard.Caller, t gozzard.Target) (fleet.Host, bool) {
	for _, h := range f.hosts {
		if t.Agent != "" && h.Info.Agent == t.Agent || t.Agent == "" && t.Addr == h.Info.Addrs[0] {
			return h, true
		}
	}
	return fleet.Host{}, false
}

func row(agent string, a gozzard.HostAddr, key gozzard.Key) fleet.Row {
	return fleet.Row{Agent: gozzard.AgentID(agent), Addr: a, Status: gozzard.Status{
		Key: key, Labels: map[string]string{"proc_name": "proc-test"}, Wanted: gozzard.StateRunning,
		State: gozzard.StateRunning, Hosted: true, PID: 4437,
		Version: "1.2.19", RegisteredAt: 1441006057, StartedAt: 1441006058, ReportedAt: 1441006059, CPU: 0.1,
		Mem: 0.3, FD: 7, Disk: 8, Net: 9,
	}}
}

// Status depends on the name of the process: "none" does not exist, "odd" is what a hostile agent could report,
// "stopped" is not running.
func (f *fake) Status(_ gozzard.Caller, key gozzard.Key, targets []gozzard.Target) []record.StatusRow {
	f.calls = append(f.calls, call{Call: "status", Args: key.String(), At: show(targets)})
	out := make([]record.StatusRow, len(targets))
	for i, t := range targets {
		out[i].Target = t
		if t.Refused != nil {
			continue
		}
		h, ok := f.Resolve(gozzard.Caller{}, t)
		if !ok {
			continue
		}
		out[i].HostKnown, out[i].Host = true, h
		if key.Name == "none" {
			continue
		}
		out[i].ProcKnown, out[i].Row = true, row(string(h.Info.Agent), h.Info.Addrs[0], key)
		st := &out[i].Row.Status
		switch {
		case key.Name == "odd":
			st.CPU, st.Mem, st.PID, st.State, st.Labels = float32(math.NaN()), float32(math.Inf(1)), 0, 9, nil
		case key.Name == "stopped":
			st.State, st.PID, st.Wanted, st.Hosted = gozzard.StateStopped, 4437, gozzard.StateStopped, false
		}
		out[i].Row.Stale = !h.Online
	}

	return out
}

func (f *fake) Page(_ gozzard.Caller, namespace string, start, limit int) (int, []fleet.Row) {
	f.calls = append(f.calls, call{Call: "page", Args: fmt.Sprint(namespace, " ", start, " ", limit)})
	if namespace != "gse" {
		return 0, nil
	}
	var rows []fleet.Row
	for i := start; i < min(start+limit, f.rows); i++ {
		rows = append(rows, row(agentC, addr(1, "10.0.0.1"),
			gozzard.Key{Namespace: "gse", Name: fmt.Sprint("proc-", i)}))
	}
	return f.rows, rows
}

func (f *fake) SetGroups(_ context.Context, req record.GroupRequest) ([]record.GroupAnswer, error) {
	f.calls = append(f.calls, call{Call: "set_groups",
		Args: fmt.Sprint(req.Namespace, " ", req.Labels, " ", req.Groups), At: show(req.Targets)})
	var out []record.GroupAnswer
	for _, t := range req.Targets {
		a := record.GroupAnswer{Target: t, Outcome: gozzard.Outcome{Code: gozzard.CodeOK}}
		if _, ok := f.Resolve(gozzard.Caller{}, t); !ok {
			a.Outcome = gozzard.Outcome{Code: gozzard.CodeUnreachable, Message: "no agent has ever reported from it"}
		}
		out = append(out, a)
	}
	return out, f.err
}

func (f *fake) Groups(_ context.Context, _ gozzard.Caller, namespace string,
	targets []gozzard.Target) ([]record.GroupLimits, error) {
	var out []record.GroupLimits
	for _, t := range targets {
		if h, ok := f.Resolve(gozzard.Caller{}, t); ok {
			out = append(out, record.GroupLimits{Agent: h.Info.Agent, Addr: h.Info.Addrs[0], Namespace: namespace,
				Group: "gse", CPULimit: 20, MemLimit: 20.5, CPUWeight: 1})
		}
	}
	return out, f.err
}

func (f *fake) Rebind(_ context.Context, _ gozzard.Caller, a gozzard.HostAddr, agent gozzard.AgentID,
	_ [32]byte) error {
	f.calls = append(f.calls, call{Call: "rebind", Args: a.String() + " " + string(agent)})
	h, ok := f.Resolve(gozzard.Caller{}, gozzard.Target{Addr: a})
	switch {
	case f.err != nil:
		return f.err
	case !ok:
		return gozzard.Errorf(gozzard.ErrNotFound, "no such host")
	case h.Info.Agent != agent:
		return gozzard.Errorf(gozzard.ErrConflict, "served by another agent")
	}
	return nil
}
