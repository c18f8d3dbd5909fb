package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// maxExportLine is the longest line of an export.
const maxExportLine = 8 << 20

// newAuditVerifyExportCommand is `gozzard audit verify-export`.
func newAuditVerifyExportCommand(env *cliEnv) *cobra.Command {
	var expect string
	cmd := &cobra.Command{
		Use:   "verify-export FILE...",
		Short: "Find gaps, duplicates and changes in an exported audit",
		Long: `Check rows that were exported: by --audit-file of a server, by a receiver of syslog that stored its
messages as lines, or by "gozzard audit export". Give the files in the order of their rows, such as
audit.jsonl.2 audit.jsonl.1 audit.jsonl. "-" reads standard input.

Every row has the hash of the row before it, so a row that is missing, changed or in the wrong place
is found without the server. The exit code is 1 then. Rows that came twice are counted: an export
repeats rows after a restart or a failure.

The files may begin in the middle of the audit. That the newest rows are missing shows only a
comparison with the server: --expect with the last line of "gozzard audit verify".`,
		Example: `  gozzard audit verify-export /var/log/gozzard/audit.jsonl
  gozzard audit verify-export --expect 4711:6f0c… audit.jsonl.1 audit.jsonl`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			head, err := parseAuditHead(expect)
			if err != nil {
				return usage("--expect: %w", err)
			}
			var check client.ExportCheck
			for _, name := range args {
				if err := verifyExportFile(&check, name, cmd.InOrStdin()); err != nil {
					return failed(err)
				}
			}
			return env.reportExport(&check, head)
		},
	}
	cmd.Flags().StringVar(&expect, "expect", "", "`ROW:HASH` that the newest row must have")
	return cmd
}

func verifyExportFile(check *client.ExportCheck, name string, in io.Reader) (err error) {
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		in = f
	}

	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxExportLine)
	for lines.Scan() {
		check.Line(lines.Bytes())
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("cannot read %s: %w", name, err)
	}
	return nil
}

// reportExport prints the result of a check.
func (env *cliEnv) reportExport(c *client.ExportCheck, want gozzard.AuditHead) error {
	for _, p := range c.Problems {
		if err := checkWrite(fmt.Fprintln(env.out, printable(p))); err != nil {
			return err
		}
	}

	begins := "the first row of the audit"
	if !c.Start {
		begins = "the middle of the audit"
	}
	err := env.say("%d rows from %s, %d duplicates, %d gaps or changes\nnewest: %d:%s\n", c.Rows,
		begins, c.Duplicates, c.Broken, c.Head.Seq, c.Head.Hash)
	switch {
	case err != nil:
		return err
	case c.Broken > 0:
		return failed(fmt.Errorf("the export has %d gaps or changes", c.Broken))
	case c.Rows == 0:
		return failed(errors.New("the export has no row of the audit"))
	case want.Seq > 0 && want != c.Head:
		return failed(fmt.Errorf("the newest row of the export is %d:%s, expected is %d:%s: rows are missing at the end, or "+
			"there are newer ones", c.Head.Seq, c.Head.Hash, want.Seq, want.Hash))
	}
	return nil
}
