package main

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
)

// completeTimeout is how long a shell waits for the server before it completes nothing.
const completeTimeout = 2 * time.Second

// completer is the type of cobra's functions that complete a value in a shell.
type completer = func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective)

// completeFlag sets how the value of a flag is completed.
func completeFlag(cmd *cobra.Command, flag string, f completer) {
	_ = cmd.RegisterFlagCompletionFunc(flag, f) // it fails only for a flag that does not exist
}

// completeFixed completes the value of a flag with one of a few words.
func completeFixed(cmd *cobra.Command, flag string, words ...string) {
	completeFlag(cmd, flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// completeNamespaces completes namespaces of processes.
func (env *cliEnv) completeNamespaces(cmd *cobra.Command, _ []string, prefix string) ([]string,
	cobra.ShellCompDirective) {
	return env.completeProcesses(cmd, client.ProcessQuery{Namespaces: []string{prefix + "*"}},
		func(p *client.Process, add func(string)) { add(p.Namespace) })
}

// completeLabels completes labels of processes as key=value.
func (env *cliEnv) completeLabels(cmd *cobra.Command, _ []string, prefix string) ([]string,
	cobra.ShellCompDirective) {
	return env.completeProcesses(cmd, client.ProcessQuery{}, func(p *client.Process, add func(string)) {
		for k, v := range p.Labels {
			if s := k + "=" + v; strings.HasPrefix(s, prefix) {
				add(s)
			}
		}
	})
}

// completeProcesses completes with words from the first page of the processes that match a query.
func (env *cliEnv) completeProcesses(cmd *cobra.Command, q client.ProcessQuery,
	words func(p *client.Process, add func(string))) ([]string, cobra.ShellCompDirective) {
	found := map[string]bool{}
	env.ask(cmd, func(ctx context.Context, c *client.Client) {
		page, err := c.Processes(ctx, q, 0, client.MaxPage)
		if err != nil {
			return // a shell has no place for errors
		}
		for i := range page.Processes {
			words(&page.Processes[i], func(s string) { found[printable(s)] = true })
		}
	})
	return slices.Sorted(maps.Keys(found)), cobra.ShellCompDirectiveNoFileComp
}

// completeHosts completes hosts: as cloud:ip, or as the IP address or the agent id that the caller began to type. The
// name of the host stands beside it.
func (env *cliEnv) completeHosts(cmd *cobra.Command, _ []string, prefix string) ([]string,
	cobra.ShellCompDirective) {
	var words []string
	env.ask(cmd, func(ctx context.Context, c *client.Client) {
		page, err := c.Hosts(ctx, 0, client.MaxPage)
		if err != nil {
			return // a shell has no place for errors
		}
		for i := range page.Hosts {
			h := &page.Hosts[i]
			for _, s := range hostForms(h, prefix) {
				words = append(words, cobra.CompletionWithDesc(printable(s), printable(h.Hostname)))
			}
		}
	})
	return words, cobra.ShellCompDirectiveNoFileComp
}

// hostForms are the ways to name a host that begin with a prefix. The address in its cloud is the usual one.
func hostForms(h *client.HostInfo, prefix string) (forms []string) {
	add := func(s string) bool {
		fits := strings.HasPrefix(s, prefix)
		if fits {
			forms = append(forms, s)
		}
		return fits
	}
	for _, a := range h.Addrs {
		_ = add(hostName(a.Cloud, a.IP, "")) || add(a.IP)
	}
	if len(forms) == 0 {
		add(string(h.Agent))
	}
	return forms
}

// ask connects to the server for a completion.
func (env *cliEnv) ask(cmd *cobra.Command, f func(context.Context, *client.Client)) {
	c, err := env.connect()
	if err != nil {
		return
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), completeTimeout)
	defer cancel()
	f(ctx, c)
}
