package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/internal/agentd"
	"github.com/gozzard/gozzard/internal/selfupdate"
)

// updateCommand are the settings of `gozzard agent update`.
type updateCommand struct {
	agentd.InstallOptions
	wait time.Duration
}

// newAgentUpdateCommand is `gozzard agent update`.
func newAgentUpdateCommand() *cobra.Command {
	var u updateCommand
	var data stateFolder
	cmd := &cobra.Command{
		Use:   "update",
		Short: "Update the agent of this host from a folder, or show the state of updates",
		Long: `Update the agent of this host to the release in a folder, without a server. The folder is the result
of "make release". An update that the server orders ("gozzard release roll") follows the same rules.
All checks come before anything is replaced:

  - The key in release.pub beside the policy, or in the file that release_key of the policy names,
    signed the manifest (release.json). A host without this key is never updated. Only root or the
    agent's account can write the key.
  - The release has not expired. It has a program for this platform. Size, SHA-256 and version of
    the program match.
  - The version is newer than the running one and than every version that ran here. The policy can
    allow older ones with allow_downgrade: true.

Then the new program takes over and runs on trial. Supervised processes keep running. The previous
program is kept as NAME.previous. The agent goes back to it if the server does not accept the
connection within "agent --update-trial" (60s), or if the new program exits before that. A version
that failed is not installed again unless you give --again.

Without --from the command shows which version is on trial and which versions failed.`,
		Example: `  gozzard agent update --data /var/lib/gozzard-agent --from dist
  gozzard agent update --data /var/lib/gozzard-agent`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			data.find(cmd)
			u.Data = data.folder
			if err := makeAbsolute(&u.Data, &u.Policy.File); err != nil {
				return failed(err)
			}
			if u.From == "" {
				return failed(u.status(cmd.Context(), cmd.OutOrStdout()))
			}
			return failed(u.install(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr()))
		},
	}

	f := cmd.Flags()
	data.register(cmd)
	f.StringVar(&u.From, "from", "", "`FOLDER` of the release")
	f.StringVar(&u.Policy.File, "policy", "",
		"policy file of this host (default: policy.yaml in /etc/gozzard or in the state folder, as the agent finds it)")
	f.BoolVar(&u.Again, "again", false, "install a version again that failed on this host")
	f.DurationVar(&u.wait, "wait", 5*time.Minute,
		"how long to wait until the server accepts the connection of the new program")
	return cmd
}

// status prints what the host has on record about updates.
func (u *updateCommand) status(ctx context.Context, out io.Writer) error {
	s, err := selfupdate.ReadState(u.Data)
	if err != nil {
		return err
	}

	key := textIn(ctx, "this host has a release key: updates are possible")
	if _, err := u.Policy.ReleaseKey(u.Data); err != nil {
		key = finishedIn(ctx, err.Error())
	}

	lines := key + "\n"
	if s.Highest != "" {
		lines += textIn(ctx, "newest version that ran here: %s\n", s.Highest)
	}
	if s.Trial != nil {
		lines += textIn(ctx, "on trial: %s, previous version %s\n", s.Trial.Version, s.Trial.From)
	}

	for _, f := range s.Refused {
		lines += textIn(ctx, "rolled back at %s: %s, because %s\n", f.At.Format(time.RFC3339), f.Version,
			printable(f.Reason))
	}

	_, err = io.WriteString(out, lines)
	return err
}

// install installs a release and waits for the end of its trial.
func (u *updateCommand) install(ctx context.Context, out, errs io.Writer) error {
	u.Log = slog.New(slog.NewTextHandler(errs, &slog.HandlerOptions{Level: slog.LevelWarn}))
	in, err := agentd.Install(ctx, u.InstallOptions)
	if err != nil {
		return err
	}

	if !in.Running {
		return checkWrite(fmt.Fprint(out, textIn(ctx,
			"release %s is installed as %s; no agent is running from there, so the trial begins at the next start\n",
			in.Version, in.Program)))
	}

	return u.await(ctx, in, out)
}

// await waits until the trial is over. It reads the state file of the agent again and again, because the agent
// becomes another program meanwhile.
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
			return checkWrite(fmt.Fprint(out, textIn(ctx,
				"release %s is running and the server accepted it; the previous version was %s\n",
				in.Version, in.Previous)))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("release %s is still on trial; run \"gozzard agent update\" later to see the result",
				in.Version)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
