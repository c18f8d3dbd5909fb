package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/internal/server"
)

// newServerJoinCommand is `gozzard server join`.
func newServerJoinCommand() *cobra.Command {
	var o server.JoinOptions
	cmd := &cobra.Command{
		Use:   "join",
		Short: "Get the keys of an installation for one more server",
		Long: `Make the data folder of one more server that shares the record of a running one. The token is from
"gozzard servers token", and --server is the server that made it, which runs with --cluster-listen
or --cluster-nats.

The token has the fingerprint of the server's authority: nothing is sent to a server that does not
prove to be the right one. The token itself is never sent. The authority and the signing key come
sealed for this command alone, beside the encryption of the connection. Keys in an external signer
are not sent: the new server needs the same --signer-command.

The data folder must be empty or missing. If the command fails, it stays empty.`,
		Example: "  gozzard server join --server https://10.0.0.1:8443 --token-file token --data /var/lib/gozzard",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Server == "" || o.TokenFile == "" {
				return usage("--server and --token-file are required")
			}
			if err := actAsOwner(o.Data, cmd.ErrOrStderr()); err != nil {
				return failed(err)
			}
			return failed(joinServers(cmd, o))
		},
	}

	f := cmd.Flags()
	f.StringVar(&o.Data, "data", "./data", "data `FOLDER` of the new server")
	f.StringVar(&o.Server, "server", "", "`URL` of the server that made the token, such as https://10.0.0.1:8443")
	f.StringVar(&o.TokenFile, "token-file", "", "`FILE` with the token, readable by its owner only")
	return cmd
}

// joinServers gets the keys and prints what comes next.
func joinServers(cmd *cobra.Command, o server.JoinOptions) error {
	outside, err := server.Join(cmd.Context(), o)
	if err != nil {
		return err
	}

	if len(outside) > 0 {
		cmd.PrintErr(textIn(cmd.Context(), "not sent, because an external signer has it: %s. This server needs the same "+
			"--signer-command\n", strings.Join(outside, ", ")))
	}
	return checkWrite(fmt.Fprint(cmd.OutOrStdout(), textIn(cmd.Context(),
		"%s has the keys of the installation; start the server with: gozzard server --data %s --record ADDRESS "+
			"--cluster-listen HOST:PORT --listen HOST:PORT --agent-listen HOST:PORT\n", o.Data, o.Data)))
}
