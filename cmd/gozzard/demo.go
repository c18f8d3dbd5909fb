package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// demoDocument is the business of the demo.
//
//go:embed demo.yaml
var demoDocument string

// The business of the demo, and the number of hosts in its document.
const (
	demoBiz   = 1000
	demoName  = "demo"
	demoHosts = 3
)

// demoGroups are the processes of the demo by what is done with them at first. A stop registers a process and leaves it
// stopped.
func demoGroups() []demoGroup {
	return []demoGroup{
		{"start", []string{"web", "orders", "payments", "report", "lobby", "match", "replay"}},
		{"stop", []string{"chat"}},
	}
}

type demoGroup struct {
	action string
	names  []string
}

// selection selects processes of the demo by their names.
func (g *demoGroup) selection() client.Selection {
	return client.Selection{BusinessSelection: client.BusinessSelection{Biz: demoBiz}, Names: g.names}
}

// demoFor is the document of the demo for an account and a cloud area.
func demoFor(account string, cloud int) []byte {
	quoted, _ := json.Marshal(account) // YAML reads it as a text, also if it is a number; a string has no error
	return []byte(strings.NewReplacer("ACCOUNT", string(quoted), "CLOUD", strconv.Itoa(cloud)).Replace(demoDocument))
}

// makeDemo makes the demo on the server of `gozzard dev`, unless it is there. made is false when nothing was changed:
// what people stopped, changed or removed of it stays so.
func makeDemo(ctx context.Context, credentialsFile string, cloud int) (made bool, err error) {
	// Connect as the callers of this folder do.
	b, err := os.ReadFile(credentialsFile)
	if err != nil {
		return false, err
	}
	var file credentials
	if err := json.Unmarshal(b, &file); err != nil {
		return false, err
	}
	c, err := client.New(file.URL, client.Credentials{AppCode: file.AppCode, AppSecret: file.Secret,
		Username: file.Username})
	if err != nil {
		return false, err
	}
	defer c.Close()

	// Leave what is there. A demo of which nothing is registered was interrupted while it was made.
	tree, err := c.Tree(ctx, demoBiz, "")
	switch {
	case gozzard.KindOf(err) == gozzard.ErrNotFound:
	case err != nil:
		return false, err
	case tree.Name != demoName:
		return false, fmt.Errorf("business %d exists and is not the demo; its name is %s", demoBiz, printable(tree.Name))
	case tree.Counts.Unregistered < tree.Counts.Processes:
		return false, nil
	}

	// Make it.
	me, err := user.Current()
	if err != nil {
		return false, err
	}
	if _, err := c.ApplyTopology(ctx, demoBiz, demoFor(me.Username, cloud), client.ApplyOptions{}); err != nil {
		return false, err
	}
	for _, g := range demoGroups() {
		if _, err := c.Operate(ctx, client.Operation{Action: g.action, Selection: g.selection()}); err != nil {
			return false, fmt.Errorf("cannot start the demo: %w", err)
		}
	}

	return true, nil
}

// printDemo makes the demo and prints what it is. A demo that cannot be made does not end `gozzard dev`.
func printDemo(ctx context.Context, credentialsFile string, cloud int) error {
	made, err := makeDemo(ctx, credentialsFile, cloud)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return checkWrite(fmt.Fprintln(os.Stderr, textIn(ctx, "gozzard: cannot make the demo: %s",
			finishedIn(ctx, printable(err.Error())))))
	}

	remove := exampleCommand(credentialsFile, "demo remove")
	if !made {
		return checkWrite(fmt.Print(textIn(ctx,
			"demo:         business %d is there from an earlier start; it is left as it is\nremove it:    %s\n",
			demoBiz, remove)))
	}
	return checkWrite(fmt.Print(textIn(ctx, "demo:         business %d \"%s\" with 14 processes on %d hosts, all of them "+
		"small loops of the shell:\n"+
		"              payments crashes now and then, replay is in a crash loop, match is unhealthy,\n"+
		"              report runs each minute, chat is stopped, orders writes a log\n"+
		"remove it:    %s\n", demoBiz, demoName, demoHosts, remove)))
}

// newDemoCommand is `gozzard demo`.
func newDemoCommand(env *cliEnv) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Remove the demo of \"gozzard dev --demo\"",
		Long: `Remove the demo. "gozzard dev --demo" makes it: a business with small processes, some of which crash or
are unhealthy, so that there is something to look at.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}

	cmd.AddCommand(&cobra.Command{
		Use:   "remove",
		Short: "Stop and unregister the processes of the demo, and remove its business",
		Long: `Stop and unregister the processes that "gozzard dev --demo" made, and remove its business. Nothing
else is touched. If you added processes of your own to that business and they are supervised, the
business stays. The next "gozzard dev --demo" makes the demo again; "gozzard dev" does not.`,
		Example: "  gozzard demo remove",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return env.withClient(func(c *client.Client) error { return env.removeDemo(cmd.Context(), c) })
		},
	})
	return cmd
}

// removeDemo removes the demo. What cannot be stopped stays registered, and the business with it.
func (env *cliEnv) removeDemo(ctx context.Context, c *client.Client) error {
	// Find it.
	tree, err := c.Tree(ctx, demoBiz, "")
	if gozzard.KindOf(err) == gozzard.ErrNotFound {
		return env.say("there is no demo\n")
	}
	if err != nil {
		return err
	}
	if tree.Name != demoName {
		return failed(fmt.Errorf("business %d is not the demo; its name is %s", demoBiz, printable(tree.Name)))
	}

	// Stop its processes, then unregister them.
	var all demoGroup
	for _, g := range demoGroups() {
		all.names = append(all.names, g.names...)
	}
	stop := client.Operation{Action: "stop", Selection: all.selection()}
	p, err := c.Preview(ctx, stop)
	if err != nil && gozzard.KindOf(err) != gozzard.ErrNotFound {
		return err
	}
	if err == nil {
		stop.Confirm = p.Targets
		if err := env.finish(ctx, c, "stop", func() (client.Accepted, error) { return c.Operate(ctx, stop) }); err != nil {
			return err
		}
		err := env.finish(ctx, c, "unregister", func() (client.Accepted, error) {
			return c.UnregisterConfirmed(ctx, all.selection(), p.Targets)
		})
		if err != nil {
			return err
		}
	}

	// Remove the business.
	if _, err := c.RemoveTopology(ctx, demoBiz, client.ApplyOptions{}); err != nil {
		return env.printFaults(err)
	}
	return env.say("removed: business %d and its processes\n", demoBiz)
}

// finish begins a task and waits for its end. It fails, with a table, when a target failed.
func (env *cliEnv) finish(ctx context.Context, c *client.Client, what string,
	begin func() (client.Accepted, error)) error {
	a, err := begin()
	if err != nil {
		return withExitCode(err)
	}
	var o taskFlags
	t, err := env.waitForTask(ctx, c, &o, what, a.TaskID)
	if err != nil {
		return err
	}
	return env.printTask(&o, what, &t)
}
