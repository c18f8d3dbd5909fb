package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/internal/agentd"
	"github.com/gozzard/gozzard/internal/selfupdate"
)

// updateCommand is what `gozzard agent update` was given.
type updateCommand struct {
	agentd.InstallOptions
	wait time.Duration
}

// newUpdateCommand is `gozzard agent update`.
func newUpdateCommand() *cobra.Command {
	var u updateCommand
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
			if u.From == "" {
				return failed(u.status(cmd.OutOrStdout()))
			}
			return failed(u.install(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr()))
		},
	}

	f := cmd.Flags()
	f.StringVar(&u.Data, "data", "./agent", "folder of the agent's state")
	f.StringVar(&u.From, "from", "", "`FOLDER` of the release")
	f.StringVar(&u.Policy.File, "policy", "", "policy of this host (default policy.yaml in the state folder)")
	f.BoolVar(&u.Again, "again", false, "try a version again that was rolled back here")
	f.DurationVar(&u.wait, "wait", 5*time.Minute, "how long to wait until the server has welcomed the new program")
	return cmd
}

// status prints what the host remembers of updates.
func (u *updateCommand) status(out io.Writer) error {
	s, err := selfupdate.ReadState(u.Data)
	if err != nil {
		return err
	}

	key := "updates are allowed by the release key of this host"

	if _, err := u.Policy.ReleaseKey(u.Data); err != nil {
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

// install puts a release in place and waits for the end of its trial.
func (u *updateCommand) install(ctx context.Context, out, errs io.Writer) error {
	u.Log = slog.New(slog.NewTextHandler(errs, &slog.HandlerOptions{Level: slog.LevelWarn}))
	in, err := agentd.Install(ctx, u.InstallOptions)
	if err != nil {
		return err
	}

	if !in.Running {
		return written(fmt.Fprintf(out,
			"release %s is in place as %s; no agent runs from there, the next start begins its trial\n", in.Version,
			in.Program))
	}

	return u.await(ctx, in, out)
}

// await waits until the trial is over.
func (u *updateCommand) await(ctx context.Context, in agentd.Installed, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, u.wait)
	defer cancel()

	for {
		s, err := selfupdate.ReadState(u.Data)
		if err != nil {
			return err
		}
		for _, f := range s.Refused {
			if s.Trial == nil && f.Version == in.Version {
				return fmt.Errorf("release %s was rolled back to %s: %s", in.Version, in.Previous, printable(f.Reason))
			}
		}
		if s.Trial == nil {
			_, err := fmt.Fprintf(out, "release %s runs, it was welcomed by the server; before it %s\n", in.Version,
				in.Previous)
			return err
		}
		select {
		case <-ctx.Done():
			return errors.New("release " + in.Version + " is still on trial; gozzard agent update tells how it ends")
		case <-time.After(100 * time.Millisecond):
		}
	}
}
