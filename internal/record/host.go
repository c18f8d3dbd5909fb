package record

import (
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
)

// Host is a host as recorded.
type Host struct {
	Info    gozzard.HostInfo
	Session uint64
	Journal gozzard.JournalPos
	// JournalSince is the first session in which the agent had this journal. Attempts of earlier sessions cannot be
	// judged by it.
	JournalSince uint64
	// RestoredJournal is the JournalSince for which the server's copy of its processes was laid down again, or need
	// not be. Another value means that the host has lost them and does not have them back yet.
	RestoredJournal uint64
	LastSeen        time.Time
	Protocol        uint32 // the highest version that the agent has spoken and was welcomed with
}

// Process is a registered process as recorded: the server's copy of definition and desired flags.
type Process struct {
	ID           gozzard.ProcID
	Labels       map[string]string
	Spec         []byte // EncodeSpec
	Hosted       bool
	Wanted       gozzard.RunState
	RegisteredAt time.Time
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

// Group is a resource pool: limits in percent of the whole machine and how its victim is chosen.
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
