package main

import (
	"fmt"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/internal/server"
)

// newGrantResolveCommand is `gozzard grant resolve`.
func newGrantResolveCommand(env *cliEnv) *cobra.Command {
	var grant grantFlags
	var r server.Resolution
	var data string
	cmd := &cobra.Command{
		Use:   "resolve",
		Short: "Say what a grant of an older version means now",
		Long: `Give a grant of an older version its hosts and accounts. Those grants reached every host and every
account. A server does not start while a grant would mean something else than before: it prints one
such command for each. Run them on the machine of the server, as root or as its account, while it is
stopped. Each is recorded in the audit.

A grant by businesses reaches the hosts that are assigned to them. A grant by namespaces needs --net,
--cloud or --any-host. An operator or admin needs --account. A grant that has both businesses and
namespaces becomes two grants.`,
		Example: `  gozzard grant resolve --data /var/lib/gozzard --app shop --grant 1 --account shop
  gozzard grant resolve --data /var/lib/gozzard --user alice --grant 2 --net 10.1.0.0/16 --account shop,web`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (r.App == "") == (r.User == "") {
				return usage("--app CODE or --user NAME is required")
			}
			r.AnyHost, r.Clouds, r.Accounts = grant.anyHost, grant.clouds, grant.accounts
			for _, n := range grant.nets {
				p, err := netip.ParsePrefix(n)
				if err != nil {
					return usage("--net %s: use a network such as 10.1.0.0/16", n)
				}
				r.Nets = append(r.Nets, p)
			}
			findData(cmd, &data)
			if err := actAsOwner(data, noteWriter{env}); err != nil {
				return failed(err)
			}
			left, err := server.ResolveGrant(cmd.Context(), data, r)
			if err != nil {
				return failed(err)
			}
			return env.printLeft(left)
		},
	}

	f := cmd.Flags()
	registerData(cmd, &data)
	f.StringVar(&r.App, "app", "", "`CODE` of the app")
	f.StringVar(&r.User, "user", "", "`NAME` of the user")
	f.IntVar(&r.Number, "grant", 0, "`NUMBER` of the grant, as the server prints it")
	f.IntSliceVar(&grant.clouds, "cloud", nil, "only hosts of this `CLOUD` area; may be repeated")
	f.StringSliceVar(&grant.nets, "net", nil,
		"only hosts with an address in this `NETWORK` such as 10.1.0.0/16; may be repeated")
	grant.registerScope(f)
	return cmd
}

// printLeft prints the commands for the grants that are left.
func (env *cliEnv) printLeft(left []string) error {
	if len(left) == 0 {
		return env.say("every grant is resolved: start the server\n")
	}
	for _, command := range left {
		if err := checkWrite(fmt.Fprintln(env.out, command)); err != nil {
			return err
		}
	}
	return nil
}
