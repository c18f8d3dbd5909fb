package record

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
)

// Host is a host as recorded.
type Host struct {
	Info    gozzard.HostInfo
	Session uint64
	Journal gozzard.JournalPos
	// JournalSince is the first session in which the agent had this journal. The journal says nothing about
	// attempts of earlier sessions.
	JournalSince uint64
	// RestoredJournal is the JournalSince of the journal to which the server has sent this host's definitions, or which
	// needs none. If it differs from JournalSince, the host still needs them.
	RestoredJournal uint64
	// Kept is what a HELLO says and is not recorded: the agent has lost nothing, although its journal has another id.
	Kept     bool
	LastSeen time.Time
	Protocol uint32 // the highest version that the agent has used in a session

	// Base is what is added to the numbers of tasks to make the generations of this agent (gozzard.LiftBase).
	Base uint64
	// NewestGen is what the agent says in HELLO, and Lifted whether OpenSession changed Base because of it. The record
	// does not keep them.
	NewestGen uint64
	Lifted    bool
}

// Forgotten is what a server took away with a host that left the fleet.
type Forgotten struct {
	Processes  int // with their definitions
	Operations int // that waited for the host, or for its answer
}

// Process is a registered process as recorded: its definition and what is wanted of it.
type Process struct {
	ID           gozzard.ProcID
	Labels       map[string]string
	Spec         []byte // EncodeSpec
	Hosted       bool
	Wanted       gozzard.RunState
	RegisteredAt time.Time
	Attempt      int32 // of NewTask.Register: the index of the attempt that brings it. It is not read back
	// Task brought the definition, as it is read back. 0: it is not known, for example because an earlier version did not
	// record it, or because the definition is one that a host had before it rejected another.
	Task gozzard.TaskSeq
}

// Digest changes with the definition and its labels, so that a caller can say which definition it has read.
func (p *Process) Digest() string {
	h := sha256.New()
	_, _ = h.Write(p.Spec) // a hash never fails
	for _, name := range slices.Sorted(maps.Keys(p.Labels)) {
		fmt.Fprintf(h, "\n%q=%q", name, p.Labels[name])
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Definition is a registered process with the address of its host.
type Definition struct {
	Process
	Addr gozzard.HostAddr
	// Origin is the task that brought the definition. nil: it is not known any more. Without an app it is only when and by
	// which door: the caller may not see more.
	Origin *gozzard.Task
}

// GroupLimits is the resource pool of one process group on one host.
type GroupLimits struct {
	Agent      gozzard.AgentID
	Addr       gozzard.HostAddr
	Namespace  string
	Group      string
	CPULimit   float64
	MemLimit   float64
	CPUWeight  int
	MemWeight  int
	Labels     map[string]string
	SupplierID int
}

// StatusRow is the live picture of one process on one asked host.
type StatusRow struct {
	Target    gozzard.Target
	HostKnown bool
	ProcKnown bool
	Host      fleet.Host
	Row       fleet.Row
}

// Group is a resource pool: limits in percent of the whole machine, and weights that choose which process must go.
type Group struct {
	ID                   string
	CPULimit, MemLimit   float64
	CPUWeight, MemWeight int
}

// GroupRequest sets the pools of a namespace on hosts.
type GroupRequest struct {
	Caller      gozzard.Caller
	Namespace   string
	Labels      map[string]string
	Targets     []gozzard.Target
	Groups      []Group
	RequestHash [32]byte
}

// GroupAnswer is the outcome for one host.
type GroupAnswer struct {
	Target  gozzard.Target
	Outcome gozzard.Outcome
}
