package backup

import (
	"context"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// Database works on the files of the server's record. The paths are those of database files.
type Database interface {
	// Copy writes the record, as it is at one moment, into a new file. A server may be using the record.
	Copy(ctx context.Context, from, to string) error
	// Look counts what is in a record. It changes nothing. A server may be using the record.
	Look(ctx context.Context, path string) (record.Survey, error)
	// Verify checks that a record is not damaged and that the newest row of its audit is the given one. It changes
	// nothing.
	Verify(ctx context.Context, path string, audit gozzard.AuditHead) error
	// Upgrade brings a record to the schema version of this program.
	Upgrade(ctx context.Context, path string) error
	// MarkRestored prepares a record from a backup: its hosts wait until an admin confirms them, and no operation that
	// was in progress is sent again. The file is complete and closed when it returns.
	MarkRestored(ctx context.Context, path string, taken, now time.Time) error
}
