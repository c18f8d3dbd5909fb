package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/internal/relay"
)

// relayHelp is the help of `gozzard relay`.
const relayHelp = `Run a relay. It connects the hosts of a closed network to the servers: hosts connect to the relay,
and the relay opens one connection to a server. Nothing in that network needs a way to the servers
except the relay.

Hosts join through it ("gozzard agent join --server https://RELAY:8443"), renew their certificates
through it and get their commands through it. The relay can neither read nor change what it carries:
host and server prove themselves to each other through it. The server accepts only hosts of the
cloud areas that the relay is for.

When the connection to its server is lost, the relay connects to another one, and the hosts connect
again through it. Run two relays for a network: hosts use either.

The folder has the certificate of the relay and nothing else. If it is lost, remove the relay at a
server ("gozzard relays remove") and join again with a new token.

Settings. Every flag can also be set by an environment variable (--api-listen is GOZZARD_API_LISTEN)
or in the YAML file that --config names. A flag wins over the environment, and the environment wins
over the file.`

// newRelayCommand is `gozzard relay`.
func newRelayCommand() *cobra.Command {
	var o relay.Options
	var logs logFlags
	cmd := &cobra.Command{
		Use:   "relay",
		Short: "Run a relay, which connects a closed network to the servers",
		Long:  relayHelp,
		Example: `  gozzard relay join --server https://10.0.0.1:8443 --token-file token --data /var/lib/gozzard-relay
  gozzard relay --data /var/lib/gozzard-relay --listen 192.168.5.2:4230 --api-listen 192.168.5.2:8443`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := applySettings(cmd); err != nil {
				return err
			}
			log, err := logs.logger(os.Stderr)
			if err != nil {
				return err
			}
			o.Log = log
			r, err := relay.New(o)
			if err != nil {
				return failed(err)
			}
			return failed(r.Run(cmd.Context()))
		},
	}

	f := cmd.Flags()
	f.StringVar(&o.Data, "data", "./relay", "folder of this relay")
	f.StringVar(&o.Listen, "listen", "0.0.0.0:4230", "`ADDRESS` that agents of the network connect to")
	f.StringVar(&o.APIListen, "api-listen", "0.0.0.0:8443", "`ADDRESS` at which hosts join and renew their certificates")
	f.StringVar(&o.Address, "address", "",
		"`NAME` or address of this machine for the hosts (default: that of --listen, or the one that they joined with)")
	logs.register(cmd, "info")
	cmd.AddCommand(newRelayJoinCommand())
	return cmd
}

// newRelayJoinCommand is `gozzard relay join`.
func newRelayJoinCommand() *cobra.Command {
	var o relay.JoinOptions
	cmd := &cobra.Command{
		Use:   "join",
		Short: "Make this machine a relay",
		Long: `Join a server as a relay, with a token of "gozzard relays token". The server runs with
--relay-listen. The token has the fingerprint of the server's authority: it is not sent to a server
that does not prove to be the right one. The key of the relay is made here and stays here.

The folder must not have a relay already. Then start it with "gozzard relay".`,
		Example: "  gozzard relay join --server https://10.0.0.1:8443 --token-file token --data /var/lib/gozzard-relay",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Server == "" || o.TokenFile == "" {
				return usage("--server and --token-file are required")
			}
			j, err := relay.Join(cmd.Context(), o)
			if err != nil {
				return failed(err)
			}
			return checkWrite(fmt.Fprint(cmd.OutOrStdout(), textIn(cmd.Context(),
				"joined as relay %s (%s) for the cloud areas %s; start it with: gozzard relay --data %s\n", j.Name, j.ID,
				areasText(j.Areas), o.Data)))
		},
	}

	f := cmd.Flags()
	f.StringVar(&o.Data, "data", "./relay", "`FOLDER` of the new relay")
	f.StringVar(&o.Server, "server", "", "`URL` of a server, such as https://10.0.0.1:8443")
	f.StringVar(&o.TokenFile, "token-file", "", "`FILE` with the token, readable by its owner only")
	return cmd
}

// areasText is a list of cloud areas as people write it.
func areasText(areas []int) string {
	list := make([]string, 0, len(areas))
	for _, a := range areas {
		list = append(list, strconv.Itoa(a))
	}
	return strings.Join(list, ",")
}
