package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
)

// newConfirmRestoreCommand is `gozzard hosts confirm-restore`.
func newConfirmRestoreCommand(env *cliEnv) *cobra.Command {
	confirm := -1
	cmd := &cobra.Command{
		Use:   "confirm-restore",
		Short: "Let the hosts of a restored record in",
		Long: `After "gozzard backup restore" the hosts are kept out: what was revoked or removed after the backup was taken is a member again in the restored record, and
only people know. Without --confirm this lists the hosts that wait. Revoke or remove those that must not come back ("gozzard hosts revoke HOST"), then say
how many are left with --confirm. All of them are let in at once; "gozzard hosts approve HOST" does it one by one, and --confirm 0 then says
that it was all. Needs the role admin on everything.`,
		Example: `  gozzard hosts confirm-restore
  gozzard hosts revoke 0:10.0.0.9
  gozzard hosts confirm-restore --confirm 41`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("confirm") && confirm < 0 {
				return usage("--confirm %d: how many hosts are to be let in", confirm)
			}
			return env.confirmRestore(cmd.Context(), confirm)
		},
	}

	cmd.Flags().IntVar(&confirm, "confirm", -1, "let them in, if there are `N` of them")
	return cmd
}

func (env *cliEnv) confirmRestore(ctx context.Context, confirm int) error {
	c, err := env.connect()
	if err != nil {
		return err
	}

	defer c.Close()

	if confirm >= 0 {
		if err := c.ConfirmRestore(ctx, confirm); err != nil {
			return served(err)
		}
		return written(fmt.Fprintf(env.out, "%d host(s) are let in\n", confirm))
	}

	r, err := c.Restore(ctx)
	if err != nil {
		return served(err)
	}
	if r.From == nil {
		env.remark("the record was not restored from a backup, or that is confirmed already")
		return nil
	}

	hosts, err := env.waitingHosts(ctx, c)
	if err != nil {
		return served(err)
	}
	if err := env.hostTable(hosts, true).write(env.out); err != nil {
		return err
	}

	env.remark("the record is as of %s. %d host(s) wait. Those that were revoked or removed after that time are among them: put them out again first "+
		"(gozzard hosts revoke HOST). Then: gozzard hosts confirm-restore --confirm N, with the number that is left",
		r.From.Format(time.RFC3339), r.Waiting)
	return nil
}

// waitingHosts are those that a restore keeps out: members by their state, others because nothing else is known of
// them.
func (env *cliEnv) waitingHosts(ctx context.Context, c *client.Client) (waiting []client.HostInfo, err error) {
	var all []client.HostInfo
	for {
		page, err := c.Hosts(ctx, len(all), client.MaxPage)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Hosts...)
		if len(page.Hosts) < client.MaxPage {
			break
		}
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
