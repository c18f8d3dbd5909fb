package fleet

import (
	"sync/atomic"

	"github.com/gozzard/gozzard"
)

// changes are the hosts with processes that were added, removed, or changed their state or supervision since the last
// call of Changed. Recording starts with the first call, so that an index without a reader stores nothing.
type changes struct {
	any   atomic.Bool // something is recorded; read without the lock
	noted bool        // Changed was called, so changes are recorded
	hosts []uint32    // each once: host.changed is true
	addrs map[gozzard.HostAddr]struct{}
}

// Brief is the part of a process that most queries need.
type Brief struct {
	State      gozzard.RunState
	Hosted     bool  // supervised
	PID        int32 // -1 when not running
	ReportedAt int64 // Unix seconds; 0: never
	Stale      bool  // its host is not known, offline, or has not reported since the server started

	Condition gozzard.Condition // as people see it
}

// Changed returns the hosts with processes that were added, removed, or changed their state or supervision since the
// last call: by agent, and by every address that they own or that has another owner now. The first call returns
// nothing and starts the recording. Only one goroutine may call it.
func (x *Index) Changed() (agents []gozzard.AgentID, addrs []gozzard.HostAddr) {
	if x.changes.noted && !x.changes.any.Load() { // only this goroutine writes noted
		return nil, nil
	}

	x.mu.Lock()
	defer x.mu.Unlock()

	// List the hosts with the addresses that they own.
	c := &x.changes
	agents = make([]gozzard.AgentID, 0, len(c.hosts))
	addrs = make([]gozzard.HostAddr, 0, len(c.hosts)+len(c.addrs))
	for _, at := range c.hosts {
		e := x.hosts[at]
		e.changed = false
		agents = append(agents, e.Info.Agent)
		for _, a := range e.Info.Addrs {
			if x.owns(e, a) {
				addrs = append(addrs, a)
			}
		}
	}

	// List the addresses with another owner.
	for a := range c.addrs {
		addrs = append(addrs, a)
	}

	c.hosts, c.addrs, c.noted = nil, nil, true
	c.any.Store(false)
	return agents, addrs
}

// Look reads processes of one host under one lock: of the agent if it is known, otherwise of the host that owns the
// address. It calls f for every key, in order. f must be fast and must not call the index.
func (x *Index) Look(agent gozzard.AgentID, addr gozzard.HostAddr, keys []gozzard.Key, f func(i int, b Brief)) {
	x.mu.RLock()
	defer x.mu.RUnlock()

	e := x.knownHost(agent)
	if at, ok := x.byAddr[addr]; ok && e == nil {
		e = x.hosts[at]
	}

	for i, k := range keys {
		b := Brief{PID: -1, Stale: e == nil || !e.Online || !e.reported, Condition: gozzard.ConditionUnknown}
		if e != nil {
			if e.fresh() && e.swept {
				b.Condition = gozzard.ConditionUnregistered
			}
			if r := x.find(e, k); r != nil {
				b.Condition = x.condition(r)
				b.State, b.Hosted, b.PID, b.ReportedAt = r.state, r.flags&rowHosted != 0, r.pid, r.reported
			}
		}
		f(i, b)
	}
}

// noteHost records that processes of a host changed. mu is held.
func (x *Index) noteHost(at uint32) {
	e := x.hosts[at]
	if !x.changes.noted || e.changed {
		return
	}
	e.changed = true
	x.changes.hosts = append(x.changes.hosts, at)
	x.changes.any.Store(true)
}

// noteAddr records that an address has another owner, or none, and so other processes. mu is held.
func (x *Index) noteAddr(a gozzard.HostAddr) {
	if !x.changes.noted {
		return
	}
	if x.changes.addrs == nil {
		x.changes.addrs = make(map[gozzard.HostAddr]struct{})
	}
	x.changes.addrs[a] = struct{}{}
	x.changes.any.Store(true)
}
