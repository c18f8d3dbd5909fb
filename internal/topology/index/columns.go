package index

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/topology"
)

// columns is one business in the index. A row is a process; its number is its position in ids. Things refer to each
// other by their positions in these slices. There is no pointer and no string for each row, so that for the garbage
// collector two million rows are a few dozen objects. Only the last group of fields changes.
type columns struct {
	biz       int
	namespace string

	sets           []setEntry    // by id
	modules        []moduleEntry // by set, then id
	modulesByID    []uint32
	moduleRank     []uint32 // position in modulesByID, by module
	moduleNames    []string
	services       []serviceEntry // by module, then id
	servicesByID   []uint32
	serviceNames   []string // in the order of services, so that a scan over services reads memory in order
	servicesByName []uint32
	serviceRows    lists    // rows of each service, in order
	serviceKinds   []uint32 // the kinds of the rows in serviceRows.items: a scan tests them without visiting the rows

	hosts        []hostEntry // by IPv4 address, then cloud
	hostsByIPv6  []uint32    // those that have one
	hostsByAgent []uint32    // those that have one
	hostServices lists
	clouds       []topology.Cloud // those with hosts, by id; the name is "" where the business does not have it

	aliases   []string // sorted
	aliasRows lists
	kinds     []kind
	configs   map[int][]topology.ConfigRef // of processes without a template, by id

	// One entry for each row, in the order of process ids.
	ids     []int
	service []uint32
	kind    []uint32
	base    []int                          // instance number of local number 0
	first   []uint32                       // position of local number 1 in status; one more entry at the end
	envs    [topology.EnvFormal + 1]rowSet // the rows of each environment

	// refreshMu is held from asking the fleet until its answer is written, so that an older answer never overwrites a
	// newer one.
	refreshMu sync.Mutex
	mu        sync.RWMutex
	replaced  atomic.Bool // queries use other columns now: what is written here is lost

	// Protected by mu. A writer holds refreshMu as well.
	status  []status // one for each instance
	running rowSet   // rows by their combined state
	stopped rowSet
	hosted  rowSet
}

// span is a part of a slice, from from to to-1.
type span struct{ from, to uint32 }

type setEntry struct {
	id      int
	name    string
	env     topology.Env
	modules span
}

type moduleEntry struct {
	id       int
	template int
	name     uint32
	set      uint32
	services span
}

type serviceEntry struct {
	id     int
	name   uint32
	module uint32
	host   uint32
}

type hostEntry struct {
	topology.Host
	cloud uint32
	rank  uint32 // the same for hosts with the same IPv4 address
}

// kind is what many processes have in common: alias, template and priority.
type kind struct {
	alias    uint32
	template int
	priority int
	configs  []topology.ConfigRef // bound to the template
}

// status is the run state of an instance in two bits, its state as people see it in the next four, and in the highest
// bit whether it is supervised ("hosted").
type status uint8

const (
	statusHosted    status = 0x80
	statusRun       status = 0x03
	statusCondition status = 0x3c
	conditionShift         = 2
)

func packStatus(s topology.Status) status {
	p := status(s.State)
	if s.State > gozzard.StateStopped { // queries know no other states
		p = status(gozzard.StateUnregistered)
	}
	if s.Condition <= gozzard.ConditionUnregistered {
		p |= status(s.Condition) << conditionShift
	}
	if s.Hosted {
		p |= statusHosted
	}
	return p
}

func (s status) state() gozzard.RunState { return gozzard.RunState(s & statusRun) }

// condition is unknown for an instance that was never looked at.
func (s status) condition() gozzard.Condition {
	if c := gozzard.Condition(s & statusCondition >> conditionShift); c != gozzard.ConditionNone {
		return c
	}
	return gozzard.ConditionUnknown
}

func (s status) hosted() bool { return s&statusHosted != 0 }

// combine is topology.Together for packed statuses.
func combine(all []status) status {
	if len(all) == 0 {
		return 0
	}
	state, hosted := all[0].state(), statusHosted
	for _, s := range all {
		if s.state() != state {
			state = gozzard.StateStopped
		}
		hosted &= s
	}
	return status(state) | hosted
}

// lists is many lists of positions in one slice.
type lists struct {
	start []uint32 // of each list in items; one more entry at the end
	items []uint32
}

func (l *lists) of(i uint32) []uint32 { return l.items[l.start[i]:l.start[i+1]] }

// size is the number of items in the lists of a span.
func (l *lists) size(s span) int { return int(l.start[s.to] - l.start[s.from]) }

// newLists groups the positions of a column by the value at each: list i has the positions with value i, in order. It
// calls column twice.
func newLists(values int, column func(yield func(value uint32))) lists {
	l := lists{start: make([]uint32, values+1)}

	// Count the values, and add the counts up to the start of each list.
	column(func(v uint32) { l.start[v+1]++ })

	for v := range values {
		l.start[v+1] += l.start[v]
	}

	// Put each position into its list.
	l.items = make([]uint32, l.start[values])
	next := slices.Clone(l.start)
	position := uint32(0)
	column(func(v uint32) {
		l.items[next[v]] = position
		next[v]++
		position++
	})

	return l
}

// aliasOf is the position of a row's alias.
func (c *columns) aliasOf(row uint32) uint32 { return c.kinds[c.kind[row]].alias }

func (c *columns) serviceName(s uint32) string { return c.serviceNames[c.services[s].name] }

// statusesOf are the statuses of a row's instances.
func (c *columns) statusesOf(row uint32) []status { return c.status[c.first[row]:c.first[row+1]] }

// updateRow writes the combined status of a row's instances into the sets of rows.
func (c *columns) updateRow(row uint32) {
	all := combine(c.statusesOf(row))
	c.running.assign(row, all.state() == gozzard.StateRunning)
	c.stopped.assign(row, all.state() == gozzard.StateStopped)
	c.hosted.assign(row, all.hosted())
}

// stateOf reads the combined status of a row's instances from the sets of rows.
func (c *columns) stateOf(row uint32) (state gozzard.RunState, hosted bool) {
	switch {
	case c.running.has(row):
		state = gozzard.StateRunning
	case c.stopped.has(row):
		state = gozzard.StateStopped
	}
	return state, c.hosted.has(row)
}
