package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/server"
	"github.com/gozzard/gozzard/internal/signing"
)

// newAuditVerifyCommand is `gozzard audit verify`.
func newAuditVerifyCommand(env *cliEnv, flags *auditFlags) *cobra.Command {
	var v auditVerification
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Verify the hash chain of the audit",
		Long: `Check the chain from the first row to the newest. The exit code is 1 when it is broken, and the
message names the row.

The last line of the output has the number and the hash of the newest row. Store it elsewhere. Given
with --expect later, it proves that no earlier row was changed, even if the whole chain was written
again.

The server does the same by itself: every hour (--audit-checkpoint) it signs its newest row and
writes it to audit.checkpoints in its data folder and to its log. With --data these checkpoints are
checked too. --checkpoints reads them from any file, such as a collected log; they are checked with
the keys of --data or --key.`,
		Example: `  gozzard audit verify
  gozzard audit verify --data /var/lib/gozzard
  gozzard audit verify --expect 4711:6f0c…
  gozzard audit verify --checkpoints collected.log --key gzk1.1.kYx…`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			want, err := v.expected(flags)
			if err != nil {
				return err
			}
			return env.verifyAudit(cmd.Context(), flags, want)
		},
	}

	cmd.Flags().StringVar(&v.expect, "expect", "", "`ROW:HASH` from the output of an earlier verify")
	cmd.Flags().StringSliceVar(&v.files, "checkpoints", nil, "`FILE` that contains checkpoint lines; may be repeated")
	cmd.Flags().StringSliceVar(&v.keys, "key", nil,
		"`KEY` that signs checkpoints, as \"gozzard key list -o json\" shows it; may be repeated")
	return cmd
}

// auditVerification is what the caller knows about the audit from elsewhere.
type auditVerification struct {
	expect string   // ROW:HASH of an earlier verification
	files  []string // with checkpoints
	keys   []string // that sign checkpoints
}

// expected returns the rows that the audit must have, with their hashes.
func (v *auditVerification) expected(flags *auditFlags) (map[int64]gozzard.AuditHash, error) {
	head, err := parseAuditHead(v.expect)
	if err != nil {
		return nil, usage("--expect: %w", err)
	}

	noted, err := v.checkpointHeads(flags)
	if err != nil {
		return nil, err
	}
	if head.Seq > 0 {
		noted = append(noted, head)
	}

	want := make(map[int64]gozzard.AuditHash, len(noted))
	for _, h := range noted {
		if hash, ok := want[h.Seq]; ok && hash != h.Hash {
			return nil, failed(fmt.Errorf(
				"audit row %d has two different hashes in the checkpoints: the audit was replaced", h.Seq))
		}
		want[h.Seq] = h.Hash
	}

	return want, nil
}

// checkpointHeads returns the rows that the checkpoints name.
func (v *auditVerification) checkpointHeads(flags *auditFlags) ([]gozzard.AuditHead, error) {
	files := v.files
	if flags.data != "" {
		own, err := server.CheckpointFiles(flags.data)
		if err != nil {
			return nil, failed(err)
		}
		files = append(own, files...)
	}

	if len(files) == 0 {
		return nil, nil
	}

	keys, err := v.checkpointKeys(flags)
	if err != nil {
		return nil, err
	}

	heads, err := server.ReadCheckpoints(keys, files...)
	return heads, failed(err)
}

// checkpointKeys returns the keys that may sign checkpoints.
func (v *auditVerification) checkpointKeys(flags *auditFlags) (keys []signing.Key, err error) {
	for _, text := range v.keys {
		k, err := signing.ParseKey(text)
		if err != nil {
			return nil, usage("--key: %w", err)
		}
		keys = append(keys, k)
	}

	if flags.data != "" && len(keys) == 0 {
		made, err := signing.Keys(flags.data)
		if err != nil {
			return nil, failed(err)
		}
		for _, m := range made {
			keys = append(keys, m.Key)
		}
	}

	if len(keys) == 0 {
		return nil, usage("--checkpoints: give the key that signed them with --key")
	}

	return keys, nil
}

// parseAuditHead reads ROW:HASH. "" is the zero head.
func parseAuditHead(s string) (head gozzard.AuditHead, err error) {
	if s == "" {
		return head, nil
	}
	row, hash, _ := strings.Cut(s, ":")
	if head.Seq, err = strconv.ParseInt(row, 10, 64); err != nil || head.Seq <= 0 {
		return head, fmt.Errorf("%q is not of the form ROW:HASH", s)
	}
	return head, head.Hash.UnmarshalText([]byte(hash))
}

// verifyAudit checks the chain of all rows, and that the rows in want have their hashes.
func (env *cliEnv) verifyAudit(ctx context.Context, flags *auditFlags, want map[int64]gozzard.AuditHash) error {
	// Follow the chain from row to row.
	var check gozzard.AuditCheck
	noted := len(want)
	head, err := env.eachAudit(ctx, flags, func(r *client.AuditRow) error {
		l, err := r.Link()
		if err != nil {
			return failed(err)
		}
		if err := check.Follow(&l); err != nil {
			return failed(err)
		}
		if hash, ok := want[l.Seq]; ok && l.Hash != hash {
			return failed(fmt.Errorf(
				"audit row %d does not have the expected hash: this row or an earlier one was changed", l.Seq))
		}
		delete(want, l.Seq)
		return nil
	})
	if err != nil {
		return withExitCode(err)
	}

	// Reject a chain that ends too early.
	for row := range want {
		return failed(fmt.Errorf("audit row %d is expected but missing", row))
	}
	if err := check.End(head); err != nil {
		return failed(err)
	}

	// Print the newest row for a later --expect.
	text := env.text("%d rows, the chain is intact\n", check.Rows)
	if noted > 0 {
		text += env.text("%d of them match their checkpoints\n", noted)
	}

	return env.say("%snewest: %d:%s\n", text, check.Head.Seq, check.Head.Hash)
}
