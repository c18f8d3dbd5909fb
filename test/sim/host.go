package sim

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/identity"
	"github.com/gozzard/gozzard/internal/supervise"
)

// Host is a machine in memory. Its commands decide what processes it has (see script). It outlives the supervisors that
// use it. It runs no goroutines, so that thousands of hosts fit into one program.
type Host struct {
	mu      sync.Mutex
	boot    int
	lastPID int
	procs   map[int]*process
	keys    map[gozzard.Key]*history
	files   map[string]gozzard.FileView // by path

	kernel    string // the result of Limit
	kernelErr error
	sick      error // the result of Probe

	name  string // in notes
	notes *notes // nil: none are kept

	fails  bool          // every command does
	slowBy time.Duration // every command takes so much longer
}

var _ supervise.Host = (*Host)(nil)

// process is one live process.
type process struct {
	key      gozzard.Key
	id       supervise.Proc
	started  time.Time
	stubborn bool        // ignores TERM
	ends     *time.Timer // of a process that ends by itself
	watches  map[*watch]struct{}
	front    *command // the command that stays in front as this process
}

type watch struct{ exited func(supervise.Exit) }

// history is what the machine remembers about a key.
type history struct {
	commands map[gozzard.Action]int // how often commands of each action began
	started  int                    // processes made, by commands or by hand
	peak     int                    // the most that lived at the same time
	usage    *supervise.Usage
	limits   []gozzard.Resource    // what Limit was called with
	live     []*process            // oldest first
	inFlight map[*command]struct{} // commands that still run or will still have an effect, including abandoned ones
}

// NewHost makes a machine on which nothing runs.
func NewHost() *Host {
	return &Host{kernel: "cgroup2", boot: 1, lastPID: 1000, procs: make(map[int]*process),
		keys: make(map[gozzard.Key]*history)}
}

// Find implements supervise.Host: the process on record, or else the newest live process of the key.
func (h *Host) Find(q supervise.Query) (supervise.Found, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.live(q.Held.Proc); p != nil {
		return supervise.Found{Verdict: identity.Ours, Proc: p.id, StartedAt: p.started, ByCgroup: true,
			How: identity.HowRecord}, nil
	}

	p := h.newest(q.Key)
	if p == nil {
		k := h.keys[q.Key]
		return supervise.Found{Reason: fmt.Sprintf("no process of %s on this machine", q.Key),
			Empty: k == nil || len(k.inFlight) == 0}, nil
	}
	return supervise.Found{Verdict: identity.Ours, Proc: p.id, StartedAt: p.started, ByCgroup: true,
		How: identity.HowStarted}, nil
}

// Members implements supervise.Host.
func (h *Host) Members(q supervise.Query) ([]supervise.Proc, error) { return h.Live(q.Key), nil }

// Watch implements supervise.Host.
func (h *Host) Watch(id supervise.Proc, exited func(supervise.Exit)) (func(), error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.live(id)
	if p == nil {
		return nil, fmt.Errorf("no process %d", id.PID)
	}

	var once sync.Mutex // a stop that has returned has waited for a running call
	stopped := false
	w := &watch{exited: func(e supervise.Exit) {
		once.Lock()
		defer once.Unlock()
		if !stopped {
			exited(e)
		}
	}}

	if p.watches == nil {
		p.watches = make(map[*watch]struct{})
	}

	p.watches[w] = struct{}{}
	return func() {
		h.mu.Lock()
		delete(p.watches, w)
		h.mu.Unlock()
		once.Lock()
		defer once.Unlock()
		stopped = true
	}, nil
}

// Alive implements supervise.Host.
func (h *Host) Alive(id supervise.Proc) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.live(id) != nil
}

// Collect implements supervise.Host: nothing dead stays on this machine.
func (h *Host) Collect(context.Context, supervise.Proc) {}

// Probe implements supervise.Host: it says what Sick has set.
func (h *Host) Probe(context.Context, *gozzard.Control) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sick
}

// Sick sets what the next health checks find; nil is well.
func (h *Host) Sick(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sick = err
}

// Signal implements supervise.Host.
func (h *Host) Signal(id supervise.Proc, sig supervise.Signal) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.live(id)
	switch {
	case p == nil:
		return fmt.Errorf("no process %d", id.PID)
	case sig == supervise.SignalKill:
		h.end(p, supervise.Exit{Known: true, Signal: "SIGKILL"})
	case !p.stubborn:
		h.end(p, supervise.Exit{Known: true, Signal: map[supervise.Signal]string{supervise.SignalTerm: "SIGTERM",
			supervise.SignalInt: "SIGINT", supervise.SignalQuit: "SIGQUIT", supervise.SignalHup: "SIGHUP",
			supervise.SignalUsr1: "SIGUSR1", supervise.SignalUsr2: "SIGUSR2", supervise.SignalWinch: "SIGWINCH"}[sig]})
	}
	return nil
}

// Clear implements supervise.Host: it ends all processes of the key and its abandoned commands.
func (h *Host) Clear(q supervise.Query, _ []supervise.Proc) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if k := h.keys[q.Key]; k != nil {
		for c := range k.inFlight {
			c.kill()
		}
	}
	for _, p := range h.of(q.Key) {
		h.end(p, supervise.Exit{Known: true, Signal: "SIGKILL"})
	}
	return nil
}

// Sample implements supervise.Host: it returns what SetUsage has set, by default the usage of a small process.
func (h *Host) Sample(ids []supervise.Proc) []supervise.Usage {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]supervise.Usage, len(ids))
	for i, id := range ids {
		p := h.live(id)
		if p == nil {
			continue
		}
		out[i] = supervise.Usage{CPU: 0.1, Mem: 0.2, MemKB: 4096, FD: 8, Procs: 1}
		if u := h.history(p.key).usage; u != nil {
			out[i] = *u
		}
	}

	return out
}

// Limit implements supervise.Host: it records the limits and returns what SetKernel has set.
func (h *Host) Limit(key gozzard.Key, r gozzard.Resource) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := h.history(key)
	k.limits = append(k.limits, r)
	return h.kernel, h.kernelErr
}

// OOMKills implements supervise.Host: no process is killed for its memory unless an Exit says so.
func (h *Host) OOMKills(gozzard.Key) int { return 0 }

// Managed does nothing: a simulated host keeps nothing of processes that are gone.
func (h *Host) Managed(gozzard.Key, bool) {}

// EndCommands implements supervise.Host: no command outlives its agent.
func (h *Host) EndCommands(func(gozzard.Key, supervise.Proc) bool) []supervise.Leftover { return nil }

// ReadLog implements supervise.Host: the machine keeps no output of commands.
func (h *Host) ReadLog(q gozzard.LogQuery) gozzard.LogChunk {
	return gozzard.LogChunk{ID: q.ID, Error: "a simulated host keeps no logs"}
}

// Inspect implements supervise.Host.
func (h *Host) Inspect(id supervise.Proc) (gozzard.Detail, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.live(id)
	if p == nil {
		return gozzard.Detail{}, fmt.Errorf("no process %d", id.PID)
	}
	return gozzard.Detail{
		PID: id.PID, Cmdline: p.key.Name, Stat: "S", Threads: 1, StartedAt: p.started.Unix(),
		Elapsed: int64(time.Since(p.started).Seconds()),
	}, nil
}

// Launch makes a process as if a person had started it by hand.
func (h *Host) Launch(key gozzard.Key) supervise.Proc {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.spawn(key).id
}

// End ends all processes of a key as if they ended by themselves. It returns their number.
func (h *Host) End(key gozzard.Key, e supervise.Exit) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	ps := h.of(key)
	for _, p := range ps {
		h.end(p, e)
	}
	return len(ps)
}

// Reboot ends everything at once without a call to a watcher: a supervisor does not survive a reboot either.
func (h *Host) Reboot() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.procs {
		p.watches = nil
		h.end(p, supervise.Exit{})
	}
	for _, k := range h.keys {
		for c := range k.inFlight {
			c.kill()
		}
	}
	h.boot++
}

// SetUsage sets what Sample returns for the key's processes from now on.
func (h *Host) SetUsage(key gozzard.Key, u supervise.Usage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.history(key).usage = &u
}

// SetKernel sets what Limit returns from now on.
func (h *Host) SetKernel(mode string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kernel, h.kernelErr = mode, err
}

// Limits lists the limits that Limit was called with for a key.
func (h *Host) Limits(key gozzard.Key) []gozzard.Resource {
	h.mu.Lock()
	defer h.mu.Unlock()
	if k := h.keys[key]; k != nil {
		return slices.Clone(k.limits)
	}
	return nil
}

// Live lists the live processes of a key, oldest first.
func (h *Host) Live(key gozzard.Key) []supervise.Proc {
	h.mu.Lock()
	defer h.mu.Unlock()
	var ids []supervise.Proc
	for _, p := range h.of(key) {
		ids = append(ids, p.id)
	}
	return ids
}

// Keys lists the keys that have a live process, in order.
func (h *Host) Keys() []gozzard.Key {
	h.mu.Lock()
	defer h.mu.Unlock()
	var keys []gozzard.Key
	for _, p := range h.procs {
		keys = append(keys, p.key)
	}
	slices.SortFunc(keys, gozzard.Key.Compare)
	return slices.Compact(keys)
}

// Starts counts all processes that were ever made for a key.
func (h *Host) Starts(key gozzard.Key) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if k := h.keys[key]; k != nil {
		return k.started
	}
	return 0
}

// Peak is the largest number of processes of a key that lived at the same time.
func (h *Host) Peak(key gozzard.Key) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if k := h.keys[key]; k != nil {
		return k.peak
	}
	return 0
}

// Commands counts the commands of a key that began for an action; ActionQuery counts version probes.
func (h *Host) Commands(key gozzard.Key, a gozzard.Action) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if k := h.keys[key]; k != nil {
		return k.commands[a]
	}
	return 0
}

// InFlight counts the commands of a key that still run or will still have an effect, including those that no caller
// waits for any more.
func (h *Host) InFlight(key gozzard.Key) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if k := h.keys[key]; k != nil {
		return len(k.inFlight)
	}
	return 0
}

// All functions below except Run are called with mu held.

func (h *Host) history(key gozzard.Key) *history {
	k := h.keys[key]
	if k == nil {
		k = &history{commands: make(map[gozzard.Action]int, 2)}
		h.keys[key] = k
	}
	return k
}

func (h *Host) live(id supervise.Proc) *process {
	if p := h.procs[id.PID]; p != nil && p.id == id {
		return p
	}
	return nil
}

func (h *Host) of(key gozzard.Key) []*process {
	if k := h.keys[key]; k != nil {
		return slices.Clone(k.live)
	}
	return nil
}

func (h *Host) newest(key gozzard.Key) *process {
	if k := h.keys[key]; k != nil && len(k.live) > 0 {
		return k.live[len(k.live)-1]
	}
	return nil
}

func (h *Host) spawn(key gozzard.Key) *process {
	h.lastPID++
	p := &process{
		key: key, started: time.Now(),
		id: supervise.Proc{BootID: fmt.Sprintf("boot-%d", h.boot), PID: h.lastPID, Start: uint64(h.lastPID)},
	}
	h.procs[p.id.PID] = p
	k := h.history(key)
	k.started++
	k.live = append(k.live, p)
	k.peak = max(k.peak, len(k.live))
	return p
}

func (h *Host) end(p *process, e supervise.Exit) {
	if h.procs[p.id.PID] != p {
		return
	}

	delete(h.procs, p.id.PID)
	k := h.history(p.key)
	k.live = slices.DeleteFunc(k.live, func(x *process) bool { return x == p })

	if p.ends != nil {
		p.ends.Stop()
	}

	for w := range p.watches {
		go w.exited(e) // ends by itself: supervise.Host requires another goroutine
	}

	p.watches = nil
	if p.front != nil {
		p.front.followed(e)
	}
}

// Run implements supervise.Host. See script for what commands can say.
func (h *Host) Run(ctx context.Context, r supervise.Run) (supervise.Result, error) {
	s, err := parseScript(r.Command)
	if err != nil {
		return supervise.Result{}, err
	}
	s.worsen(h)

	c := &command{host: h, run: r, script: s, ended: make(chan struct{})}
	c.begin()
	timeout := time.NewTimer(max(r.Timeout, 0))
	defer timeout.Stop()
	var front <-chan time.Time

	if r.Front > 0 {
		t := time.NewTimer(r.Front)
		defer t.Stop()
		front = t.C
	}

	return c.wait(ctx, front, timeout.C, r.Hurry)
}

func (c *command) wait(ctx context.Context, front, timeout <-chan time.Time, hurry <-chan struct{}) (supervise.Result,
	error) {
	select {
	case <-c.ended:
		return c.result, nil
	case <-front:
		if c.leave() {
			return supervise.Result{Front: true, Output: c.script.output}, nil
		}
		return c.wait(ctx, nil, timeout, nil)
	case <-hurry:
		if c.run.Front > 0 && c.leave() {
			return supervise.Result{Front: true, Output: c.script.output}, nil
		}
		return c.wait(ctx, front, timeout, nil)
	case <-timeout:
		return c.expire(), nil
	case <-ctx.Done():
		return supervise.Result{}, ctx.Err() // the command goes on
	}
}

// expire ends the command at its time limit.
func (c *command) expire() supervise.Result {
	c.host.mu.Lock()
	defer c.host.mu.Unlock()
	if c.settled { // it ended at the same moment
		return c.result
	}
	c.kill()
	return supervise.Result{ExitCode: -1, TimedOut: true, Output: c.script.output}
}

// leave calls left for a caller that does not hold mu.
func (c *command) leave() bool {
	c.host.mu.Lock()
	defer c.host.mu.Unlock()
	return c.left()
}
