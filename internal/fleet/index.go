package fleet

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/statelock"
)

// Host is the current state of a host. Its slices are shared and must not be changed.
type Host struct {
	Info     gozzard.HostInfo
	Session  uint64
	Online   bool
	LastSeen time.Time
	Vitals   Vitals
}

// Row is one process of the fleet. Its labels are shared and must not be changed.
type Row struct {
	Agent  gozzard.AgentID
	Addr   gozzard.HostAddr // the first address of the host; zero while the host is not known
	Status gozzard.Status
	Stale  bool // its host is offline or has not reported since the server started

	// Condition is the state as people see it. If it is unknown, Status.ConditionOf says what the agent reported last.
	Condition gozzard.Condition
}

// Filter selects rows. Every field that is not empty must match, and a field matches if one of its values does. Of the
// labels, all must match.
type Filter struct {
	Namespaces []string // globs with * and ?
	Names      []string // globs with * and ?
	Clouds     []int
	IPs        []netip.Addr
	Agents     []gozzard.AgentID
	Conditions []gozzard.Condition
	Hosted     *bool
	Labels     []gozzard.LabelRule
}

// Index is the fleet in memory. All methods are safe for concurrent use. One lock guards it. A report holds the lock
// for a microsecond per row, a page for the rows that it returns, and a search releases it after every block, so that
// none of them blocks the others for long. A panic while it is held ends the
// program.
type Index struct {
	mu statelock.RWMutex

	hosts   []*host // rows refer to hosts by their index here; entries are never removed
	byAgent map[gozzard.AgentID]uint32
	byAddr  map[gozzard.HostAddr]uint32
	known   int
	online  int

	rows        slab[row]
	count       int
	lastSeq     uint64
	all         order
	spaces      slab[space]
	spaceIDs    map[string]uint32
	names       interner
	versions    interner
	messages    interner
	labels      labelSets
	histories   slab[history]
	plans       slab[plan]
	conditions  [gozzard.ConditionUnregistered + 1]int
	spaceCounts map[spaceCount]int
	dropped     uint64
	leftOut     func(agent gozzard.AgentID, tooMany, badKeys int) // nil: none
	changes     changes
	feed        feed
}

// host is a Host with the data of the index.
type host struct {
	Host
	place    uint32
	known    bool // PutHost was called; otherwise only rows were reported
	reported bool
	gone     bool     // Forget was called since: late reports are not used
	current  bool     // it has reported in its present session
	swept    bool     // it has sent a complete report in its present session
	changed  bool     // recorded in changes
	fed      bool     // recorded in feed
	version  uint32   // counts changes of what rights and viewers see of the host itself
	rows     []uint32 // in key order
	full     fullReport
	clock    clock
}

// space is one namespace with its rows in the order of their arrival.
type space struct {
	name string
	order
}

// New returns an empty index.
func New() *Index {
	x := &Index{
		byAgent:     make(map[gozzard.AgentID]uint32),
		byAddr:      make(map[gozzard.HostAddr]uint32),
		spaceIDs:    make(map[string]uint32),
		spaceCounts: make(map[spaceCount]int),
		names:       newInterner(),
		versions:    newInterner(),
		messages:    newInterner(),
		labels:      newLabelSets(),
	}
	x.histories.alloc() // 0
	x.plans.alloc()     // 0
	return x
}

// PutHost inserts or replaces a host. The host that was put last at an address owns the address. A new session discards
// the parts of an unfinished full report.
func (x *Index) PutHost(h Host) {
	h.Info.Addrs = slices.Clone(h.Info.Addrs)
	h.Info.Degraded = slices.Clone(h.Info.Degraded)

	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.hostFor(h.Info.Agent)

	x.own(e, h.Info.Addrs)
	if !e.known || h.Info.CPUs != e.Info.CPUs || !slices.Equal(h.Info.Addrs, e.Info.Addrs) {
		defer x.feedHost(e)
	}

	// Store the host.
	if h.Session != e.Session {
		e.full.forget()
		e.clock = clock{}
		x.recount(e, func() { e.current, e.swept = false, false })
	}
	if !e.known {
		e.known, e.gone = true, false
		x.known++
		x.noteHost(e.place)
	}

	x.setOnline(e, h.Online)
	e.Host = h
}

// Forget removes a host, its addresses and all of its rows. Reports that are still on their way are not used until
// PutHost adds the host again.
func (x *Index) Forget(agent gozzard.AgentID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.hostFor(agent)
	x.noteHost(e.place)
	for _, id := range e.rows {
		x.erase(id)
	}
	e.rows = nil // before anything counts them again
	x.own(e, nil)
	x.setOnline(e, false)
	if e.known {
		x.known--
	}
	e.Host = Host{Info: gozzard.HostInfo{Agent: agent}}
	e.known, e.reported, e.gone = false, false, true
	e.current, e.swept = false, false
	e.full.forget()
	x.feedHost(e)
}

// SetAddrs replaces the addresses of a host. It ignores an unknown host.
func (x *Index) SetAddrs(agent gozzard.AgentID, addrs []gozzard.HostAddr) {
	addrs = slices.Clone(addrs)

	x.mu.Lock()
	defer x.mu.Unlock()
	if e := x.knownHost(agent); e != nil {
		x.own(e, addrs)
		e.Info.Addrs = addrs
		x.noteHost(e.place)
		x.feedHost(e)
	}
}

// own makes a host the owner of its new addresses and of no others. mu is held.
func (x *Index) own(e *host, addrs []gozzard.HostAddr) {
	for _, a := range e.Info.Addrs {
		if x.owns(e, a) && !slices.Contains(addrs, a) {
			delete(x.byAddr, a)
			x.noteAddr(a)
		}
	}

	for _, a := range addrs {
		if !x.owns(e, a) {
			x.byAddr[a] = e.place
			x.noteAddr(a)
		}
	}
}

// SetOnline sets whether a host is connected and when it was last seen. It ignores an unknown host.
func (x *Index) SetOnline(agent gozzard.AgentID, online bool, seen time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e := x.knownHost(agent); e != nil {
		x.setOnline(e, online)
		e.LastSeen = seen
	}
}

// Touch sets when a host was last seen. It ignores an unknown host.
func (x *Index) Touch(agent gozzard.AgentID, seen time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e := x.knownHost(agent); e != nil {
		e.LastSeen = seen
	}
}

// Host returns a host by its agent.
func (x *Index) Host(agent gozzard.AgentID) (Host, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if e := x.knownHost(agent); e != nil {
		return e.Host, true
	}
	return Host{}, false
}

// HostByAddr returns the host that owns an address.
func (x *Index) HostByAddr(a gozzard.HostAddr) (Host, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if i, ok := x.byAddr[a]; ok {
		return x.hosts[i].Host, true
	}
	return Host{}, false
}

// Hosts lists the known hosts that the rights allow to see, sorted by cloud and address, then by agent.
func (x *Index) Hosts(rights *gozzard.Rights) []Host {
	list := x.visibleHosts(rights)
	slices.SortFunc(list, func(a, b Host) int {
		aa, ba := firstAddr(a.Info.Addrs), firstAddr(b.Info.Addrs)
		return cmp.Or(cmp.Compare(aa.Cloud, ba.Cloud), aa.IP.Compare(ba.IP), cmp.Compare(a.Info.Agent, b.Info.Agent))
	})
	return list
}

// visibleHosts lists the known hosts that the rights show, in no order.
func (x *Index) visibleHosts(rights *gozzard.Rights) []Host {
	all := rights.SeesAll()
	x.mu.RLock()
	defer x.mu.RUnlock()
	list := make([]Host, 0, x.known)
	for _, e := range x.hosts {
		if e.known && (all || rights.SeesHost(e.Info.Ref())) {
			list = append(list, e.Host)
		}
	}
	return list
}

// HostCounts returns how many hosts are known and how many of them are online.
func (x *Index) HostCounts() (known, online int) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.known, x.online
}

// Unwritable counts the online hosts whose agent reported that it cannot write its state folder.
func (x *Index) Unwritable() (n int) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, h := range x.hosts {
		if h.Online && slices.ContainsFunc(h.Info.Degraded, isUnwritable) {
			n++
		}
	}
	return n
}

func isUnwritable(text string) bool { return strings.HasPrefix(text, gozzard.StateUnwritable) }

// hostFor returns the entry of an agent and adds one that is not yet known if there is none.
func (x *Index) hostFor(agent gozzard.AgentID) *host {
	if i, ok := x.byAgent[agent]; ok {
		return x.hosts[i]
	}
	e := &host{place: uint32(len(x.hosts))}
	e.Info.Agent = agent
	x.hosts = append(x.hosts, e)
	x.byAgent[agent] = e.place
	return e
}

// knownHost returns a host that PutHost has added, nil if there is none.
func (x *Index) knownHost(agent gozzard.AgentID) *host {
	if i, ok := x.byAgent[agent]; ok && x.hosts[i].known {
		return x.hosts[i]
	}
	return nil
}

func (x *Index) owns(e *host, a gozzard.HostAddr) bool {
	owner, ok := x.byAddr[a]
	return ok && owner == e.place
}

func (x *Index) setOnline(e *host, online bool) {
	if e.Online == online {
		return
	}
	x.recount(e, func() { e.Online = online })
	x.feedHost(e)
	if online {
		x.online++
	} else {
		x.online--
	}
}

func firstAddr(addrs []gozzard.HostAddr) gozzard.HostAddr {
	if len(addrs) == 0 {
		return gozzard.HostAddr{}
	}
	return addrs[0]
}
