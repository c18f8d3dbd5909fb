package main

import (
	"bufio"
	"cmp"
	"context"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// completionTime limits how long a shell waits for the server.
const completionTime = 2 * time.Second

// value is something that can be completed, with a word about it.
type value struct{ text, about string }

// lister asks the server for the values that the caller may see.
type lister func(ctx context.Context, c *client.Client, at place) ([]value, error)

// place is where a value is completed.
type place struct {
	cmd    *cobra.Command
	args   []string // before it
	prefix string   // what is typed of it
}

// ask completes by what the server answers. Without an answer in time it completes nothing, and it prints no error:
// that would stand in the middle of the command line.
func (env *cliEnv) ask(list lister) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		quiet := *env
		quiet.errs = io.Discard
		c, err := quiet.connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer c.Close()

		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		values, err := list(ctx, c, place{cmd, args, prefix})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return completions(values, args, prefix), cobra.ShellCompDirectiveNoFileComp
	}
}

// obeyed are the characters that a shell obeys in a word without quotes. A shell inserts completions as they are.
const obeyed = "$&'()[]#*~;|<>\"`\\!{}^?"

// completions are the values that begin with what is typed, each once and without those before it. Texts are from
// elsewhere: one with characters that a terminal or a shell obeys is left out, because the shell would insert another
// text, or run a part of it.
func completions(values []value, before []string, prefix string) []cobra.Completion {
	seen := map[string]bool{}
	for _, b := range before {
		seen[b] = true
	}

	var out []cobra.Completion
	for _, v := range values {
		if v.text == "" || seen[v.text] || !strings.HasPrefix(v.text, prefix) || printable(v.text) != v.text ||
			strings.ContainsAny(v.text, obeyed) || v.text[0] == '-' {
			continue
		}
		seen[v.text] = true
		if v.about = printable(v.about); v.about != "" {
			v.text = cobra.CompletionWithDesc(v.text, v.about)
		}
		out = append(out, v.text)
	}
	slices.Sort(out)
	return out
}

// namedFlags are the flags that name something of the fleet.
func (env *cliEnv) namedFlags() map[string]cobra.CompletionFunc {
	return map[string]cobra.CompletionFunc{
		"host": env.ask(listHosts), "agent": env.ask(listHosts), "namespace": env.ask(listNamespaces),
		"biz": env.ask(listBusinesses), "cmdb-biz": env.ask(listBusinesses), "cloud": env.ask(listClouds),
		"set": env.ask(listSets), "module": env.ask(listModules),
		"app": env.ask(listApps), "for-app": env.ask(listApps), "user": env.ask(listUsers),
		"template": env.ask(listConfigs), "group": env.ask(listGroups), "account": env.ask(listAccounts), "label": env.ask(listLabels),
		"allow-user": localNames("/etc/passwd"), "default-user": localNames("/etc/passwd"),
	}
}

// specialFlags are flags of one command that mean something else there.
func (env *cliEnv) specialFlags() map[string]cobra.CompletionFunc {
	return map[string]cobra.CompletionFunc{
		"run env": cobra.NoFileCompletions, "run user": localNames("/etc/passwd"), "run proc-name": cobra.NoFileCompletions,
		"run group":          localNames("/etc/group"),
		"agent socket-group": localNames("/etc/group"),
		"agent cloud":        cobra.NoFileCompletions, "dev cloud": cobra.NoFileCompletions, "sim cloud": cobra.NoFileCompletions,
		"server cmdb-biz": cobra.NoFileCompletions, "dev cmdb-biz": cobra.NoFileCompletions,
	}
}

// argumentCompletion completes the arguments of a command by their words in its usage line.
func (env *cliEnv) argumentCompletion(c *cobra.Command) cobra.CompletionFunc {
	words := argumentWords(c.Use)
	if len(words) == 0 {
		return cobra.NoFileCompletions
	}

	path := strings.TrimPrefix(c.CommandPath(), "gozzard ")
	finds := make([]cobra.CompletionFunc, len(words))
	for i, w := range words {
		if finds[i] = env.argument(path, strings.Trim(w, "[].")); finds[i] == nil {
			return nil
		}
	}

	return func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		last := len(words) - 1
		if len(args) > last && !strings.Contains(words[last], "...") {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return finds[min(len(args), last)](cmd, args, prefix)
	}
}

// argumentWords are the words for arguments in a usage line: NAME, [NAME...] and so on. What follows a flag is its value.
func argumentWords(use string) (words []string) {
	fields := strings.Fields(use)
	for i, f := range fields {
		name := strings.Trim(f, "[].")
		if i > 0 && name != "" && name == strings.ToUpper(name) && name[0] >= 'A' && name[0] <= 'Z' &&
			(fields[i-1] == "--" || !strings.HasPrefix(fields[i-1], "-")) {
			words = append(words, f)
		}
	}
	return words
}

// argument is the completion of an argument; nil for one that nothing is known about.
func (env *cliEnv) argument(path, word string) cobra.CompletionFunc {
	group, _, _ := strings.Cut(path, " ")
	if find, ok := map[string]cobra.CompletionFunc{
		"user create NAME": cobra.NoFileCompletions, "app create CODE": cobra.NoFileCompletions, // new names
		"relays token NAME":      cobra.NoFileCompletions,
		"user token revoke ID":   env.ask(listUserTokens),
		"request approve DIGEST": cobra.NoFileCompletions, // the person must have read it
		"run COMMAND":            files, "run ARGUMENT": files,
	}[path+" "+word]; ok {
		return find
	}

	return map[string]cobra.CompletionFunc{
		"user NAME": env.ask(listUsers), "app CODE": env.ask(listApps), "hosts HOST": env.ask(listHosts),
		"release VERSION": env.ask(listReleases), "release FOLDER": folders, "topology BIZ": env.ask(listBusinesses),
		"backup FILE": files, "audit FILE": files, "audit ROW": env.ask(listAuditRows),
		"token ID": env.ask(listEnrolTokens), "relays RELAY": env.ask(listRelays), "notify RECEIVER": env.ask(listReceivers),
		"notify SUBSCRIPTION": env.ask(listSubscriptions), "notify NAME": cobra.NoFileCompletions, // new names
		"notify LETTER": env.ask(listDeadLetters), "request ID": env.ask(listRequests), "task ID": env.completeTasks,
		"man FOLDER": folders, "servers ID": env.ask(listServers), "config TEMPLATE": env.ask(listConfigs), "config JOB": cobra.NoFileCompletions,
	}[group+" "+word]
}

// completeNames completes the names of processes.
func (env *cliEnv) completeNames(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return env.ask(func(ctx context.Context, c *client.Client, at place) (out []value, err error) {
		page, err := c.Processes(ctx, client.ProcessQuery{Names: []string{at.prefix + "*"}}, 0, client.MaxPage)
		for i := range page.Processes {
			out = append(out, value{page.Processes[i].Name, page.Processes[i].Namespace})
		}
		return out, err
	})(cmd, args, prefix)
}

// completeNamespaces completes namespaces of processes.
func (env *cliEnv) completeNamespaces(cmd *cobra.Command, args []string, prefix string) ([]string,
	cobra.ShellCompDirective) {
	return env.ask(listNamespaces)(cmd, args, prefix)
}

// completeLabels completes labels of processes as key=value.
func (env *cliEnv) completeLabels(cmd *cobra.Command, args []string, prefix string) ([]string,
	cobra.ShellCompDirective) {
	return env.ask(listLabels)(cmd, args, prefix)
}

// completeHosts completes hosts: as cloud:ip, or as the IP address or the agent id that the caller began to type.
func (env *cliEnv) completeHosts(cmd *cobra.Command, args []string, prefix string) ([]string,
	cobra.ShellCompDirective) {
	return env.ask(listHosts)(cmd, args, prefix)
}

func listNamespaces(ctx context.Context, c *client.Client, at place) (out []value, err error) {
	page, err := c.Processes(ctx, client.ProcessQuery{Namespaces: []string{at.prefix + "*"}}, 0, client.MaxPage)
	for i := range page.Processes {
		out = append(out, value{page.Processes[i].Namespace, ""})
	}
	return out, err
}

func listLabels(ctx context.Context, c *client.Client, _ place) (out []value, err error) {
	page, err := c.Processes(ctx, client.ProcessQuery{}, 0, client.MaxPage)
	for i := range page.Processes {
		for key, text := range page.Processes[i].Labels {
			out = append(out, value{key + "=" + text, ""})
		}
	}
	return out, err
}

func listHosts(ctx context.Context, c *client.Client, at place) (out []value, err error) {
	page, err := c.Hosts(ctx, 0, client.MaxPage)
	for i := range page.Hosts {
		for _, form := range hostForms(&page.Hosts[i], at.prefix) {
			out = append(out, value{form, page.Hosts[i].Hostname})
		}
	}
	return out, err
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

func listClouds(ctx context.Context, c *client.Client, _ place) (out []value, err error) {
	page, err := c.Hosts(ctx, 0, client.MaxPage)
	for i := range page.Hosts {
		for _, a := range page.Hosts[i].Addrs {
			out = append(out, value{strconv.Itoa(a.Cloud), ""})
		}
	}
	return out, err
}

func listBusinesses(ctx context.Context, c *client.Client, _ place) (out []value, err error) {
	list, err := c.Businesses(ctx)
	for _, b := range list.Businesses {
		out = append(out, value{strconv.Itoa(b.ID), b.Name})
	}
	return out, err
}

// tree is the business that a command is about: that of --biz, or the only one.
func tree(ctx context.Context, c *client.Client, at place) (client.Tree, error) {
	biz := 0
	if f := at.cmd.Flags().Lookup("biz"); f != nil {
		biz, _ = strconv.Atoi(f.Value.String()) // a wrong one is 0
	}
	if biz == 0 {
		var err error
		if biz, err = onlyBusiness(ctx, c); err != nil {
			return client.Tree{}, err
		}
	}
	return c.Tree(ctx, biz, "")
}

func listSets(ctx context.Context, c *client.Client, at place) (out []value, err error) {
	t, err := tree(ctx, c, at)
	for _, s := range t.Sets {
		out = append(out, value{s.Name, "set " + strconv.Itoa(s.ID)})
	}
	return out, err
}

func listModules(ctx context.Context, c *client.Client, at place) (out []value, err error) {
	t, err := tree(ctx, c, at)
	for _, s := range t.Sets {
		for _, m := range s.Modules {
			out = append(out, value{m.Name, "set " + s.Name})
		}
	}
	return out, err
}

func listApps(ctx context.Context, c *client.Client, _ place) (out []value, err error) {
	list, err := c.Apps(ctx)
	for i := range list.Apps {
		out = append(out, value{list.Apps[i].Code, ""})
	}
	return out, err
}

func listUsers(ctx context.Context, c *client.Client, _ place) (out []value, err error) {
	page, err := c.Users(ctx, 0, client.MaxPage)
	for i := range page.Users {
		out = append(out, value{page.Users[i].Name, ""})
	}
	return out, err
}

func listUserTokens(ctx context.Context, c *client.Client, at place) (out []value, err error) {
	list, err := c.UserTokens(ctx, at.args[0])
	for _, t := range list.Tokens {
		out = append(out, value{t.ID, t.Note})
	}
	return out, err
}

func listGroups(ctx context.Context, c *client.Client, _ place) (out []value, err error) {
	list, err := c.Grants(ctx)
	for i := range list.Grants {
		out = append(out, value{list.Grants[i].Group, list.Grants[i].Grant.Role})
	}
	return out, err
}

func listAccounts(ctx context.Context, c *client.Client, _ place) (out []value, err error) {
	list, err := c.Grants(ctx)
	for i := range list.Grants {
		for _, a := range list.Grants[i].Grant.Accounts {
			out = append(out, value{a, ""})
		}
	}
	return out, err
}

func listReleases(ctx context.Context, c *client.Client, _ place) (out []value, err error) {
	list, err := c.Releases(ctx)
	for i := range list {
		out = append(out, value{list[i].Version, ""})
	}
	return out, err
}

func listServers(ctx context.Context, c *client.Client, _ place) (out []value, err error) {
	list, err := c.Servers(ctx)
	for i := range list.Servers {
		out = append(out, value{list.Servers[i].ID, list.Servers[i].Name})
	}
	return out, err
}

func listEnrolTokens(ctx context.Context, c *client.Client, _ place) (out []value, err error) {
	list, err := c.EnrolTokens(ctx)
	for i := range list {
		out = append(out, value{list[i].ID, list[i].State})
	}
	return out, err
}

func listRelays(ctx context.Context, c *client.Client, _ place) (out []value, err error) {
	list, err := c.Relays(ctx)
	for i := range list.Relays {
		out = append(out, value{list.Relays[i].ID, list.Relays[i].Name})
	}
	return out, err
}

func listReceivers(ctx context.Context, c *client.Client, _ place) (out []value, err error) {
	list, err := c.Receivers(ctx)
	for i := range list.Receivers {
		out = append(out, value{list.Receivers[i].ID, list.Receivers[i].Name})
	}
	return out, err
}

func listSubscriptions(ctx context.Context, c *client.Client, _ place) (out []value, err error) {
	list, err := c.Subscriptions(ctx)
	for i := range list.Subscriptions {
		out = append(out, value{list.Subscriptions[i].ID, list.Subscriptions[i].Name})
	}
	return out, err
}

func listDeadLetters(ctx context.Context, c *client.Client, _ place) (out []value, err error) {
	list, err := c.DeadLetters(ctx)
	for i := range list.DeadLetters {
		out = append(out, value{strconv.FormatInt(list.DeadLetters[i].ID, 10), list.DeadLetters[i].Title})
	}
	return out, err
}

func listRequests(ctx context.Context, c *client.Client, _ place) (out []value, err error) {
	list, err := c.Requests(ctx)
	for i := range list {
		if list[i].State == "waiting" {
			out = append(out, value{strconv.FormatInt(list[i].ID, 10), list[i].What})
		}
	}
	return out, err
}

func listAuditRows(ctx context.Context, c *client.Client, _ place) (out []value, err error) {
	page, err := c.FindAudit(ctx, gozzard.AuditFilter{}, 20)
	for i := range page.Rows {
		out = append(out, value{strconv.FormatInt(page.Rows[i].Seq, 10), page.Rows[i].Act})
	}
	return out, err
}

// localNames completes accounts or groups of this host.
func localNames(file string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		f, err := os.Open(file)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer f.Close()

		var values []value
		for s := bufio.NewScanner(f); s.Scan() && len(values) < client.MaxPage; {
			name, _, _ := strings.Cut(s.Text(), ":")
			values = append(values, value{cmp.Or(name, "#"), ""})
		}
		return completions(values, nil, prefix), cobra.ShellCompDirectiveNoFileComp
	}
}
