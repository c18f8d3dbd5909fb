package record

import (
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/topology"
)

// BusinessHead is a business without its contents.
type BusinessHead struct {
	ID      int
	Name    string
	Version int64
	Source  string // where it comes from: SourceFile or SourceCMDB
	At      time.Time
	Left    []string // what of its source could not be taken over
}

// Where a business comes from.
const (
	SourceFile = "file" // a document that a caller applied
	SourceCMDB = "cmdb"
	// SourceRemoved is of a business that was removed. Its version stays recorded, so that other servers notice the
	// removal and a business that comes back continues from there.
	SourceRemoved = "removed"
)

// Business is a business as recorded.
type Business struct {
	BusinessHead
	Business topology.Business
	Numbers  []topology.Numbers
}

// Removed reports whether the business is not there any more.
func (h *BusinessHead) Removed() bool { return h.Source == SourceRemoved }

// ApplyRequest asks for a business to become what a document or CMDB says. With SourceRemoved it asks for its removal,
// and Business has its id only.
type ApplyRequest struct {
	Caller   gozzard.Caller
	Business *topology.Business // brought into the order of its ids
	Source   string
	// reject unless this version is recorded, so that what was planned is what is done; 0: none is; nil: any
	Base   *int64
	DryRun bool // only the plan
	Prune  bool // also remove supervised processes: they are unregistered and keep running
	// also when the business is recorded from another source, which would undo the change later
	TakeOver bool
	Hash     [32]byte
	Size     int // of the document in bytes
}

// ApplyAnswer says what was or would be done.
type ApplyAnswer struct {
	Plan    topology.Plan
	Version int64           // after it; of what is recorded for a dry run
	Applied bool            // false: a dry run, or nothing to do
	Hosted  int             // supervised instances that leave: the change is rejected without Prune
	Named   []gozzard.Fault // the first of those
	Pruned  gozzard.TaskID  // the operation that unregisters them; "" when there were none
	Left    []string        // what of its source could not be taken over

	Rejected string   // why a change would be rejected that is a dry run
	Warnings []string // what is accepted and will fail later
}

// TopologyItem is one instance as an item of an operation.
type TopologyItem struct {
	Row      *topology.Row
	Instance int               // place in Row.Instances
	Process  *topology.Process // as recorded now; nil if it is not in the business any more
	// attributes that the action needs and the process does not have, by their names in documents; when there are any,
	// Item must not be sent
	Missing []string
	// why a template in the definition cannot be rendered, if the action needs that; Item is rejected then
	Template string
	Item     gozzard.Item
}
