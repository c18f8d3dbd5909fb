package main

import (
	"context"

	"github.com/gozzard/gozzard/internal/backup"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// backupDatabase is the record as backups see it.
type backupDatabase struct{ sqlstore.Files }

// Survey implements backup.Database.
func (backupDatabase) Survey(ctx context.Context, path string) (backup.Survey, error) {
	v, err := sqlstore.Look(ctx, path)
	return backup.Survey{
		Hosts: v.Hosts, Members: total(v.Members), Processes: v.Processes, Businesses: v.Businesses,
		Tasks: v.Tasks, Open: v.Open, Apps: v.Apps, Users: v.Users, AuditRows: v.AuditRows, Audit: v.Audit,
	}, err
}
