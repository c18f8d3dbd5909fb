package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/internal/agentd"
	"github.com/gozzard/gozzard/internal/server"
)

// newDevCommand is `gozzard dev`.
func newDevCommand() *cobra.Command {
	var o server.DevOptions
	var logs logFlags
	var demo bool
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a server and agents in one process, to try Gozzard",
		Long: `Run a server and agents in one process. The agents have the addresses 127.0.0.1, 127.0.0.2 and so
on, and a separate state folder each. The processes that they start are real.

DIR/dev.json has the URL and the credentials, readable by its owner only. "gozzard ps" in the same
folder finds this file by itself. Ctrl-C ends gozzard; your processes keep running, and the next
"gozzard dev" finds them again.

With --demo there is something to look at: a business with small processes, some of which crash or
are unhealthy. "gozzard demo remove" removes it again.`,
		Example: `  gozzard dev
  gozzard dev --demo
  gozzard dev --data /tmp/fleet --listen 127.0.0.1:9090 --hosts 3`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := agentd.Supported(); err != nil {
				return failed(err)
			}
			if err := applySettings(cmd); err != nil {
				return err
			}
			if demo && !cmd.Flags().Changed("hosts") {
				o.Hosts = demoHosts
			}
			if demo && o.Hosts < demoHosts {
				return fmt.Errorf("--hosts %d: --demo needs %d or more", o.Hosts, demoHosts)
			}
			if o.Hosts < 1 || o.Hosts > 250 {
				return fmt.Errorf("--hosts %d: use 1 to 250", o.Hosts)
			}
			if o.Cloud < 0 {
				return fmt.Errorf("--cloud %d: use 0 or more", o.Cloud)
			}

			log, err := logs.logger(os.Stderr)
			if err != nil {
				return err
			}

			o.Version, o.Log, o.Fatal, o.Check = version, log, fatal(log), selfCheck(&o.Options)
			var left atomic.Int64
			o.NewAgent = func(h server.DevHost) (server.Part, error) { return newDevAgent(&o, h, &left) }
			o.Ready = func(at server.DevAddress) error {
				err := printReady(cmd.Context(), o.Hosts, at)
				if err == nil && demo {
					err = printDemo(cmd.Context(), at.Credentials, o.Cloud)
				}
				return err
			}
			unsaid := sayEnding(cmd.Context(), os.Stderr)
			err = server.RunDev(cmd.Context(), o)
			if !unsaid() && err == nil {
				sayEnd(cmd.Context(), os.Stderr, "%s", processesLeft(int(left.Load())))
			}
			return failed(unlessSignalled(cmd.Context(), log, err))
		},
	}

	f := cmd.Flags()
	f.StringVar(&o.Data, "data", "./data", "folder for all state of this fleet")
	f.StringVar(&o.Listen, "listen", "127.0.0.1:8080", "address of the API")
	f.IntVar(&o.Hosts, "hosts", 1, "number of hosts (with --demo: 3)")
	f.BoolVar(&demo, "demo", false, "make a business with a few small processes to look at, unless it is there")
	f.IntVar(&o.Cloud, "cloud", 0, "cloud area of the hosts")
	f.DurationVar(&o.Interval, "report-interval", 30*time.Second, "how often each agent sends a full report")
	f.BoolVar(&o.NewRecord, "new-record", false, newRecordHelp)
	registerCMDB(f, &o.CMDB)
	logs.register(cmd, "warn")
	return cmd
}

// sayEnding prints that gozzard ends as soon as a signal ends ctx: the end may take some seconds, and people wonder what
// becomes of their processes. unsaid takes it back, and reports whether there was no signal.
func sayEnding(ctx context.Context, w io.Writer) (unsaid func() bool) {
	said := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(said)
		start := ""
		if isTerminal(w) {
			start = "\n" // behind ^C
		}
		_, _ = fmt.Fprintln(w, start+textIn(ctx, "gozzard dev ends: the server and its agents stop, your processes keep running")) // w may be closed
	})

	return func() bool {
		if stop() {
			return true
		}
		<-said
		return false
	}
}

// newDevAgent makes the agent of one host of `gozzard dev`. At its end it adds what it leaves running to left.
func newDevAgent(o *server.DevOptions, h server.DevHost, left *atomic.Int64) (server.Part, error) {
	return agentd.New(agentd.Options{
		Data: h.Data, Version: version, IPs: []string{h.IP}, Cloud: h.Cloud,
		Broker: h.Broker, Secret: h.Secret, ServerKey: h.ServerKey,
		Policy: agentd.NoPolicy(), Sample: 5 * time.Second, Fatal: o.Fatal, Log: h.Log,
		Left: func(running int) { left.Add(int64(running)) },
	})
}

// printReady prints where the server is and what to try next.
func printReady(ctx context.Context, hosts int, at server.DevAddress) error {
	err := checkWrite(fmt.Print(textIn(ctx, "gozzard serves %d host(s) at %s\ncredentials:  %s\ntry:          %s\n", hosts,
		at.URL, at.Credentials, exampleCommand(at.Credentials, "ps"))))
	if err != nil {
		return err
	}
	warnOtherServer(ctx, os.Stderr, at.Credentials)
	if at.Console == "" {
		return nil
	}
	return checkWrite(fmt.Print(textIn(ctx, "console:      %s\n              (for one minute; another link: %s)\n",
		at.Console, exampleCommand(at.Credentials, "console"))))
}

// warnOtherServer warns when the environment sends every other command to another server: a stop would end processes there.
func warnOtherServer(ctx context.Context, w io.Writer, credentials string) {
	if other := os.Getenv("GOZZARD_CREDENTIALS"); other != "" && !sameFile(other, credentials) {
		_, _ = fmt.Fprint(w, textIn(ctx, "warning: GOZZARD_CREDENTIALS is %s, so other commands go to that server, not to this one: "+
			"run unset GOZZARD_CREDENTIALS, or give --credentials %s\n", printable(other), printable(credentials)))
	}
	if other := os.Getenv("GOZZARD_URL"); other != "" {
		_, _ = fmt.Fprint(w, textIn(ctx, "warning: GOZZARD_URL is %s, so other commands go there: run unset GOZZARD_URL\n", printable(other)))
	}
}

// exampleCommand is a command line that works as it is printed.
func exampleCommand(path, command string) string {
	exe := os.Args[0]
	if filepath.Clean(path) == filepath.Join("data", "dev.json") {
		return exe + " " + command
	}
	return exe + " " + command + " --credentials " + path
}
