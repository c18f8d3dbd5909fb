package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
)

// newHostsCommand is `gozzard hosts`.
func newHostsCommand(env *cliEnv) *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "hosts",
		Short: "List the hosts of the fleet",
		Long: `List every host that ever reported, by cloud and address, with what is missing on it. Enrolled hosts
that never connected are listed too.

  TRUST    active, pending (waits for approval), quarantined, revoked, or restored (excluded because
           the record was restored from a backup, see "gozzard hosts confirm-restore")
  FLAG     the agent sent too much or unreadable data; until when its messages are ignored
  CLOCK    how far the clock of the host is from the server's, if that is 5 seconds or more: schedules run
           at another time than you expect, and events and logs do not fit together
  LOAD     with -o wide: load average of the last minute for each processor; above 1, programs wait
  FREE     with -o wide: memory that programs could still get
  MODE     with -o wide: root; cap, commands of other accounts without the other powers of root;
           user, commands of the agent's account only
  MISSING  with -o wide: what the agent cannot do on this host, and why`,
		Example: `  gozzard hosts
  gozzard hosts -o wide
  gozzard hosts -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return env.hosts(cmd.Context(), &output)
		},
	}

	output.register(cmd, cmd.Flags(), "table", "wide", "json", "yaml")
	cmd.AddCommand(newHostMemberCommands(env)...)
	cmd.AddCommand(newHostAddressCommand(env), newHostForgetCommand(env), newHostRestartCommand(env),
		newConfirmRestoreCommand(env))
	return cmd
}

// hosts prints all hosts.
func (env *cliEnv) hosts(ctx context.Context, output *outputFlag) error {
	if err := output.check(); err != nil {
		return err
	}

	c, err := env.connect()
	if err != nil {
		return err
	}
	defer c.Close()

	// Read all pages.
	all := client.HostPage{Hosts: []client.HostInfo{}}
	for {
		page, err := c.Hosts(ctx, len(all.Hosts), client.MaxPage)
		if err != nil {
			return withExitCode(err)
		}
		all.Hosts = append(all.Hosts, page.Hosts...)
		all.Count, all.RestoredFrom = page.Count, page.RestoredFrom
		if len(page.Hosts) < client.MaxPage {
			break
		}
	}

	if output.structured() {
		return output.write(env.out, all)
	}

	// Add the hosts that never connected, and print the table.
	hosts, err := withMembers(ctx, c, all.Hosts)
	if err != nil {
		return withExitCode(err)
	}
	if !all.RestoredFrom.IsZero() {
		env.remark("the record was restored from a backup of %s: hosts cannot connect until an admin runs "+
			"\"gozzard hosts confirm-restore\"", all.RestoredFrom.Format(time.RFC3339))
	}
	if len(hosts) == 0 {
		env.remark("no hosts to show; a host joins with: gozzard agent join")
		return nil
	}

	return env.hostTable(hosts, output.format == "wide").write(env.out)
}

// hostTable is the table of hosts. It has the columns TRUST and FLAG when a host has a value for them.
func (env *cliEnv) hostTable(hosts []client.HostInfo, wide bool) *textTable {
	// Choose the columns.
	header := []string{"HOST", "ONLINE", "SEEN", "NAME", "SYSTEM", "AGENT VERSION"}
	enrolled := slices.ContainsFunc(hosts, func(h client.HostInfo) bool { return h.Trust != "" })
	if enrolled {
		header = append(header, "TRUST")
	}

	flagged := slices.ContainsFunc(hosts, func(h client.HostInfo) bool { return h.Flag != "" })
	if flagged {
		header = append(header, "FLAG")
	}
	skewed := wide || slices.ContainsFunc(hosts, func(h client.HostInfo) bool { return isSkewed(h.ClockSkew) })
	if skewed {
		header = append(header, "CLOCK")
	}
	if wide {
		header = append(header, "LOAD", "FREE", "AGENT", "MODE", "POLICY", "OTHER ADDRESSES", "MISSING")
	}

	// Add a row for each host.
	t := newTable(header...)
	for i := range hosts {
		h := &hosts[i]
		addrs := make([]string, 0, len(h.Addrs))
		for _, a := range h.Addrs {
			addrs = append(addrs, hostName(a.Cloud, a.IP, ""))
		}
		if len(addrs) == 0 {
			addrs = []string{string(h.Agent)}
		}
		seen := "never"
		if !h.LastSeen.IsZero() {
			seen = shortDuration(env.now().Sub(h.LastSeen.Time)) + " ago"
		}
		system := h.OS + "/" + h.Arch
		if h.OS == "" {
			system = ""
		}
		cells := []string{addrs[0], yesNo(h.Online), seen, h.Hostname, system, h.Version}
		if enrolled {
			cells = append(cells, h.Trust)
		}
		if flagged {
			cells = append(cells, h.Flag)
		}
		if skewed {
			cells = append(cells, skewText(h.ClockSkew, wide))
		}
		if wide {
			cells = append(cells, loadText(h.Load), freeText(h.MemFree), string(h.Agent), h.Mode, shortDigest(h.PolicyDigest), strings.Join(addrs[1:], ","),
				env.joinSaid(h.Degraded))
		}
		t.add(cells...)
	}

	return t
}

// shortDigest is the beginning of the digests of a policy and a release key: enough to compare hosts by eye.
func shortDigest(digest string) string {
	parts := strings.Split(digest, "/")
	for i, p := range parts {
		parts[i] = p[:min(len(p), 12)]
	}
	return strings.Join(parts, "/")
}
