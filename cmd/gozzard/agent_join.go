package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/internal/agentd"
)

// newAgentJoinCommand is `gozzard agent join`.
func newAgentJoinCommand() *cobra.Command {
	var o agentd.JoinOptions
	cmd := &cobra.Command{
		Use:   "join",
		Short: "Join this host to the fleet of a server",
		Long: `Join this host to the fleet of a server, with a token from "gozzard token create". The host makes a
key that never leaves it. The server returns a certificate for the key, and the agent renews the
certificate by itself.

The token contains the fingerprint of the server's authority. The token is sent only to a server
that proves to be the right one. The state folder stores the result. Then start the agent: "gozzard
agent" with the same --data.

The addresses of this host are fixed when it joins for the first time. Joining again does not change
them; an admin can do that with "gozzard hosts address".

The command also writes the policy of this host, before it uses the token; when the host does not join,
the policy is put back as it was. It is /etc/gozzard/policy.yaml for an agent of root with its state in
/var/lib, and otherwise in the state folder. Without --allow-root the
agent runs no command as root, whatever the server asks for. --allow-user and --allow-path allow the
accounts and folders of your processes, and --allow-files the folders of their configuration files. A
definition that names no account does not run, unless --default-user names the account for it. A policy
that a person has changed stays as it is: then the command prints the lines that are missing.`,
		Example: `  gozzard agent join --server https://10.0.0.1:8443 --token-file token --data /var/lib/gozzard-agent
  gozzard agent join --server https://10.0.0.1:8443 --token-file token --allow-root --ip 10.0.0.2
  gozzard agent join --server https://10.0.0.1:8443 --token-file token --data /var/lib/gozzard-agent --allow-user www-data --allow-path /var/www`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Server == "" || o.TokenFile == "" {
				return errors.New("--server and --token-file are required")
			}
			return failed(join(cmd, o))
		},
	}

	f := cmd.Flags()
	f.StringVar(&o.Data, "data", "./agent", "state folder of this agent")
	f.StringVar(&o.Server, "server", "", "`URL` of the server's API, such as https://10.0.0.1:8443; several with commas between them: the first that can be reached")
	f.StringVar(&o.TokenFile, "token-file", "", "`FILE` with the token, readable by its owner only")
	f.StringSliceVar(&o.IPs, "ip", nil,
		"IP addresses of this host that callers may use, at most 16, inside of the networks of the token (default: the "+
			"address that it connects to the server from)")
	f.StringVar(&o.Policy, "policy", "", "policy `FILE` of this host, if the agent is started with --policy")
	f.BoolVar(&o.AllowRoot, "allow-root", false, "allow commands as root in the policy that is written")
	f.StringVar(&o.Default, "default-user", "",
		"`ACCOUNT` of definitions that name none; it is allowed, too (default: they do not run)")
	f.StringSliceVar(&o.Users, "allow-user", nil, "`ACCOUNT` that commands may run as; may be repeated")
	f.StringSliceVar(&o.Paths, "allow-path", nil, "`FOLDER` that processes may be in; may be repeated")
	f.StringSliceVar(&o.Files, "allow-files", nil, allowFilesHelp)
	return cmd
}

// join enrols this host and prints what comes next.
func join(cmd *cobra.Command, o agentd.JoinOptions) error {
	o.Texts = policyTexts(cmd.Context())
	j, err := agentd.Join(cmd.Context(), o)
	if err != nil {
		return err
	}

	next := textIn(cmd.Context(), "start the agent with: gozzard agent --data %s", o.Data)
	switch unit, orCap := agentd.StartUnit(cmd.Context(), o.Data); {
	case orCap:
		next = textIn(cmd.Context(), "start the agent with: systemctl enable --now %s; for mode cap instead with: "+
			"chown -R gozzard: %s && systemctl enable --now gozzard-agent-cap", unit, o.Data)
	case unit != "":
		next = textIn(cmd.Context(), "start the agent with: systemctl enable --now %s", unit)
	}
	if j.Pending {
		next = textIn(cmd.Context(), "an admin must approve it: gozzard hosts approve %s", j.Agent)
	}

	if len(j.NotUsed) > 0 {
		cmd.PrintErr(textIn(cmd.Context(), "not used: --ip %s. The server keeps the addresses that this agent has; "+
			"an admin can change them with: gozzard hosts address %s\n", strings.Join(j.NotUsed, ","), j.Agent))
	}
	return checkWrite(fmt.Fprint(cmd.OutOrStdout(), textIn(cmd.Context(),
		"this host joined as agent %s in cloud %d with address %s; policy %s; %s\n", j.Agent, j.Cloud, j.IP, j.Policy, next)))
}
