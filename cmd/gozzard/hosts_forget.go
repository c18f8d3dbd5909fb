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

// newHostForgetCommand is `gozzard hosts forget`.
func newHostForgetCommand(env *cliEnv) *cobra.Command {
	return &cobra.Command{
		Use:   "forget HOST...",
		Short: "Forget hosts that will never come back",
		Long: `Take away hosts that will never come back: machines that are gone, or agents whose state was lost. The
processes of the host and their definitions go with it. Operations that wait for the host get their
verdict: what was not sent is not executed; of what was sent it is unknown whether it was done. Tasks,
events and the audit stay.

A host that is online cannot be forgotten. If it still exists, run "gozzard agent leave" on it. An
enrolled host is removed by this, so its agent id can never join again. A host of a server without
enrolment is a new host when its agent connects again.

This needs the role admin on all addresses of the host.

HOST is an agent id, a name or an address that only one host has, or cloud:ip.`,
		Example: "  gozzard hosts forget 0:10.0.0.2",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.withClient(func(c *client.Client) error { return env.forgetHosts(cmd.Context(), c, args) })
		},
	}
}

// forgetHosts forgets the named hosts. It forgets none when one of them is not found.
func (env *cliEnv) forgetHosts(ctx context.Context, c *client.Client, names []string) error {
	// Find all hosts before one is forgotten.
	all, err := allHosts(ctx, c)
	if err != nil {
		return err
	}
	hosts, err := withMembers(ctx, c, all)
	if err != nil {
		return err
	}
	agents := make([]gozzard.AgentID, 0, len(names))
	for _, name := range names {
		agent, err := findHost(hosts, name)
		if err != nil {
			return err
		}
		agents = append(agents, agent)
	}

	// Forget them.
	for _, agent := range agents {
		gone, err := c.ForgetHost(ctx, agent)
		if err != nil {
			return err
		}
		err = env.say("host %s is forgotten, with %d processes and %d waiting operations\n", gone.Agent, gone.Processes,
			gone.Operations)
		if err != nil {
			return err
		}
	}
	return nil
}

// findHost finds the one host with this agent id, address or name. An agent id that is not listed may be one that only has
// processes: the server decides.
func findHost(hosts []client.HostInfo, s string) (gozzard.AgentID, error) {
	h, err := parseHostFlag(s)
	if err != nil {
		return "", err
	}

	var found []gozzard.AgentID
	for i := range hosts {
		if hosts[i].Agent == h.Agent && h.Agent != "" {
			return h.Agent, nil
		}
		if strings.EqualFold(hosts[i].Hostname, string(h.Agent)) && h.Agent != "" {
			found = append(found, hosts[i].Agent)
			continue
		}
		has := func(a client.HostAddr) bool { return a.IP == h.IP && (h.Cloud == nil || *h.Cloud == a.Cloud) }
		if slices.ContainsFunc(hosts[i].Addrs, has) {
			found = append(found, hosts[i].Agent)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		if h.Agent != "" {
			return h.Agent, nil
		}
		return "", &exitError{exitNoMatch, fmt.Errorf("there is no host %s", printable(s))}
	}
	return "", usage("%d hosts have the address or name %s: use the agent id (gozzard hosts -o wide)", len(found), printable(s))
}
