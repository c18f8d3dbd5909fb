package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
)

// newConfirmRestoreCommand is `gozzard hosts confirm-restore`.
func newConfirmRestoreCommand(env *cliEnv) *cobra.Command {
	confirm := -1
	cmd := &cobra.Command{
		Use:   "confirm-restore",
		Short: "Confirm the hosts after a restore",
		Long: `After "gozzard backup restore" the hosts cannot connect. Hosts that were revoked or removed after
the backup are members again in the restored record, and only people know which ones. Without
--confirm the command lists the waiting hosts. Revoke or remove those that must not come back
("gozzard hosts revoke HOST"). Then give the number of the remaining hosts with --confirm: all of
them can connect at once. "gozzard hosts approve HOST" approves one host at a time; --confirm 0 ends
it when none is left. This needs the role admin on everything.`,
		Example: `  gozzard hosts confirm-restore
  gozzard hosts revoke 0:10.0.0.9
  gozzard hosts confirm-restore --confirm 41`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("confirm") && confirm < 0 {
				return usage("--confirm %d: give the number of hosts to confirm", confirm)
			}
			return env.confirmRestore(cmd.Context(), confirm)
		},
	}

	cmd.Flags().IntVar(&confirm, "confirm", -1, "confirm the waiting hosts if there are exactly `N`")
	return cmd
}

// confirmRestore confirms the waiting hosts if confirm is their number. Below 0 it lists them.
func (env *cliEnv) confirmRestore(ctx context.Context, confirm int) error {
	c, err := env.connect()
	if err != nil {
		return err
	}
	defer c.Close()

	// Confirm.
	if confirm >= 0 {
		if err := c.ConfirmRestore(ctx, confirm); err != nil {
			return withExitCode(err)
		}
		return env.say("%d host(s) confirmed\n", confirm)
	}

	// List the hosts that wait.
	r, err := c.Restore(ctx)
	if err != nil {
		return withExitCode(err)
	}
	if r.From.IsZero() {
		env.remark("nothing to confirm: the record was not restored from a backup, or its hosts are already confirmed")
		return nil
	}

	hosts, err := env.waitingHosts(ctx, c)
	if err != nil {
		return withExitCode(err)
	}
	if err := env.hostTable(hosts, true).write(env.out); err != nil {
		return err
	}

	env.remark("the record is as of %s. %d host(s) wait. Hosts that were revoked or removed after that time are "+
		"among them: revoke them again first (gozzard hosts revoke HOST). Then run: gozzard hosts confirm-restore "+
		"--confirm N, with the number of remaining hosts", r.From.Format(time.RFC3339), r.Waiting)
	return nil
}

// waitingHosts are the hosts that a restore excludes: enrolled hosts in the state restored, and hosts that were
// never enrolled.
func (env *cliEnv) waitingHosts(ctx context.Context, c *client.Client) (waiting []client.HostInfo, err error) {
	all, err := allHosts(ctx, c)
	if err != nil {
		return nil, err
	}

	if all, err = withMembers(ctx, c, all); err != nil {
		return nil, err
	}

	for i := range all {
		if all[i].Trust == "restored" || all[i].Trust == "" {
			waiting = append(waiting, all[i])
		}
	}

	return waiting, nil
}
