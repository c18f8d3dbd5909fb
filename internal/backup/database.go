package backup

import (
	"context"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// Database is what a backup needs of the database that holds the record. Paths name its file.
type Database interface {
	// Copy writes a copy of a database as it is at one moment. A server may be using it.
	Copy(ctx context.Context, from, to string) error
	// Look counts what is in a database. A server may be using it.
	Look(ctx context.Context, path string) (record.Survey, error)
	// Verify checks that a database is sound and that its audit is unbroken up to a row.
	Verify(ctx context.Context, path string, audit gozzard.AuditHead) error
	// Upgrade brings a database to the format of this program.
	Upgrade(ctx context.Context, path string) error
	// MarkRestored records that a database came out of a backup: its hosts wait until an admin confirms them.
	MarkRestored(ctx context.Context, path string, taken, now time.Time) error
}
