package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// newTokenCommand is `gozzard token`.
func newTokenCommand(env *cliEnv) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Manage the tokens that hosts join with",
		Long: `A host joins the fleet with a token ("gozzard agent join"). A token is shown once; the server stores
a digest. If you revoke a token, hosts that joined with it stay members: use "gozzard hosts revoke"
to exclude them.`,
	}
	cmd.AddCommand(newTokenCreateCommand(env), newTokenListCommand(env), newTokenRevokeCommand(env))
	return cmd
}

// newTokenCreateCommand is `gozzard token create`.
func newTokenCreateCommand(env *cliEnv) *cobra.Command {
	var output outputFlag
	var request client.EnrolTokenRequest
	var ttl time.Duration
	var agent string
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create a token and print it",
		Long: `Create a token and print it alone on one line. With it anyone can join as many hosts as it has uses,
so keep it in a file that only its owner can read.

With --cidr a host must connect from one of the networks, and its addresses must be in them. With
--approve a host that joins waits until an admin or an enroller approves it. With --agent the token
is for one agent that was enrolled before and lost its key, or was quarantined or revoked: it
becomes a member again with the addresses that it had, and its old certificates are invalid. This
needs the role admin on all addresses of the agent.

A token is valid only as long as its creator could create it. It ends when the creator loses the
right, is disabled or is deleted.`,
		Example: `  gozzard token create > token
  gozzard token create --ttl 8h --uses 200 --cloud 3 --cidr 10.3.0.0/16 --approve`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := output.check(); err != nil {
				return err
			}
			if request.Uses < 1 {
				return usage("--uses %d: use 1 or more", request.Uses)
			}

			c, err := env.connect()
			if err != nil {
				return err
			}
			defer c.Close()

			request.TTL, request.Agent = ttl.String(), gozzard.AgentID(agent)
			t, err := c.CreateEnrolToken(cmd.Context(), request)
			if err != nil {
				err = withFlags(err, map[string]string{"ttl": "--ttl", "uses": "--uses", "cloud": "--cloud", "cidrs": "--cidr",
					"cidr": "--cidr", "agent": "--agent"})
				return withExitCode(errors.Join(err, env.printHeldToken(err)))
			}
			if output.structured() {
				return output.write(env.out, t)
			}

			env.remark("valid until %s, for %d host(s) of cloud %d", t.Expires.Format(time.RFC3339), t.Uses, t.Cloud)
			return checkWrite(fmt.Fprintln(env.out, t.Token))
		},
	}

	f := cmd.Flags()
	f.DurationVar(&ttl, "ttl", time.Hour, "how long the token is valid")
	f.IntVar(&request.Uses, "uses", 1, "number of hosts that can join with it")
	f.IntVar(&request.Cloud, "cloud", 0, "cloud area of the hosts")
	f.StringSliceVar(&request.CIDRs, "cidr", nil, "networks that the hosts must connect from and have their addresses in")
	f.BoolVar(&request.Approve, "approve", false, "hosts wait until an admin or an enroller approves them")
	f.StringVar(&agent, "agent", "", "only this agent, which was enrolled before, can join; it keeps its addresses")
	output.register(cmd, f, "table", "json", "yaml")
	return cmd
}

// printHeldToken prints a token that is valid when a second person has approved it.
func (env *cliEnv) printHeldToken(err error) error {
	var held *client.Held
	if !errors.As(err, &held) || held.Token == "" {
		return nil
	}
	return checkWrite(fmt.Fprintln(env.out, held.Token))
}

// newTokenListCommand is `gozzard token list`.
func newTokenListCommand(env *cliEnv) *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the tokens, newest first",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := output.check(); err != nil {
				return err
			}

			c, err := env.connect()
			if err != nil {
				return err
			}
			defer c.Close()

			list, err := c.EnrolTokens(cmd.Context())
			if err != nil {
				return withExitCode(err)
			}
			if output.structured() {
				return output.write(env.out, map[string]any{"tokens": list})
			}

			t := newTable("ID", "STATE", "EXPIRES", "USED", "CLOUD", "FROM", "BY")
			for _, k := range list {
				from := strings.Join(k.CIDRs, ",")
				if k.Agent != "" {
					from = "agent " + string(k.Agent)
				}
				t.add(k.ID, k.State, k.Expires.Format(time.RFC3339), fmt.Sprintf("%d/%d", k.Used, k.Uses),
					strconv.Itoa(k.Cloud), from, k.CreatedBy)
			}

			return t.write(env.out)
		},
	}

	output.register(cmd, cmd.Flags(), "table", "json", "yaml")
	return cmd
}

// newTokenRevokeCommand is `gozzard token revoke`.
func newTokenRevokeCommand(env *cliEnv) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke ID...",
		Short: "Revoke tokens",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := env.connect()
			if err != nil {
				return err
			}
			defer c.Close()
			var errs []error
			for _, id := range args {
				if err := c.RevokeEnrolToken(cmd.Context(), id); err != nil {
					errs = append(errs, fmt.Errorf("token %s: %w", id, err))
				}
			}
			return withExitCode(errors.Join(errs...))
		},
	}
}
