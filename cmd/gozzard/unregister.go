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
			var left affected
			err := o.run(cmd.Context(), env, &o.taskFlags, "unregister", names,
				func(c *client.Client, s client.Selection) (client.Accepted, error) {
					before := affectedBy(cmd.Context(), c, s)
					accepted, err := c.UnregisterConfirmed(cmd.Context(), s, o.confirm)
					if err == nil {
						left = before
					}
					return accepted, err
				})
			env.remarkUnknown(left.unknown)
			env.remarkLeft(left.up)
			return err
		},
	}

	o.oneSpace = true
	o.targetFlags.register(cmd.Flags())
	o.taskFlags.register(cmd)
	o.registerPreview(cmd)
	o.registerConfirm(cmd)
	return cmd
}

// maxLeft is how many processes are named that keep running, or that are not registered.
const maxLeft = 10

// affected are processes of a selection that the count of unregistered ones does not show.
type affected struct {
	up      []client.Process    // they run
	unknown []client.PreviewRow // they are not registered
}

// affectedBy finds the processes of a selection that run, and those that are not registered.
func affectedBy(ctx context.Context, c *client.Client, s client.Selection) (a affected) {
	// Ask which processes are meant. If that fails, the request itself says why.
	plan, err := c.PreviewUnregister(ctx, s)
	if err != nil {
		return affected{}
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
	registered := map[one]bool{}
	for p, err := range c.AllProcesses(ctx, q) {
		if err != nil {
			return affected{}
		}
		this := one{p.Host, gozzard.Key{Namespace: p.Namespace, Name: p.Name}}
		registered[this] = true
		if isUp(&p) && meant[this] {
			a.up = append(a.up, p)
		}
	}

	// The others are not registered.
	for i := range plan.Processes {
		r := &plan.Processes[i]
		if r.Code == "" && !registered[one{r.Host, gozzard.Key{Namespace: r.Namespace, Name: r.Name}}] {
			a.unknown = append(a.unknown, *r)
		}
	}
	return a
}

// remarkUnknown names what was not registered before either: its name may be misspelt.
func (env *cliEnv) remarkUnknown(unknown []client.PreviewRow) {
	for i := range unknown[:min(len(unknown), maxLeft)] {
		r := &unknown[i]
		env.remark("%s:%s was not registered on %s", printable(r.Namespace), printable(r.Name), refName(r.Host))
	}
	if n := len(unknown) - maxLeft; n > 0 {
		env.remark("more processes were not registered")
	}
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
