package wire

// The limits of a message, which decoding enforces. The limits of lists are what a message of the largest size can
// sensibly hold, so that a small message cannot use much memory.
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
	MaxPoints   = 4 << 10 // of a history
	MaxVersions = 256     // former contents of a file
	MaxSteps    = 64      // of a script
	MaxAddrs    = 256
	MaxDegraded = 64
	MaxServers  = 256
)
