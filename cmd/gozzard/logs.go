package main

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// followPause is the time between two requests for a log that has nothing new.
const followPause = time.Second

// logOptions are the flags of `gozzard logs`.
type logOptions struct {
	oneProcess
	lines  int
	follow bool
}

// newLogsCommand is `gozzard logs`.
func newLogsCommand(env *cliEnv) *cobra.Command {
	var o logOptions
	cmd := &cobra.Command{
		Use:   "logs NAME",
		Short: "Show the output of a process",
		Long: `Show the last lines that a process and its commands printed. The agent stores them on the host. One
host is asked: give --host if the process is on several. Log files that the process writes by itself
are not shown.`,
		Example: `  gozzard logs web --host 0:10.0.0.1
  gozzard logs web -n shop --host 10.0.0.1 --lines 500
  gozzard logs web -f`,
		Args:              oneName,
		ValidArgsFunction: env.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.logs(cmd.Context(), &o, args[0])
		},
	}

	f := cmd.Flags()
	o.oneProcess.register(f)
	f.IntVar(&o.lines, "lines", 100, "number of lines to show, the last ones")
	f.BoolVarP(&o.follow, "follow", "f", false, "continue with new output until Ctrl-C")
	return cmd
}

// logs prints the last lines of a process, and with --follow the ones that come.
func (env *cliEnv) logs(ctx context.Context, o *logOptions, name string) error {
	if o.lines < 1 || o.lines > 10_000 {
		return usage("--lines must be 1 to 10000")
	}

	return o.with(ctx, env, name, func(c *client.Client, key gozzard.Key, host string) error {
		chunk, err := c.Log(ctx, key, host, o.lines, -1)
		if err != nil {
			return err
		}
		if chunk.Text == "" {
			env.remark("%s printed nothing yet: its agent has stored no output of the process or its commands. Log files that the "+
				"process writes by itself are not shown", printable(key.String()))
		}
		if err := env.printLog(chunk.Text); err != nil || !o.follow {
			return err
		}
		return env.followLog(ctx, c, key, host, chunk.Next)
	})
}

// followLog prints new output until Ctrl-C. While the host or the server is away it waits.
func (env *cliEnv) followLog(ctx context.Context, c *client.Client, key gozzard.Key, host string, at int64) error {
	waiting := false // the caller knows it
	for {
		// Print what is new.
		chunk, err := c.Log(ctx, key, host, 0, at)
		switch {
		case ctx.Err() != nil:
			return nil
		case gozzard.KindOf(err) == gozzard.ErrUnavailable && err != nil:
			if !waiting {
				env.remark("gozzard: %s; waiting", printable(errorText(env.chinese, err)))
			}
			waiting = true
		case err != nil:
			return withExitCode(err)
		default:
			waiting = false
			if chunk.Offset > at && at > 0 {
				env.remark("gozzard: %d bytes are missing, because the agent removed them", chunk.Offset-at)
			}
			if err := env.printLog(chunk.Text); err != nil {
				return err
			}

			if more := chunk.Next > at && chunk.Text != ""; chunk.Next >= 0 {
				at = chunk.Next
				if more {
					continue
				}
			}
		}

		// Wait for more.
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followPause):
		}
	}
}

// printLog prints the output of a process. A terminal obeys control characters, and the process may print any: on a
// terminal they are removed.
func (env *cliEnv) printLog(text string) error {
	if env.screen {
		text = strings.Map(func(r rune) rune {
			if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
				return -1
			}
			return r
		}, text)
	}
	return checkWrite(fmt.Fprint(env.out, text))
}
