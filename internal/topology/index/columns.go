package index

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/topology"
)

// columns is one business as the index holds it. Things refer to each other by their places in these slices; there
// is no pointer and no string per row, so that two million of them are a few dozen objects to the garbage
// collector. All but the last group never changes.
type columns struct {
	biz       int
	namespace string

	sets           []setEntry    // by id
	modules        []moduleEntry // by set, then id
	modulesByID    []uint32
	moduleRank     []uint32 // place in modulesByID, by module
	moduleNames    []string
	services       []serviceEntry // by module, then id
	servicesByID   []uint32
	serviceNames   []string // in order of services, as they are walked through
	servicesByName []uint32
	serviceRows    lists    // rows of each service, in order
	serviceKinds   []uint32 // of the rows in serviceRows: with them at hand, most rows need not be visited

	hosts        []hostEntry // by IPv4 address, then cloud
	hostsByIPv6  []uint32    // those that have one
	hostsByAgent []uint32    // those that have one
	hostServices lists
	clouds       []topology.Cloud // by id, those that hosts are in; the name is "" where the business does not tell it

	aliases   []string // sorted
	aliasRows lists
	kinds     []kind
	configs   map[int][]topology.ConfigRef // of processes that have no template

	// One entry for each process, in order of ids.
	ids     []int
	service []uint32
	kind    []uint32
	base    []int    // instance number of local number 0
	first   []uint32 // place of local number 1 in status; one more entry at the end
	envs    [topology.EnvFormal + 1]bits

	// from asking the fleet to writing its answer, so that an older answer never overwrites a newer one
	refreshing sync.Mutex
	mu         sync.RWMutex
	gone       atomic.Bool // other columns have taken the place of these: what is written here is lost

	// Under mu; written only by who holds refreshing as well.
	status  []status // one for each instance
	running bits     // rows by their state, all instances together
	stopped bits
	hosted  bits
}

// span is a part of a slice.
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

// kind is what many processes have in common.
type kind struct {
	alias    uint32
	template int
	priority int
	configs  []topology.ConfigRef // bound to the template
}

// status is the state of an instance in two bits and whether it is hosted.
type status uint8

const statusHosted status = 0x80

func packStatus(s topology.Status) status {
	p := status(s.State)
	if s.State > gozzard.StateStopped { // no state that anybody can ask for
		p = status(gozzard.StateUnregistered)
	}
	if s.Hosted {
		p |= statusHosted
	}
	return p
}

func (s status) state() gozzard.RunState { return gozzard.RunState(s &^ statusHosted) }

func (s status) hosted() bool { return s&statusHosted != 0 }

// fold is Together over packed statuses.
func fold(all []status) status {
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

// lists is many lists of places in one slice.
type lists struct {
	start []uint32 // of each list in items; one more entry at the end
	items []uint32
}

func (l *lists) of(i uint32) []uint32 { return l.items[l.start[i]:l.start[i+1]] }

// size is the number of items in the lists of a span.
func (l *lists) size(s span) int { return int(l.start[s.to] - l.start[s.from]) }

// newLists sorts the places of a column by the value there, keeping their order.
func newLists(values int, column func(yield func(value uint32))) lists {
	l := lists{start: make([]uint32, values+1)}
	column(func(v uint32) { l.start[v+1]++ })

	for v := range values {
		l.start[v+1] += l.start[v]
	}

	l.items = make([]uint32, l.start[values])
	next := slices.Clone(l.start)
	place := uint32(0)
	column(func(v uint32) {
		l.items[next[v]] = place
		next[v]++
		place++
	})

	return l
}

// aliasOf is the place of a row's alias.
func (c *columns) aliasOf(row uint32) uint32 { return c.kinds[c.kind[row]].alias }

func (c *columns) serviceName(s uint32) string { return c.serviceNames[c.services[s].name] }

// statusesOf are the statuses of a row's instances.
func (c *columns) statusesOf(row uint32) []status { return c.status[c.first[row]:c.first[row+1]] }

// write puts the fold of a row's instances into the bits.
func (c *columns) write(row uint32) {
	all := fold(c.statusesOf(row))
	c.running.put(row, all.state() == gozzard.StateRunning)
	c.stopped.put(row, all.state() == gozzard.StateStopped)
	c.hosted.put(row, all.hosted())
}

// together is the fold of a row's instances, out of the bits.
func (c *columns) together(row uint32) (state gozzard.RunState, hosted bool) {
	switch {
	case c.running.has(row):
		state = gozzard.StateRunning
	case c.stopped.has(row):
		state = gozzard.StateStopped
	}
	return state, c.hosted.has(row)
}
