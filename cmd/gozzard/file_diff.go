package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// maxCompared limits the number of line pairs that are compared: beyond it whole parts are shown as changed.
const maxCompared = 4 << 20

// newFileDiffCommand is `gozzard file diff`.
func newFileDiffCommand(env *cliEnv) *cobra.Command {
	var o fileReadOptions
	var from string
	cmd := &cobra.Command{
		Use:   "diff PATH --from FILE",
		Short: "Compare a file of a host with a local file",
		Long: `Compare a file of one host with a local file. Lines with - are on the host, lines with + in the local
file. The first line has the sha256 of the file on the host: give it to "gozzard file put --expect".

Exit code: 0 there is no difference, 1 there is one.`,
		Example: `  gozzard file diff /etc/shop/web.conf --from web.conf --account shop --host 10.0.0.1`,
		Args:    onePath, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(args[0]); err != nil {
				return err
			}
			return env.fileDiff(cmd.Context(), &o, from, cmd.InOrStdin())
		},
	}
	o.register(cmd)
	cmd.Flags().StringVar(&from, "from", "", "local `FILE` with the content; - is standard input (required)")
	return cmd
}

// fileDiff prints how a file of a host differs from a local one. Its error is the exit code.
func (env *cliEnv) fileDiff(ctx context.Context, o *fileReadOptions, from string, in io.Reader) error {
	local, err := readContent(from, in)
	if err != nil {
		return err
	}

	return env.withClient(func(c *client.Client) error {
		f, err := c.ReadFile(ctx, o.FileQuery)
		if err != nil {
			return err
		}
		content, err := f.Bytes()
		if err != nil {
			return err
		}
		if f.Exists && string(content) == string(local) {
			return env.say("no difference: sha256 %s\n", f.SHA256)
		}

		digest := f.SHA256
		if !f.Exists {
			digest = gozzard.FileAbsent
		}
		if err := env.say("sha256 on the host: %s\n", digest); err != nil {
			return err
		}
		if !utf8.Valid(content) || !utf8.Valid(local) {
			err = env.say("they differ, and one is no text: %d bytes on the host, %d bytes in the local file\n", len(content), len(local))
		} else {
			err = env.printLog(lineDiff(string(content), string(local)))
		}
		if err != nil {
			return err
		}
		return &exitError{exitFailed, nil}
	})
}

// lineDiff lists the lines that differ, with - and +.
func lineDiff(before, after string) string {
	a, b := strings.SplitAfter(before, "\n"), strings.SplitAfter(after, "\n")

	// Leave out what is equal at the beginning and at the end.
	first := 0
	for first < len(a) && first < len(b) && a[first] == b[first] {
		first++
	}
	last := 0
	for last < len(a)-first && last < len(b)-first && a[len(a)-1-last] == b[len(b)-1-last] {
		last++
	}
	a, b = a[first:len(a)-last], b[first:len(b)-last]

	var out strings.Builder
	fmt.Fprintf(&out, "@@ %d @@\n", first+1)
	put := func(mark, line string) {
		if line != "" {
			fmt.Fprintf(&out, "%s %s\n", mark, strings.TrimSuffix(line, "\n"))
		}
	}
	common := commonLines(a, b)
	for _, line := range common {
		for a[0] != line {
			put("-", a[0])
			a = a[1:]
		}
		for b[0] != line {
			put("+", b[0])
			b = b[1:]
		}
		put(" ", line)
		a, b = a[1:], b[1:]
	}
	for _, line := range a {
		put("-", line)
	}
	for _, line := range b {
		put("+", line)
	}
	return out.String()
}

// commonLines is the longest list of lines that both have in this order; none if that is too much work.
func commonLines(a, b []string) []string {
	if len(a)*len(b) > maxCompared {
		return nil
	}

	// length[i][j] is the length of the longest list of a[i:] and b[j:].
	length := make([][]int, len(a)+1)
	for i := range length {
		length[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				length[i][j] = length[i+1][j+1] + 1
			} else {
				length[i][j] = max(length[i+1][j], length[i][j+1])
			}
		}
	}

	var common []string
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			common = append(common, a[i])
			i, j = i+1, j+1
		case length[i+1][j] >= length[i][j+1]:
			i++
		default:
			j++
		}
	}
	return common
}
