package server

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
	"github.com/gozzard/gozzard/internal/audit"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/journal"
	"github.com/gozzard/gozzard/internal/lease"
	"github.com/gozzard/gozzard/internal/signing"
)

const (
	checkpointsFile  = "audit.checkpoints"
	checkpointsBytes = 16 << 20 // years of them
)

// checkpoints signs the newest row of the audit from time to time. The signatures go to a file in the data folder and
// to the log: an attacker with access to the record cannot change a log that was collected elsewhere.
type checkpoints struct {
	audit  control.AuditStore
	signer *signing.Signer
	every  time.Duration
	ring   *journal.Ring
	log    *slog.Logger
	last   gozzard.AuditHead
}

// Run signs until ctx ends, also at the beginning and at the end.
func (c *checkpoints) Run(ctx context.Context) error {
	tick := time.NewTicker(c.every)
	defer tick.Stop()
	for {
		c.sign(context.WithoutCancel(ctx))
		select {
		case <-ctx.Done():
			c.sign(context.WithoutCancel(ctx))
			return nil
		case <-tick.C:
		}
	}
}

func (c *checkpoints) sign(ctx context.Context) {
	if lease.Check(ctx) != nil { // another server signs now
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	head, err := c.audit.AuditHead(ctx)
	if err == nil && (head == c.last || head.Seq == 0) {
		return
	}
	var point signing.Checkpoint
	if err == nil {
		point, err = c.signer.Checkpoint(head)
	}
	if err == nil {
		c.log.Info("audit checkpoint", "row", head.Seq, "checkpoint", point.String())
		err = c.ring.Append([]byte(point.String()))
	}

	if err != nil {
		c.log.Error("cannot write a checkpoint of the audit", "err", err)
		return
	}

	c.last = head
}

// openAudit opens what the server adds to the audit: rows about refusals, and the file of checkpoints.
func (s *Server) openAudit(context.Context) error {
	s.refusals = audit.New(audit.Options{Store: s.store, Log: s.options.Log})
	if s.options.Checkpoint <= 0 {
		return nil
	}
	ring, err := journal.OpenRing(filepath.Join(s.options.Data, checkpointsFile), checkpointsBytes)
	if err != nil {
		return err
	}
	s.onClose("cannot close the checkpoints of the audit", ring.Close)
	s.checkpoints = &checkpoints{audit: s.store, signer: s.signer, every: s.options.Checkpoint, ring: ring,
		log: s.options.Log}
	return nil
}

// ReadCheckpoints finds the checkpoints in files of any kind of lines, such as logs, and checks their signatures.
func ReadCheckpoints(keys []signing.Key, files ...string) (heads []gozzard.AuditHead, err error) {
	for _, name := range files {
		found, err := readCheckpointFile(keys, name)
		if err != nil {
			return nil, err
		}
		heads = append(heads, found...)
	}
	return heads, nil
}

func readCheckpointFile(keys []signing.Key, name string) (heads []gozzard.AuditHead, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()

	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	between := func(r rune) bool { return strings.ContainsRune(" \t\r\"',;=", r) }
	for lines.Scan() {
		for _, word := range strings.FieldsFunc(lines.Text(), between) {
			if !strings.HasPrefix(word, "gzc1.") {
				continue
			}
			c, err := signing.ParseCheckpoint(word)
			if err == nil {
				err = c.Verify(keys)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			heads = append(heads, c.Head)
		}
	}

	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	return heads, nil
}

// CheckpointFiles are the files of checkpoints in a data folder.
func CheckpointFiles(data string) (files []string, err error) {
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
