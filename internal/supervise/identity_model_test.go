package supervise

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/identity"
	"github.com/gozzard/gozzard/test/explore"
)

// The exhaustive test of supervision: an explicit-state model of one machine, its processes, their pid files, the
// journal and the agent. The steps of the agent are the methods of the actor that the product runs, on a Supervisor
// whose Host is this machine. Package identity decides which process belongs to a definition.
//
// The model has the true nature of each process, which the agent does not know. It compares what the agent does with
// that.
//
// The model has no time. A command, a check or a pause may be over at any moment, a process may end at any moment. The
// times of processes and pid files are only ordered. Pids are only compared: a new process gets an unused pid, or one
// that a pid file or the journal still names.

const (
	maxLive = 5
	maxDefs = 2

	maxNumber = 32 // of times and pids
)

// modelConfig bounds one exploration.
type modelConfig struct {
	name   string
	cgroup bool // the kernel keeps groups together; else there are marks
	defs   int  // definitions
	live   int  // processes at a time
	beside bool // one of them runs at first
	both   bool // operations arrive for both of them
	shells bool // the program has the name of the shell
	silent bool // nobody wrote a name, and the start command executes a program of another one
	most   budget
	broken mechanism
	decide func(identity.Evidence) identity.Finding
	orphan gozzard.Orphans
}

// budget is how often something may happen.
type budget struct {
	crashes   uint8 // the agent is killed
	reboots   uint8
	strangers uint8 // processes that belong to no definition
	hands     uint8 // processes of a definition that a person starts
	mischief  uint8 // a pid file is written with a wrong pid, or is removed
	renames   uint8 // a process executes another program, hides, or starts under a wrong name
	handovers uint8
	workers   uint8
	forks     uint8 // double forks
	defines   uint8 // definitions that are changed, registered or unregistered
	ops       uint8
}

// nature is what a process really is.
type nature uint8

const (
	noProcess nature = iota
	aShell           // of a start command
	aMain            // a main process, which a start command has started
	aWorker          // a process that a main process has started
	byHand           // a main process that a person has started
	stranger         // belongs to no definition
)

// live is one live process. What the agent cannot know is in the first part.
type live struct {
	is     nature
	of     uint8 // number of the definition
	proven bool  // it was the process on record after a check, or was adopted
	next   bool  // it takes over from another main process
	heir   bool  // its main process has ended, or it began beside one by hand
	left   bool  // a worker whose main process has ended and is named by the pid file
	forked bool  // a shell that has started its main process

	pid    uint8
	start  uint8
	parent uint8 // its start; 0 if the parent has ended
	group  uint8 // number of the definition; 0: none
	name   uint8 // of the program
	marked bool  // without cgroups: its mark can be read

	due  bool // the stop in progress must end it
	open bool // it is the shell of a command, or took its place, and the end of the command is not on record

	// What the agent has in memory.
	holder uint8 // number of the definition that has it on record
	known  bool  // it is the shell of a running command
	seen   bool  // without cgroups: it was found in the group before
	listed bool  // it is one of those that a stop found at its beginning
	orphan bool
}

// onRecord is identity.Held in a few bytes.
type onRecord struct {
	pid, start uint8 // start 0: of an earlier boot
	settled    bool
	replaced   bool // a start has begun since
	pidFile    bool // it was adopted
	unnamed    bool // nobody wrote its name
}

// pidFile is a pid file. The time is odd: it lies between the start times of two processes.
type pidFile struct {
	pid, at uint8
	fresh   bool // it was written since the start in progress began
}

// pointer says what the actor does next.
type pointer uint8

const (
	atIdle pointer = iota
	atRestore
	atLook
	atClear
	atRun
	atCommand
	atCheck
	atFailed
	atUp
	atMembers
	atSignal
	atWait
	atLeftovers
	atUpdate
	atVerdict
)

// defined is one definition: its record in the journal, what the actor has in memory, and its pid file.
type defined struct {
	managed, hosted, wanted bool
	name, stored            uint8 // the name in the definition: in memory, in the journal
	held                    onRecord

	running, unclear, orphans bool
	planned, message, note    bool

	at     pointer
	action gozzard.Action
	pullUp bool
	saw    bool // a process was seen while the command ran
	early  bool // what was seen has forked and ended, as daemons do right after their start
	forced bool
	code   uint8

	file pidFile

	stopped bool // the verdict of a stop or kill was the last word
}

// world is one state of everything. It is compared and hashed as a value.
type world struct {
	live [maxLive]live
	defs [maxDefs]defined
	up   bool // the agent runs
	left budget
}

// modelAct is what happens to a definition in a step.
type modelAct struct {
	def  int
	verb string
}

func (a modelAct) String() string { return fmt.Sprintf("%c: %s", 'A'+a.def, a.verb) }

// modelStep leads to a successor. Helpful steps need no fault and no person.
type modelStep = explore.Step[world, modelAct]

// exploreSupervision visits every reachable world of a configuration. In each, what must run must be able to come up when
// no more faults happen.
func exploreSupervision(c modelConfig) explore.Result {
	return explore.All(newSupervisionModel(c), badDown)
}

// supervisionModel explores one configuration.
type supervisionModel struct {
	modelConfig
	s      *Supervisor
	actors [maxDefs]*actor
	w      world // what the step in progress changes
	acting int   // the definition whose actor works
	bad    string
	steps  []modelStep

	spareAll bool // Clear does nothing

	rules map[string]int // how often a rule has decided
}

var modelKeys = [maxDefs]gozzard.Key{{Namespace: "ns", Name: "a"}, {Namespace: "ns", Name: "b"}}

// The names of programs: the one that all definitions have at first, another one, and the one of a changed definition.
const (
	nameFirst uint8 = iota
	nameOther
	nameChanged
	nameCount
)

var (
	programNames = [nameCount]string{"game", "other", "game2"}
	modelSpecs   [nameCount]*gozzard.Spec
	modelBytes   [nameCount][]byte
)

func newSupervisionModel(c modelConfig) *supervisionModel {
	for n, name := range programNames {
		modelSpecs[n] = &gozzard.Spec{
			Identity: gozzard.Identity{ProcName: name, SetupPath: "/srv", PIDPath: "/srv/pid", User: "root"},
			Control:  gozzard.Control{Start: "./start.sh"}, Policy: gozzard.DefaultPolicy()}
		modelSpecs[n].Policy.Orphans = c.orphan
		if c.silent {
			modelSpecs[n].Control.Start = "./" + name
		}
		modelBytes[n] = gozzard.EncodeSpec(modelSpecs[n])
	}

	m := &supervisionModel{modelConfig: c, rules: map[string]int{}}
	if m.decide == nil {
		m.decide = identity.Decide
	}
	m.s = New(Options{Host: &modelHost{m: m}, Log: slog.New(slog.DiscardHandler)})
	return m
}

func (m *supervisionModel) intact(x mechanism) bool { return m.broken != x }

// Initial is the world in which everything begins.
func (m *supervisionModel) Initial() world {
	w := world{up: true, left: m.most}
	for d := range m.defs {
		w.defs[d].managed = true
	}
	if m.beside { // the last definition runs
		n := m.defs - 1
		of := uint8(n + 1)
		w.live[0] = live{is: aMain, of: of, group: of, proven: true, marked: true, pid: 1, start: 2, holder: of}
		x := &w.defs[n]
		x.running, x.held, x.file = true, onRecord{pid: 1, start: 2, settled: true}, pidFile{pid: 1, at: 3}
		if m.silent { // it is supervised
			w.live[0].name, x.held.unnamed, x.hosted, x.wanted = nameOther, true, true, true
		}
	}
	m.normalise(&w)
	return w
}

// Expand lists the successors of w. The slice is valid until the next call.
func (m *supervisionModel) Expand(w *world) []modelStep {
	m.steps = m.steps[:0]
	for d := range m.defs {
		m.agentSteps(w, d)
		m.callerSteps(w, d)
		m.worldSteps(w, d)
	}
	m.faultSteps(w)
	return m.steps
}

// try makes a successor by changing a copy of w, and checks what must hold in every state.
func (m *supervisionModel) try(w *world, d int, helpful bool, verb string, change func(*world)) {
	m.w, m.bad, m.acting = *w, "", d
	change(&m.w)
	m.emit(w, d, helpful, verb)
}

// act makes a successor by a step of an actor.
func (m *supervisionModel) act(w *world, d int, helpful bool, verb string, work func(*actor, *defined)) {
	m.w, m.bad, m.acting = *w, "", d
	m.load()
	work(m.actors[d], &m.w.defs[d])
	m.save(w)
	m.emit(w, d, helpful, verb)
}

func (m *supervisionModel) emit(w *world, d int, helpful bool, verb string) {
	if m.bad == "" {
		m.bad = m.twoCopies()
	}
	m.normalise(&m.w)
	if m.bad == "" && m.w == *w {
		return
	}
	m.steps = append(m.steps, modelStep{Next: m.w, Act: modelAct{d, verb}, Helpful: helpful, Bad: m.bad})
}

// twoCopies reports a definition of which two main processes run, apart from a handover.
func (m *supervisionModel) twoCopies() string {
	for d := range m.defs {
		copies := 0
		for i := range m.w.live {
			p := &m.w.live[i]
			if p.is == aMain && !p.next && int(p.of) == d+1 && int(p.group) == d+1 {
				copies++
			}
		}
		if copies > 1 {
			return badCopies
		}
	}
	return ""
}

// Done reports whether every process that must run runs, or its status says why not.
func (m *supervisionModel) Done(w *world) bool {
	if !w.up {
		return false
	}
	for d := range m.defs {
		x := &w.defs[d]
		switch {
		case x.at != atIdle:
			return false
		case !x.managed || !x.hosted:
		case x.running && w.byRecord(x.held) != nil:
		case x.unclear && x.note:
		case x.orphans && m.orphan == gozzard.OrphansWait && x.note && w.hasOrphans(d):
		default:
			return false
		}
	}
	return true
}

func (w *world) hasOrphans(d int) bool {
	return slices.ContainsFunc(w.live[:], func(p live) bool { return p.orphan && int(p.group) == d+1 })
}

// byRecord returns the live process that is on record.
func (w *world) byRecord(h onRecord) *live {
	if h.start == 0 {
		return nil
	}
	for i := range w.live {
		if p := &w.live[i]; p.is != noProcess && p.start == h.start && p.pid == h.pid {
			return p
		}
	}
	return nil
}

func (w *world) byPID(pid uint8) *live {
	for i := range w.live {
		if p := &w.live[i]; p.is != noProcess && p.pid == pid {
			return p
		}
	}
	return nil
}

func (w *world) count() (n int) {
	for i := range w.live {
		if w.live[i].is != noProcess {
			n++
		}
	}
	return n
}

// now is a time after everything that has happened. It is even, so a file is written at now+1.
func (w *world) now() uint8 {
	t := uint8(2)
	for i := range w.live {
		t = max(t, w.live[i].start)
	}
	for d := range w.defs {
		t = max(t, w.defs[d].held.start, w.defs[d].file.at)
	}
	return (t + 2) &^ 1
}

// begin adds a process. It returns nil if there is no room.
func (m *supervisionModel) begin(w *world, p live) *live {
	if w.count() >= m.live {
		return nil
	}
	p.start = w.now()
	for i := range w.live {
		if w.live[i].is == noProcess {
			w.live[i] = p
			return &w.live[i]
		}
	}
	return nil
}

// end removes a process. Its children lose their parent. If it took part in a handover, the other one goes on alone.
func (w *world) end(p *live) {
	was := *p
	*p = live{}
	named := false // as the main process
	if was.of != 0 {
		x := &w.defs[was.of-1]
		named = was.is == aMain && x.held.start == was.start && x.file.pid == was.pid
	}
	for i := range w.live {
		if q := &w.live[i]; q.parent == was.start {
			q.parent = 0
			q.heir, q.left = q.heir || was.proven, q.left || named
		}
	}

	other := w.sibling(was)
	switch {
	case other == nil:
	case other.next:
		other.next, other.heir = false, true
	case was.next: // the handover failed: the one before takes the pid file back
		other.heir, other.proven = true, false
		w.write(int(was.of)-1, other.pid)
	}
}

// sibling is another main process of the same definition.
func (w *world) sibling(p live) *live {
	for i := range w.live {
		if q := &w.live[i]; q.is == aMain && p.is == aMain && q.of == p.of && q.start != p.start {
			return q
		}
	}
	return nil
}

// normalise renumbers times and pids, and sorts the processes by age, so that worlds that differ only in these are one.
func (m *supervisionModel) normalise(w *world) {
	slices.SortFunc(w.live[:], func(a, b live) int {
		if (a.is == noProcess) != (b.is == noProcess) {
			return cmp.Compare(b.is, a.is)
		}
		return cmp.Compare(a.start, b.start)
	})

	// The times.
	var used [maxNumber]bool
	for i := range w.live {
		used[w.live[i].start] = true
	}
	for d := range w.defs {
		used[w.defs[d].held.start] = true
	}
	var to [maxNumber]uint8
	t := uint8(0)
	for i := 1; i < len(used); i++ {
		if used[i] {
			t += 2
			to[i] = t
		} else {
			to[i] = t + 1 // of a file
		}
	}
	for i := range w.live {
		p := &w.live[i]
		p.start, p.parent = to[p.start], to[p.parent]
	}

	// The pids.
	var pids [maxNumber]uint8
	next := uint8(0)
	number := func(pid uint8) uint8 {
		if pid == 0 {
			return 0
		}
		if pids[pid] == 0 {
			next++
			pids[pid] = next
		}
		return pids[pid]
	}
	for i := range w.live {
		w.live[i].pid = number(w.live[i].pid)
	}
	for d := range w.defs {
		x := &w.defs[d]
		x.held.start = to[x.held.start]
		x.held.pid = number(x.held.pid)
		x.file.at, x.file.pid = to[x.file.at], number(x.file.pid)
		if x.file.pid == 0 {
			x.file.at = 0
		}
		x.file.fresh = x.file.fresh && (x.at == atCommand || x.at == atCheck)
	}
}
