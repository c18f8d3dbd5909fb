package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/internal/host"
	"github.com/gozzard/gozzard/internal/policy"
	"github.com/gozzard/gozzard/internal/selfupdate"
)

// updateConfig is what `gozzard agent update` takes.
type updateConfig struct {
	Data  string
	From  string
	Again bool
	Wait  time.Duration
	policyConfig
}

// newUpdateCommand is `gozzard agent update`.
func newUpdateCommand() *cobra.Command {
	var cfg updateConfig
	cmd := &cobra.Command{
		Use:   "update",
		Short: "Update this host's agent from a folder, or tell how updates stand",
		Long: `Update the agent of this host to the release in a folder, as "make release" leaves it, without a server. What a server may order ("gozzard release roll")
goes the same way and is checked by the same rules, all before anything is replaced:

  - the manifest (release.json) is signed by the key in release.pub of the state folder, or in the file that release_key of the policy names; a host without
    that key is not updated. Only root, or the agent's account, may be able to write it; no server can.
  - it has not expired, has a program for this platform, and that program has the size and the SHA-256 of the manifest and says its version.
  - the version is newer than the one that runs and than every one that ran here, unless the policy says allow_downgrade: true.

Then the new program takes the agent's process over; no process that it keeps notices. The one before is kept as NAME.previous. If the server does not welcome
the new program in time (agent --update-trial, 60s), or it ends before that, the one before is put back by itself, and the version is not tried again unless
--again says so.

Without --from it tells what is on trial and what was rolled back.`,
		Example: `  gozzard agent update --data /var/lib/gozzard-agent --from dist
  gozzard agent update --data /var/lib/gozzard-agent`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cfg.From == "" {
				return failed(cfg.tell(cmd.OutOrStdout()))
			}
			return failed(cfg.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr()))
		},
	}

	f := cmd.Flags()
	f.StringVar(&cfg.Data, "data", "./agent", "folder of the agent's state")
	f.StringVar(&cfg.From, "from", "", "`FOLDER` of the release")
	f.StringVar(&cfg.File, "policy", "", "policy of this host (default policy.yaml in the state folder)")
	f.BoolVar(&cfg.Again, "again", false, "try a version again that was rolled back here")
	f.DurationVar(&cfg.Wait, "wait", 5*time.Minute, "how long to wait until the server has welcomed the new program")
	return cmd
}

// tell prints what the host remembers of updates.
func (c *updateConfig) tell(out io.Writer) error {
	s, err := selfupdate.ReadState(c.Data)
	if err != nil {
		return err
	}

	key := "updates are allowed by the release key of this host"

	if _, err := c.releaseKey(c.Data); err != nil {
		key = err.Error()
	}

	lines := key + "\n"

	if s.Highest != "" {
		lines += "newest version that ran here: " + s.Highest + "\n"
	}
	if s.Trial != nil {
		lines += fmt.Sprintf("on trial: %s, before it %s\n", s.Trial.Version, s.Trial.From)
	}

	for _, f := range s.Refused {
		lines += fmt.Sprintf("rolled back at %s: %s, because %s\n", f.At.Format(time.RFC3339), f.Version,
			printable(f.Reason))
	}

	_, err = io.WriteString(out, lines)
	return err
}

// run puts a release in place, has the agent take it over, and waits for what comes of it.
func (c *updateConfig) run(ctx context.Context, out, errs io.Writer) (err error) {
	if c.Data, err = filepath.Abs(c.Data); err != nil {
		return fmt.Errorf("cannot find the state folder: %w", err)
	}

	own, err := host.OwnStanding()
	if err != nil {
		return err
	}
	if err := policy.TrustState(own.Mode).Check(c.Data); err != nil {
		return fmt.Errorf("cannot use the state folder: %w", err)
	}
	if _, err := os.Stat(c.Data); err != nil {
		return fmt.Errorf("cannot find the state folder: %w", err)
	}

	s, err := selfupdate.ReadState(c.Data)
	if err != nil {
		return err
	}

	program := s.Program
	if program == "" { // no agent has run from this folder yet
		if program, err = os.Executable(); err != nil {
			return fmt.Errorf("cannot find this program's file: %w", err)
		}
	}

	if err := policy.TrustBounds(own.Mode).Check(program); err != nil {
		return fmt.Errorf("cannot trust the agent's program: %w", err)
	}

	running, err := selfupdate.SaysVersion(ctx, program)
	if err != nil {
		return fmt.Errorf("cannot ask %s for its version: %w", program, err)
	}

	agent := agentProcess(s.PID, program, c.Data)
	log := slog.New(slog.NewTextHandler(errs, &slog.HandlerOptions{Level: slog.LevelWarn}))
	placed, err := c.updater(c.Data, program, running, 0, nil, log).Install(ctx, selfupdate.Folder(c.From),
		selfupdate.Request{Again: c.Again})
	if err != nil {
		return err
	}

	if agent == nil {
		_, err := fmt.Fprintf(out,
			"release %s is in place as %s; no agent runs from there, the next start begins its trial\n", placed,
			program)
		return err
	}

	if err := takeOver(agent); err != nil {
		return fmt.Errorf("release %s is in place, but the agent could not be told (send it SIGUSR2): %w", placed, err)
	}

	return c.await(ctx, placed, running, out)
}

// await looks until the trial is over.
func (c *updateConfig) await(ctx context.Context, placed, running string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, c.Wait)
	defer cancel()

	for {
		s, err := selfupdate.ReadState(c.Data)
		if err != nil {
			return err
		}
		for _, f := range s.Refused {
			if s.Trial == nil && f.Version == placed {
				return fmt.Errorf("release %s was rolled back to %s: %s", placed, running, printable(f.Reason))
			}
		}
		if s.Trial == nil {
			_, err := fmt.Fprintf(out, "release %s runs, it was welcomed by the server; before it %s\n", placed,
				running)
			return err
		}
		select {
		case <-ctx.Done():
			return errors.New("release " + placed + " is still on trial; gozzard agent update tells how it ends")
		case <-time.After(100 * time.Millisecond):
		}
	}
}
