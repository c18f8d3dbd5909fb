package upgrade

import (
	"context"
	"time"

	"github.com/gozzard/gozzard"
)

// Release is a published release as it is stored.
type Release struct {
	Version   string
	Manifest  []byte
	Signature []byte
	Published time.Time
	By        string
}

// AuditEntry is one row of the audit: what a caller did. An entry with an empty What is not written.
type AuditEntry struct {
	At      time.Time
	Caller  gozzard.Caller
	What    string // such as release:publish:1.2.3
	Targets int
}

// Store stores releases and upgrades. A change is durable when its call returns. The audit row is written in the same
// transaction.
type Store interface {
	// AddRelease stores a release. If there is one with that version, it does nothing for the same manifest and returns
	// ErrConflict for another one.
	AddRelease(ctx context.Context, r Release, act AuditEntry) error

	// RemoveRelease removes a release; ErrNotFound if there is none, ErrConflict if an open upgrade uses it.
	RemoveRelease(ctx context.Context, version string, act AuditEntry) error

	// Releases lists all releases, newest first.
	Releases(ctx context.Context) ([]Release, error)

	// AddUpgrade stores an upgrade with its hosts and sets its id; ErrConflict if another one is open.
	AddUpgrade(ctx context.Context, r *Upgrade, act AuditEntry) error

	// SaveUpgrade stores state, reason, approval and time of an upgrade, and the given hosts of it. It returns
	// ErrConflict and changes nothing if the stored upgrade is final.
	SaveUpgrade(ctx context.Context, r *Upgrade, hosts []Host, act AuditEntry) error

	// Upgrades lists the newest upgrades, newest first, with their hosts in the order of their stages.
	Upgrades(ctx context.Context, limit int) ([]Upgrade, error)
}
