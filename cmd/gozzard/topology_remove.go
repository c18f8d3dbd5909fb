package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
)

// newTopologyRemoveCommand is `gozzard topology remove`.
func newTopologyRemoveCommand(env *cliEnv) *cobra.Command {
	var o applyOptions
	cmd := &cobra.Command{
		Use:   "remove BIZ",
		Short: "Remove a business",
		Long: `Remove a business with its sets, modules and service instances. The plan is printed first. No process is
stopped. A business with supervised processes is not removed, unless you give --prune: then they are
unregistered and keep running without supervision. A business from BlueKing CMDB is not removed.

Exit code: 0 done, 1 rejected or failed, 5 there is no such business.`,
		Example: `  gozzard topology remove 2 --dry-run
  gozzard topology remove 2`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.withBusiness(cmd.Context(), args, &o.output,
				func(ctx context.Context, c *client.Client, biz int) error {
					return env.removeTopology(ctx, c, &o, biz)
				})
		},
	}

	f := cmd.Flags()
	f.BoolVar(&o.DryRun, "dry-run", false, "print the plan and change nothing")
	f.BoolVar(&o.Prune, "prune", false, "also remove supervised processes: they are unregistered and keep running")
	o.output.register(cmd, f, "table", "json", "yaml")
	return cmd
}

// removeTopology prints the plan and then removes the business. The server rejects it if another caller changed the
// business in between.
func (env *cliEnv) removeTopology(ctx context.Context, c *client.Client, o *applyOptions, biz int) error {
	done, err := env.changeTopology(o, func(with client.ApplyOptions) (client.Applied, error) {
		return c.RemoveTopology(ctx, biz, with)
	})
	if err != nil {
		return err
	}

	switch {
	case o.output.structured():
		return writeApplied(env, o, &done)
	case o.DryRun:
		return env.printApplied(o, &done)
	}

	if done.TaskID != "" {
		env.remark("the removed processes are being unregistered; follow it with: gozzard task %s",
			printable(shortTask(done.TaskID)))
	}
	return env.say("removed: business %d\n", done.Biz)
}
