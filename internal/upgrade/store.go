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

// AuditEntry is who does something, for the audit; without a word it has no row.
type AuditEntry struct {
	At      time.Time
	Caller  gozzard.Caller
	What    string // such as release:publish:1.2.3
	Targets int
}

// Store is the record of releases and rolls. A call that returns is durable; its audit row is in the same transaction.
type Store interface {
	// AddRelease records a release. One with that version and the same manifest is left as it is; ErrConflict when
	// the manifest is another.
	AddRelease(ctx context.Context, r Release, act AuditEntry) error
	// RemoveRelease forgets one; ErrNotFound when there is none, ErrConflict when an open roll has it.
	RemoveRelease(ctx context.Context, version string, act AuditEntry) error
	// Releases lists all, newest first.
	Releases(ctx context.Context) ([]Release, error)

	// AddUpgrade records a roll with its hosts and draws its number; ErrConflict when another one is open.
	AddUpgrade(ctx context.Context, r *Upgrade, act AuditEntry) error
	// SaveUpgrade writes state, reason, approval and time of a roll, and these of its hosts. ErrConflict when the
	// record has it as final already: nothing is changed.
	SaveUpgrade(ctx context.Context, r *Upgrade, hosts []Host, act AuditEntry) error
	// Upgrades lists the newest, newest first, with their hosts in the order of their stages.
	Upgrades(ctx context.Context, limit int) ([]Upgrade, error)
}
