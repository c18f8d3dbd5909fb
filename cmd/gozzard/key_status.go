package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard"
)

// newKeyStatusCommand is `gozzard key status`.
func newKeyStatusCommand(env *cliEnv) *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the keys of the running server, and how far its hosts have moved to the next authority",
		Long: `Show the keys of the running server. While the authority is rotated, the command counts the hosts
that moved to the next authority, and lists those that have not: "waiting" are online and move when
they renew their certificates, "offline" when they come back. It also names the servers that do not
have the next authority yet.`,
		Example: `  gozzard key status
  gozzard key status -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := output.check(); err != nil {
				return err
			}
			return env.keyStatus(cmd.Context(), &output)
		},
	}

	output.register(cmd, cmd.Flags(), "table", "json", "yaml")
	return cmd
}

// keyStatus prints the keys of the server.
func (env *cliEnv) keyStatus(ctx context.Context, output *outputFlag) error {
	c, err := env.connect()
	if err != nil {
		return err
	}
	defer c.Close()
	keys, err := c.Keys(ctx)
	if err != nil {
		return withExitCode(err)
	}
	if output.structured() {
		return output.write(env.out, keys)
	}

	// The keys.
	t := newTable("KEY", "ID", "MADE", "WHERE")
	for i, k := range keys.Signing {
		where := ""
		if i == len(keys.Signing)-1 {
			where = "data folder"
			if keys.SigningExternal {
				where = "external signer"
			}
		}
		t.add(fmt.Sprintf("signing %d", k.Epoch), k.ID, k.Made.Format(time.RFC3339), where)
	}
	a := keys.Authority
	if a != nil {
		t.add("authority", a.Authority, "", "")
	}
	if a != nil && a.Next != "" {
		t.add("next authority", a.Next, "", "")
	}
	if err := t.write(env.out); err != nil {
		return err
	}

	// The hosts on their way.
	if a == nil || a.Next == "" {
		return nil
	}
	t = newTable("HOSTS", "COUNT", "AGENTS")
	t.add("moved", fmt.Sprint(a.Moved), "")
	t.add("waiting", fmt.Sprint(len(a.Waiting)), someAgents(a.Waiting))
	t.add("offline", fmt.Sprint(len(a.Offline)), someAgents(a.Offline))
	if err := t.write(env.out); err != nil {
		return err
	}
	return env.sayWithout(a.Servers)
}

// someAgents lists the first agents.
func someAgents(list []gozzard.AgentID) (text string) {
	const most = 5
	for i, agent := range list {
		if i == most {
			return text + fmt.Sprintf(" and %d more", len(list)-most)
		}
		if i > 0 {
			text += " "
		}
		text += string(agent)
	}
	return text
}
