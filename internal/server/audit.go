package server

import (
	"context"
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

// OpenAudit opens the audit in a data folder for reading.
func OpenAudit(ctx context.Context, data string) (Audit, error) {
	if err := backup.CheckHere(data); err != nil {
		return nil, err
	}
	return sqlstore.OpenAuditFile(ctx, filepath.Join(data, backup.RecordFile))
}
