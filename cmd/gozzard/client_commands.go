package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"sync"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/language"
)

// cliEnv is the environment of a command that calls a server: its outputs, and how it finds the server.
type cliEnv struct {
	out      io.Writer // data
	errs     io.Writer // progress and notes
	terminal bool      // errs is a terminal
	screen   bool      // out is a terminal
	lookup   func(string) (string, bool)
	now      func() time.Time
	size     func() (width, height int) // of the terminal
	chinese  *language.Catalogue        // nil means English
	verdicts func() *language.Catalogue // of agents and the server; used only if chinese is there

	url         string
	credentials string
	ca          string // the authority of the server: the one of --ca-file, or else the one that connect found
}

// addClientCommands adds the commands that call a server or work on its data folder.
func addClientCommands(root *cobra.Command, chinese *language.Catalogue) {
	env := &cliEnv{
		out: os.Stdout, errs: os.Stderr, lookup: os.LookupEnv, now: time.Now, size: terminalSize, chinese: chinese,
		verdicts: sync.OnceValue(language.Verdicts),
		terminal: isatty.IsTerminal(os.Stderr.Fd()) && os.Getenv("TERM") != "dumb",
		screen:   isatty.IsTerminal(os.Stdout.Fd()) && os.Getenv("TERM") != "dumb",
	}
	root.AddGroup(&cobra.Group{ID: groupWatch, Title: "Show what is running:"},
		&cobra.Group{ID: groupOperate, Title: "Operate processes:"},
		&cobra.Group{ID: groupAccess, Title: "Manage access:"},
		&cobra.Group{ID: groupUpgrade, Title: "Keep the fleet up to date:"})
	root.AddCommand(env.clientCommands()...)
	root.AddCommand(newBackupCommand(env), newRecordCommand(env), newDoctorCommand(env), newVersionCommand(env), newManCommand())
	addCompletion(env, root)
}

// The groups of commands in the help of the program.
const (
	groupWatch   = "watch"
	groupOperate = "operate"
	groupAccess  = "access"
	groupUpgrade = "upgrade"
)

// clientCommands are the commands that call a server, with the flags that they share.
func (env *cliEnv) clientCommands() []*cobra.Command {
	groups := []struct {
		id       string
		commands []*cobra.Command
	}{
		{groupWatch, []*cobra.Command{newPsCommand(env), newStatusCommand(env), newShowCommand(env), newTasksCommand(env), newTaskCommand(env),
			newHostsCommand(env), newServersCommand(env), newRelaysCommand(env), newEventsCommand(env), newNotifyCommand(env), newLogsCommand(env), newChartCommand(env), newTopCommand(env),
			newTopologyCommand(env), newConsoleCommand(env),
			newAuditCommand(env)}},
		{groupOperate, append(newOperateCommands(env), newRunCommand(env), newRegisterCommand(env), newImportCommand(env), newEditCommand(env), newDiffCommand(env), newUnregisterCommand(env), newFileCommand(env), newConfigCommand(env), newDemoCommand(env))},
		{groupAccess, []*cobra.Command{newTokenCommand(env), newAppCommand(env), newUserCommand(env),
			newGrantCommand(env), newRequestCommand(env), newKeyCommand(env)}},
		{groupUpgrade, []*cobra.Command{newReleaseCommand(env), newConformCommand(env)}},
	}

	var all []*cobra.Command
	for _, g := range groups {
		for _, c := range g.commands {
			c.GroupID = g.id
		}
		all = append(all, g.commands...)
	}

	for _, c := range all {
		f := c.Flags()
		if c.HasSubCommands() {
			f = c.PersistentFlags()
		}
		f.StringVar(&env.url, "url", "", "`URL` of the server ($GOZZARD_URL; else the one in the credentials file)")
		f.StringVar(&env.credentials, "credentials", "",
			"JSON `FILE` with url, bk_app_code, bk_app_secret, bk_username "+
				"($GOZZARD_CREDENTIALS; else those of a server on this machine)")
	}

	return all
}

// usage is an error about flags, arguments or documents. It has the exit code 2.
func usage(format string, args ...any) error {
	return &exitError{exitUsage, withLists(fmt.Errorf(format, args...), format, args)}
}

// remark prints a note that is not data, on stderr.
func (env *cliEnv) remark(format string, args ...any) {
	text := env.text(format, args...)
	if format == "%s" { // a finished text
		text = env.chinese.Message(text)
	}
	_, _ = fmt.Fprintln(env.errs, text) // stderr may be closed
}

// parseHostFlag reads a value of --host: cloud:ip, an IP address, a host name, or an agent id. The server knows the
// names: it takes one for an agent id.
func parseHostFlag(s string) (client.Host, error) {
	if ip, err := gozzard.ParseIP(s); err == nil {
		return client.Host{IP: ip.String()}, nil
	}
	if a, err := gozzard.ParseHostAddr(s); err == nil {
		return client.Host{Cloud: &a.Cloud, IP: a.IP.String()}, nil
	}
	if hostNamePattern.MatchString(s) {
		return client.Host{Agent: gozzard.AgentID(s)}, nil
	}
	return client.Host{}, usage("--host %q: use cloud:ip such as 0:10.0.0.1, an IP address, a host name or an agent id", s)
}

// hostNamePattern is the form of host names and agent ids.
var hostNamePattern = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,252}$`)

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
