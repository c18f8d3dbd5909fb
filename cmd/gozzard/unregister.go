package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// unregisterHelp is the beginning of the help of `gozzard unregister`.
const unregisterHelp = `Remove the definitions of processes from hosts. Running processes keep running without supervision:
stop them first if they should not.`

// newUnregisterCommand is `gozzard unregister`.
func newUnregisterCommand(env *cliEnv) *cobra.Command {
	var o operateOptions
	cmd := &cobra.Command{
		Use:   "unregister [NAME...]",
		Short: "Remove the definitions of processes",
		Long:  unregisterHelp + scopeHelp + exitHelp,
		Example: `  gozzard unregister web -n shop --all-hosts
  gozzard unregister web -n shop --host 10.0.0.1
  gozzard unregister --biz 2 --module web`,
		ValidArgsFunction: env.completeNames,
		RunE: func(cmd *cobra.Command, names []string) error {
			if o.preview {
				return o.dryRun(cmd.Context(), env, &o.output, "unregister", names,
					func(c *client.Client, s client.Selection) (client.Preview, error) {
						return c.PreviewUnregister(cmd.Context(), s)
					})
			}
			var left []client.Process
			err := o.run(cmd.Context(), env, &o.taskFlags, "unregister", names,
				func(c *client.Client, s client.Selection) (client.Accepted, error) {
					up := runningOf(cmd.Context(), c, s)
					accepted, err := c.UnregisterConfirmed(cmd.Context(), s, o.confirm)
					if err == nil {
						left = up
					}
					return accepted, err
				})
			env.remarkLeft(left)
			return err
		},
	}

	o.targetFlags.register(cmd.Flags())
	o.taskFlags.register(cmd)
	o.registerPreview(cmd)
	o.registerConfirm(cmd)
	return cmd
}

// maxLeft is how many processes that keep running are named.
const maxLeft = 10

// runningOf are the processes of a selection that run, one more than are named at most.
func runningOf(ctx context.Context, c *client.Client, s client.Selection) (up []client.Process) {
	// Ask which processes are meant. If that fails, the request itself says why.
	plan, err := c.PreviewUnregister(ctx, s)
	if err != nil {
		return nil
	}
	type one struct {
		host client.HostRef
		key  gozzard.Key
	}
	meant := map[one]bool{}
	for i := range plan.Processes {
		r := &plan.Processes[i]
		meant[one{r.Host, gozzard.Key{Namespace: r.Namespace, Name: r.Name}}] = true
	}

	// Find those that run.
	q := client.ProcessQuery{BusinessSelection: s.BusinessSelection, Namespaces: s.Namespaces}
	if s.Biz == 0 { // the names of a business are aliases
		q.Names = s.Names
	}
	for p, err := range c.AllProcesses(ctx, q) {
		if err != nil || len(up) > maxLeft {
			break
		}
		if isUp(&p) && meant[one{p.Host, gozzard.Key{Namespace: p.Namespace, Name: p.Name}}] {
			up = append(up, p)
		}
	}
	return up
}

// remarkLeft names what keeps running without a definition: nothing starts, stops or shows it any more.
func (env *cliEnv) remarkLeft(left []client.Process) {
	for i := range left[:min(len(left), maxLeft)] {
		p := &left[i]
		env.remark("%s/%s keeps running on %s as pid %d, and nothing supervises it any more", printable(p.Namespace), printable(p.Name),
			processHost(p), p.PID)
	}
	if len(left) > maxLeft {
		env.remark("more processes keep running")
	}
	if len(left) > 0 {
		env.remark("to stop them, end them on their hosts, or register them again and stop them")
	}
}
