package upgrade

import (
	"context"
	"time"

	"github.com/gozzard/gozzard"
)

// Release is one that was published.
type Release struct {
	Version   string
	Manifest  []byte
	Signature []byte
	Published time.Time
	By        string
}

// Act is who does something, for the audit; without a word it has no row.
type Act struct {
	At      time.Time
	Caller  gozzard.Caller
	What    string // such as release:publish:1.2.3
	Targets int
}

// Store is the record of releases and rolls. A call that returns is durable; its audit row is in the same transaction.
type Store interface {
	// AddRelease records a release. One with that version and the same manifest is left as it is; ErrConflict when the manifest is another.
	AddRelease(ctx context.Context, r Release, act Act) error
	// RemoveRelease forgets one; ErrNotFound when there is none, ErrConflict when an open roll has it.
	RemoveRelease(ctx context.Context, version string, act Act) error
	// Releases lists all, newest first.
	Releases(ctx context.Context) ([]Release, error)

	// AddRoll records a roll with its hosts and draws its number; ErrConflict when another one is open.
	AddRoll(ctx context.Context, r *Roll, act Act) error
	// SaveRoll writes state, reason, approval and time of a roll, and these of its hosts. ErrConflict when the record has it as final already: nothing is changed.
	SaveRoll(ctx context.Context, r *Roll, hosts []Host, act Act) error
	// Rolls lists the newest, newest first, with their hosts in the order of their stages.
	Rolls(ctx context.Context, limit int) ([]Roll, error)
}
