package server

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/backup"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// Audit is the audit in the data folder of a server, running or not.
type Audit interface {
	AuditHead(ctx context.Context) (gozzard.AuditHead, error)
	AuditAfter(ctx context.Context, seq int64, limit int) ([]gozzard.AuditLink, error)
	FindAudit(ctx context.Context, f gozzard.AuditFilter, limit int) ([]gozzard.AuditFound, int64, error)
	AuditRow(ctx context.Context, seq int64) (gozzard.AuditFound, error)
	AuditText(ctx context.Context, digest [32]byte) ([]byte, error)
	Close() error
}

// OpenAudit opens the audit of a data folder for reading. record is the address of the database that has it; "": the folder
// has it.
func OpenAudit(ctx context.Context, data, record string) (Audit, error) {
	if record != "" {
		return openAuditOf(ctx, data, record)
	}
	if err := backup.CheckHere(data); err != nil {
		return nil, fmt.Errorf("%w; to read the audit, use --record", err)
	}
	return sqlstore.OpenAuditFile(ctx, filepath.Join(data, backup.RecordFile))
}

// openAuditOf opens the audit in a database, which must belong to the data folder.
func openAuditOf(ctx context.Context, data, record string) (Audit, error) {
	place, err := backup.ReadPlace(data)
	if err != nil {
		return nil, err
	}
	a, err := sqlstore.ParsePostgres(record)
	if err != nil {
		return nil, fmt.Errorf("--record: %w", err)
	}
	f, err := sqlstore.OpenAuditPostgres(ctx, a.DSN)
	if err != nil {
		return nil, fmt.Errorf("the record in %s: %w", a.Name, err)
	}
	id, err := f.Installation(ctx)
	if err != nil || id != place.Installation {
		return nil, errors.Join(fmt.Errorf("the record in %s does not belong to the data folder %s", a.Name, data), err, f.Close())
	}
	return f, nil
}
