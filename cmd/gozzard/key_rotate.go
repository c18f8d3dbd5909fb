package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/signing"
)

// keyRotateHelp is the help of `gozzard key rotate`.
const keyRotateHelp = `Replace a key of a server by a new one. Processes are not affected.

signing: the running server makes a new key and uses it at once. The key before signs the new one,
and then its secret is deleted. Agents accept the new key with their next command, offline agents
when they come back, and reject the old key from then on.

authority: the running server makes the next authority. Agents move to it by themselves when they
renew their certificates, within a day. "gozzard key status" shows how far they are. Then
"gozzard key rotate authority --finish" deletes the old authority. It refuses while hosts have not
moved, unless --confirm has their number: those hosts must join again with a token. Enrolment tokens
from before are worthless then. People with the authority in their credentials file need the new
one: "gozzard key status -o json" shows it.

Servers that share a record all get the new key first, from the server that is asked. One that is
off gets it when it starts again. --finish counts servers that are off and do not have it, too: they
would need the key by hand.

Without a name: make the next signing key in the data folder. The server uses it from its next start
on.

An offline agent can follow up to 16 rotations of the signing key. After more than that, or if an
old key was stolen and used before the agents knew the new one, give the agents the new key by hand:
stop the agent, remove server.key in its state folder, and start it with the present join.secret.`

// newKeyRotateCommand is `gozzard key rotate`.
func newKeyRotateCommand(env *cliEnv) *cobra.Command {
	var data string
	var finish bool
	var confirm int
	cmd := &cobra.Command{
		Use:   "rotate [signing|authority]",
		Short: "Replace the signing key or the authority of a server by a new one",
		Long:  keyRotateHelp,
		Example: `  gozzard key rotate signing
  gozzard key rotate authority
  gozzard key rotate authority --finish
  gozzard key rotate --data /var/lib/gozzard && systemctl restart gozzard-server`,
		Args:      cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"signing", "authority"},
		RunE: func(cmd *cobra.Command, args []string) error {
			isAuthority := len(args) == 1 && args[0] == "authority"
			switch {
			case len(args) == 1 && cmd.Flags().Changed("data"):
				return usage("--data is for the data folder of a server; with %s the running server is asked", args[0])
			case !isAuthority && (finish || confirm != 0), confirm != 0 && !finish, confirm < 0:
				return usage("--finish is for the authority, and --confirm N goes with --finish")
			case len(args) == 0:
				findData(cmd, &data)
				return env.rotateFolder(data)
			case isAuthority:
				return env.rotateAuthority(cmd.Context(), finish, confirm)
			}
			return env.rotateSigning(cmd.Context())
		},
	}

	registerData(cmd, &data)
	cmd.Flags().BoolVar(&finish, "finish", false, "delete the old authority")
	cmd.Flags().IntVar(&confirm, "confirm", 0, "cut off the hosts and servers that have not moved if they are exactly `N`")
	return cmd
}

// rotateFolder rotates the signing key in a data folder.
func (env *cliEnv) rotateFolder(data string) error {
	if err := actAsOwner(data, noteWriter{env}); err != nil {
		return failed(err)
	}
	old, next, err := signing.Rotate(data, nil)
	if err != nil {
		return failed(err)
	}
	return env.say("key %s of epoch %d replaces %s; restart the server to use it\n",
		next.ID(), next.Epoch, old.ID())
}

// rotateSigning rotates the signing key of the running server.
func (env *cliEnv) rotateSigning(ctx context.Context) error {
	c, err := env.connect()
	if err != nil {
		return err
	}
	defer c.Close()

	k, err := c.RotateSigningKey(ctx)
	if err != nil {
		return withExitCode(err)
	}
	return env.say("key %s of epoch %d replaces %s and is in use\n", k.ID, k.Epoch, k.Replaces)
}

// rotateAuthority begins or ends the rotation of the authority.
func (env *cliEnv) rotateAuthority(ctx context.Context, finish bool, confirm int) error {
	c, err := env.connect()
	if err != nil {
		return err
	}
	defer c.Close()

	var m client.AuthorityMove
	if !finish {
		if m, err = c.RotateAuthority(ctx); err != nil {
			return withExitCode(err)
		}
		if err := env.say("authority %s follows %s; %d host(s) move to it when they renew their "+
			"certificates: see gozzard key status\n", m.Next, m.Authority, len(m.Waiting)+len(m.Offline)); err != nil {
			return err
		}
		return env.sayWithout(m.Servers)
	}

	if m, err = c.FinishAuthority(ctx, confirm); err != nil {
		return withExitCode(err)
	}
	return env.say("authority %s is the only one; %d host(s) moved, %d cut off\n", m.Authority,
		m.Moved, len(m.Waiting)+len(m.Offline))
}

// sayWithout names the servers that do not have the next authority.
func (env *cliEnv) sayWithout(servers []string) error {
	if len(servers) == 0 {
		return nil
	}
	return env.say("%d server(s) get it when they run: %s\n", len(servers), strings.Join(servers, " "))
}
