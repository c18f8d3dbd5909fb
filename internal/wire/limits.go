package wire

import (
	"errors"
	"fmt"

	"github.com/gozzard/gozzard"
)

// The bounds of a message, enforced when it is read. Lists are bounded by what a message of the fabric's largest
// size can sensibly hold, so that a few bytes on the wire cannot become many in memory.
const (
	MaxString   = 64 << 10
	MaxLabels   = 64
	MaxOps      = 16 << 10
	MaxStatuses = 16 << 10
	MaxReports  = 64 << 10 // results, and open operations of a hello
	MaxIDs      = 64 << 10 // cancelled, and acknowledged
	MaxKeys     = 64 << 10 // removed processes
	MaxGroups   = 4 << 10
	MaxEvents   = 4 << 10
	MaxLogBytes = 512 << 10
	MaxAddrs    = 256
	MaxDegraded = 64
)

// ErrNewer is matched (errors.Is) by the error for a message of a newer protocol than this build knows.
var ErrNewer = errors.New("message of a newer protocol")

// NewerError says which protocol version was met.
type NewerError struct{ Version uint32 }

func (e *NewerError) Error() string {
	return fmt.Sprintf("message of protocol version %d, this build knows up to %d", e.Version, gozzard.ProtocolVersion)
}

// Is makes errors.Is(err, ErrNewer) true.
func (e *NewerError) Is(target error) bool { return target == ErrNewer }
