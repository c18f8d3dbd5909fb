package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// newHostMemberCommands are `gozzard hosts approve`, `revoke` and `remove`: they change the membership of hosts.
func newHostMemberCommands(env *cliEnv) []*cobra.Command {
	list := make([]*cobra.Command, 0, 3)
	for _, c := range []struct{ use, state, short, long string }{
		{"approve", "active", "Approve hosts that wait for approval or are in quarantine",
			`Approve hosts that joined with a token made with --approve, or that are in quarantine. An agent gets
into quarantine when two programs run with its identity, or when it shows a certificate that was
already replaced: its state folder was copied. Find the copy and remove it first. Otherwise the
agent is in quarantine again after a moment.

An enroller may approve a host that waits for its first approval. A quarantine is lifted only by an
admin of all addresses of the host.`},
		{"revoke", "revoked", "Revoke hosts and close their connections",
			`Exclude hosts from the fleet. Their connections are closed at once, and new ones are rejected. Their
processes keep running. A revoked host can join again only with a token that an admin made for it:
gozzard token create --agent ID. Its addresses stay reserved: only a token of an admin can enrol
another host with one of them.`},
		{"remove", "removed", "Remove hosts for ever",
			`Exclude hosts for ever. This is like revoke, and the agent id can never join again. A host that is
set up again joins as a new agent. The server forgets the host: its processes and their definitions
are no longer listed, and operations that wait for it get their verdict. Processes that run on the
host keep running.`},
	} {
		list = append(list, &cobra.Command{
			Use: c.use + " HOST...", Short: c.short, Long: c.long +
				"\n\nHOST is an agent id, a name or an address that only one enrolled host has, or cloud:ip.",
			Example: "  gozzard hosts " + c.use + " 0:10.0.0.2", Args: cobra.MinimumNArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				return env.setMemberState(cmd.Context(), args, c.state)
			},
		})
	}

	return list
}

// newHostAddressCommand is `gozzard hosts address`.
func newHostAddressCommand(env *cliEnv) *cobra.Command {
	var change client.MemberAddrsChange
	cmd := &cobra.Command{
		Use:   "address HOST",
		Short: "Change the addresses of an enrolled host",
		Long: `Add addresses to an enrolled host, or remove some. A host has the addresses that it enrolled with,
and at most 16. What its agent reports beyond them is not used, and joining again does not change
them. This command is the only way to change them. It needs the role admin on all addresses of the
host and on the new ones. The change applies at once and is in the audit.

HOST is an agent id, a name or an address that only one enrolled host has, or cloud:ip.`,
		Example: `  gozzard hosts address 0:10.0.0.2 --add 10.0.0.12
  gozzard hosts address 0:10.0.0.2 --add 10.0.0.12 --remove 10.0.0.2`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(change.Add)+len(change.Remove) == 0 {
				return usage("give --add or --remove")
			}
			return env.withClient(func(c *client.Client) error {
				members, err := c.Members(cmd.Context())
				if err != nil {
					return err
				}
				agent, err := findMember(members, args[0])
				if err != nil {
					return err
				}
				m, err := c.ChangeMemberAddrs(cmd.Context(), agent, change)
				if err != nil {
					return err
				}
				return env.say("agent %s has the addresses %s\n", m.Agent, words(m.IPs))
			})
		},
	}

	f := cmd.Flags()
	f.StringSliceVar(&change.Add, "add", nil, "IP addresses that the host gets")
	f.StringSliceVar(&change.Remove, "remove", nil, "IP addresses that the host loses")
	return cmd
}

// setMemberState changes the state of the named hosts. It changes none when one of them is not found.
func (env *cliEnv) setMemberState(ctx context.Context, hosts []string, state string) error {
	c, err := env.connect()
	if err != nil {
		return err
	}
	defer c.Close()

	// Find all hosts before one is changed.
	members, err := c.Members(ctx)
	if err != nil {
		return withExitCode(err)
	}

	agents := make([]gozzard.AgentID, 0, len(hosts))
	for _, h := range hosts {
		id, err := findMember(members, h)
		if err != nil {
			return err
		}
		agents = append(agents, id)
	}

	// Change them.
	for _, id := range agents {
		m, err := c.SetMember(ctx, id, state)
		if err != nil {
			return withExitCode(err)
		}
		if err := env.say("agent %s is %s\n", m.Agent, m.State); err != nil {
			return err
		}
	}

	return nil
}

// withMembers adds the enrolled hosts that never reported, and drops the hosts that were removed.
func withMembers(ctx context.Context, c *client.Client, hosts []client.HostInfo) ([]client.HostInfo, error) {
	members, err := c.Members(ctx)
	if gozzard.KindOf(err) == gozzard.ErrNotFound && err != nil { // the server has no enrolment
		return hosts, nil
	}
	if err != nil {
		return nil, err
	}

	seen := make(map[gozzard.AgentID]bool, len(hosts))
	for i := range hosts {
		seen[hosts[i].Agent] = true
	}

	for _, m := range members {
		if seen[m.Agent] {
			continue
		}
		h := client.HostInfo{Agent: m.Agent, Hostname: m.Hostname, Trust: m.State}
		for _, ip := range m.IPs {
			h.Addrs = append(h.Addrs, client.HostAddr{Cloud: m.Cloud, IP: ip})
		}
		hosts = append(hosts, h)
	}

	return slices.DeleteFunc(hosts, func(h client.HostInfo) bool { return h.Trust == "removed" }), nil
}

// findMember finds the one enrolled host with this agent id, address or name.
func findMember(members []client.Member, s string) (gozzard.AgentID, error) {
	h, err := parseHostFlag(s)
	if err != nil {
		return "", err
	}

	var found []gozzard.AgentID
	for _, m := range members {
		if m.Agent == h.Agent && h.Agent != "" {
			return m.Agent, nil
		}
		byIP := h.IP != "" && slices.Contains(m.IPs, h.IP) && (h.Cloud == nil || *h.Cloud == m.Cloud) &&
			m.State != "removed"
		byName := h.Agent != "" && strings.EqualFold(m.Hostname, string(h.Agent)) && m.State != "removed"
		if byIP || byName {
			found = append(found, m.Agent)
		}
	}

	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", &exitError{exitNoMatch, fmt.Errorf("there is no enrolled host %s", printable(s))}
	}

	return "", usage("%d enrolled hosts have the address or name %s: use the agent id (gozzard hosts -o wide)", len(found),
		printable(s))
}
