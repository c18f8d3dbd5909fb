package backup

import (
	"context"
	"time"

	"github.com/gozzard/gozzard"
)

// Database works on the files of the server's record. The paths are those of database files.
type Database interface {
	// Copy writes the record, as it is at one moment, into a new file. A server may be using the record.
	Copy(ctx context.Context, path, to string) error

	// Survey counts what is in a record. It changes nothing.
	Survey(ctx context.Context, path string) (Survey, error)

	// Verify checks that a record is not damaged and that the newest row of its audit is head. It changes nothing.
	Verify(ctx context.Context, path string, head gozzard.AuditHead) error

	// Update brings a record to the schema version of this program.
	Update(ctx context.Context, path string) error

	// MarkRestored prepares a record from a backup: its hosts wait until an admin confirms them, and no operation that
	// was in progress is sent again. The file is complete and closed when it returns.
	MarkRestored(ctx context.Context, path string, taken, now time.Time) error
}

// Survey is how much of everything is in a record.
type Survey struct {
	Hosts      int
	Members    int // enrolled hosts
	Processes  int
	Businesses int
	Tasks      int
	Open       int // attempts without a verdict
	Apps       int
	Users      int
	AuditRows  int
	Audit      gozzard.AuditHead // the newest row of the audit
}
