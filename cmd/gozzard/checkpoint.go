package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/journal"
	"github.com/gozzard/gozzard/internal/signing"
)

const (
	checkpointsFile  = "audit.checkpoints"
	checkpointsBytes = 16 << 20 // years of them
)

// checkpoints signs the newest row of the audit from time to time. They are kept in the data folder and said in the
// log: whatever collects the log keeps them where nobody who changes the record can reach them.
type checkpoints struct {
	audit  control.AuditStore
	signer *signing.Signer
	every  time.Duration
	ring   *journal.Ring
	log    *slog.Logger
	last   gozzard.AuditHead
}

// Run signs until ctx ends, at its beginning and end too.
func (c *checkpoints) Run(ctx context.Context) error {
	tick := time.NewTicker(c.every)
	defer tick.Stop()
	for {
		c.sign(context.WithoutCancel(ctx))
		select {
		case <-ctx.Done():
			c.sign(context.WithoutCancel(ctx))
			return c.ring.Close()
		case <-tick.C:
		}
	}
}

func (c *checkpoints) sign(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	head, err := c.audit.AuditHead(ctx)
	if err == nil && (head == c.last || head.Seq == 0) {
		return
	}
	if err == nil {
		point := c.signer.Checkpoint(head)
		c.log.Info("audit checkpoint", "row", head.Seq, "checkpoint", point.String())
		err = c.ring.Append([]byte(point.String()))
	}

	if err != nil {
		c.log.Error("cannot keep a checkpoint of the audit", "err", err)
		return
	}

	c.last = head
}

// newCheckpoints opens the file of a data folder; nil when every is 0.
func newCheckpoints(cfg *nodeConfig, audit control.AuditStore) (*checkpoints, error) {
	if cfg.Checkpoint <= 0 {
		return nil, nil
	}
	ring, err := journal.OpenRing(filepath.Join(cfg.Data, checkpointsFile), checkpointsBytes)
	if err != nil {
		return nil, err
	}
	return &checkpoints{audit: audit, signer: cfg.Signer, every: cfg.Checkpoint, ring: ring, log: cfg.Log}, nil
}

// readCheckpoints finds the checkpoints in files of any kind of lines, such as logs, and proves them.
func readCheckpoints(keys []signing.Key, files ...string) (heads []gozzard.AuditHead, err error) {
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			for _, word := range strings.FieldsFunc(lines.Text(),
				func(r rune) bool { return strings.ContainsRune(" \t\r\"',;=", r) }) {
				if !strings.HasPrefix(word, "gzc1.") {
					continue
				}
				c, err := signing.ParseCheckpoint(word)
				if err == nil {
					err = c.Verify(keys)
				}
				if err != nil {
					return nil, errors.Join(fmt.Errorf("%s: %w", name, err), f.Close())
				}
				heads = append(heads, c.Head)
			}
		}
		if err := errors.Join(lines.Err(), f.Close()); err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", name, err)
		}
	}
	return heads, nil
}

// ownCheckpoints names the files of a data folder.
func ownCheckpoints(data string) (files []string, err error) {
	for _, name := range []string{checkpointsFile + ".1", checkpointsFile} {
		name = filepath.Join(data, name)
		switch _, err := os.Lstat(name); {
		case err == nil:
			files = append(files, name)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return files, nil
}
