package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/pflag"

	"github.com/gozzard/gozzard/internal/api"
	"github.com/gozzard/gozzard/internal/backup"
	"github.com/gozzard/gozzard/internal/enrol"
)

// backupConfig is how a server backs itself up.
type backupConfig struct {
	To         string
	Every      time.Duration
	Keep       int
	Recipients []string
}

func (c *backupConfig) register(f *pflag.FlagSet) {
	f.StringVar(&c.To, "backup-to", "", "make encrypted backups by itself, in this `FOLDER` (default: none are made)")
	f.DurationVar(&c.Every, "backup-every", 24*time.Hour, "how often, at least a minute apart")
	f.IntVar(&c.Keep, "backup-keep", 7, "how many of them stay")
	f.StringSliceVar(&c.Recipients, "backup-recipient", nil,
		"public `KEYS` (age1…) they are encrypted for; gozzard backup keygen makes one")
}

// open is nil when the server makes no backups.
func (c *backupConfig) open(cfg nodeConfig, m *api.Metrics) (*backup.Scheduler, error) {
	if c.To == "" {
		if len(c.Recipients) > 0 {
			return nil, errors.New("--backup-recipient is given and --backup-to is not: no backups would be made")
		}
		return nil, nil
	}

	if c.Every < time.Minute {
		return nil, usage("--backup-every %s: at least a minute", c.Every)
	}
	if c.Keep < 1 || c.Keep > 10_000 {
		return nil, usage("--backup-keep %d: use 1 to 10000", c.Keep)
	}
	if len(c.Recipients) == 0 {
		return nil, usage("--backup-to needs --backup-recipient: there is no backup that is not encrypted (gozzard backup keygen)")
	}

	to, err := backup.ParseRecipients(c.Recipients)
	if err != nil {
		return nil, usage("--backup-recipient: %w", err)
	}
	if at, err := backup.Newest(c.To); err == nil {
		m.LastBackup(at)
	}

	return backup.NewScheduler(backup.SchedulerOptions{
		Database: backupDatabase{}, Data: cfg.Data, Dir: c.To, Every: c.Every, Keep: c.Keep,
		Recipients: to, Program: version, Done: m.BackedUp, Log: cfg.Log,
	})
}

// openRestore looks whether the record came out of a backup.
func (n *node) openRestore(ctx context.Context) (*enrol.Restore, error) {
	r, err := enrol.OpenRestore(ctx, n.store, n.trust.desk)
	if err == nil && !r.From().IsZero() {
		n.cfg.Log.Warn("the record was restored from a backup: hosts are kept out until an admin confirms them (gozzard hosts confirm-restore)", "taken", r.From())
	}
	return r, err
}
