package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/internal/agentd"
)

// newJoinCommand is `gozzard agent join`.
func newJoinCommand() *cobra.Command {
	var o agentd.JoinOptions
	cmd := &cobra.Command{
		Use:   "join",
		Short: "Make this host a member of a server's fleet",
		Long: `Make this host a member of the fleet of a server, with a token that was made there ("gozzard token create"). A key is made on this host and never leaves it;
the server gives a certificate for it, which the agent renews by itself. The token names the authority of its server, and nothing of it is sent to
anybody who cannot prove to be that server. What was agreed is kept in the state folder; "gozzard agent" with the same --data then serves the server.

The host's policy is written here, too. Without --allow-root no command is run as root, whatever the server asks for.`,
		Example: `  gozzard agent join --server https://10.0.0.1:8443 --token-file token --data /var/lib/gozzard-agent
  gozzard agent join --server https://10.0.0.1:8443 --token-file token --data /var/lib/gozzard-agent --allow-root --ip 10.0.0.2`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Server == "" || o.TokenFile == "" {
				return errors.New("--server and --token-file are needed")
			}
			return failed(runJoin(cmd, o))
		},
	}

	f := cmd.Flags()
	f.StringVar(&o.Data, "data", "./agent", "folder of this agent's state")
	f.StringVar(&o.Server, "server", "", "`URL` of the server's API, such as https://10.0.0.1:8443")
	f.StringVar(&o.TokenFile, "token-file", "", "`FILE` with the token, readable by its owner only")
	f.StringSliceVar(&o.IPs, "ip", nil,
		"addresses by which callers name this host (default: the one by which it reaches the server)")
	f.BoolVar(&o.AllowRoot, "allow-root", false, "allow the account root in the policy that is written")
	return cmd
}

func runJoin(cmd *cobra.Command, o agentd.JoinOptions) error {
	j, err := agentd.Join(cmd.Context(), o)
	if err != nil {
		return err
	}

	next := "start it with: gozzard agent --data " + o.Data
	if j.Pending {
		next = "it waits for approval: gozzard hosts approve " + string(j.Agent)
	}

	return written(fmt.Fprintf(cmd.OutOrStdout(), "this host joined as agent %s in cloud %d, answers as %s; %s\n",
		j.Agent, j.Cloud, j.IP, next))
}
