package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// cliEnv is the world of a command that talks to a server: where it reads and writes, and how it finds the server.
type cliEnv struct {
	out      io.Writer // data
	errs     io.Writer // progress and remarks
	terminal bool      // errs is a terminal
	screen   bool      // out is a terminal
	lookup   func(string) (string, bool)
	now      func() time.Time

	url         string
	credentials string
	ca          string // of the server that was connected to
}

// addClientCommands adds the commands that talk to a server.
func addClientCommands(root *cobra.Command) {
	env := &cliEnv{
		out: os.Stdout, errs: os.Stderr, lookup: os.LookupEnv, now: time.Now,
		terminal: isatty.IsTerminal(os.Stderr.Fd()) && os.Getenv("TERM") != "dumb",
		screen:   isatty.IsTerminal(os.Stdout.Fd()) && os.Getenv("TERM") != "dumb",
	}
	root.AddGroup(&cobra.Group{ID: groupWatch, Title: "Show what is running:"},
		&cobra.Group{ID: groupDrive, Title: "Operate processes:"},
		&cobra.Group{ID: groupEnter, Title: "Manage access:"},
		&cobra.Group{ID: groupKeep, Title: "Keep the fleet up to date:"})
	root.AddCommand(env.clientCommands()...)
	root.AddCommand(newKeyCommand(env), newBackupCommand(env), newServerDoctorCommand(env), newVersionCommand(env))
}

const (
	groupWatch = "watch"
	groupDrive = "drive"
	groupEnter = "enter"
	groupKeep  = "keep"
)

func (env *cliEnv) clientCommands() []*cobra.Command {
	watch := []*cobra.Command{newPsCommand(env), newStatusCommand(env), newTaskCommand(env), newHostsCommand(env),
		newEventsCommand(env), newLogsCommand(env),
		newTopologyCommand(env), newAuditCommand(env)}
	drive := append([]*cobra.Command{newRegisterCommand(env), newUnregisterCommand(env)}, newOperateCommands(env)...)
	enter := []*cobra.Command{newTokenCommand(env), newAppCommand(env), newUserCommand(env), newGrantCommand(env)}
	keep := newReleaseCommand(env)
	keep.GroupID = groupKeep
	for _, c := range enter {
		c.GroupID = groupEnter
	}

	for _, c := range watch {
		c.GroupID = groupWatch
	}

	for _, c := range drive {
		c.GroupID = groupDrive
	}

	all := append(append(append(watch, drive...), enter...), keep)
	for _, c := range all {
		f := c.Flags()
		if c.HasSubCommands() {
			f = c.PersistentFlags()
		}
		f.StringVar(&env.url, "url", "", "`URL` of the server ($GOZZARD_URL; else the one in the credentials file)")
		f.StringVar(&env.credentials, "credentials", "",
			"JSON `FILE` with url, bk_app_code, bk_app_secret, bk_username ($GOZZARD_CREDENTIALS; else ./data/dev.json)")
	}

	return all
}

// usage is an error of the caller's.
func usage(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// remark says something that is not data.
func (env *cliEnv) remark(format string, args ...any) {
	_, _ = fmt.Fprintf(env.errs, format+"\n", args...) // who has closed stderr does not want to know
}

// parseHostFlag reads --host: cloud:ip, an address, or an agent id.
func parseHostFlag(s string) (client.Host, error) {
	if ip, err := gozzard.ParseIP(s); err == nil {
		return client.Host{IP: ip.String()}, nil
	}
	if a, err := gozzard.ParseHostAddr(s); err == nil {
		return client.Host{Cloud: &a.Cloud, IP: a.IP.String()}, nil
	}
	if id := gozzard.AgentID(s); id.Validate() == nil {
		return client.Host{Agent: id}, nil
	}
	return client.Host{}, usage("--host %q: use cloud:ip such as 0:10.0.0.1, an IP address, or an agent id", s)
}

func parseHostFlags(list []string) ([]client.Host, error) {
	hosts := make([]client.Host, 0, len(list))
	for _, s := range list {
		h, err := parseHostFlag(s)
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, h)
	}
	return hosts, nil
}

// completeNames offers the names of processes to the shell.
func (env *cliEnv) completeNames(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	c, err := env.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}

	ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
	defer cancel()
	page, err := c.Processes(ctx, client.ProcessQuery{Names: []string{prefix + "*"}}, 0, client.MaxPage)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}

	seen := map[string]bool{}
	var names []string
	for _, p := range page.Processes {
		if !seen[p.Name] {
			seen[p.Name] = true
			names = append(names, cobra.CompletionWithDesc(printable(p.Name), printable(p.Namespace)))
		}
	}

	return names, cobra.ShellCompDirectiveNoFileComp
}
