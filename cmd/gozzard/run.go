package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// runOptions are the flags of `gozzard run`.
type runOptions struct {
	taskFlags
	runHosts
	name      string
	namespace string
	user      string
	dir       string
	env       []string
	mem       string
	cpu       string
	cron      string
	health    string
	restart   string
	procName  string
	instances int
	replace   bool
}

// newRunCommand is `gozzard run`.
func newRunCommand(env *cliEnv) *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run [flags] -- COMMAND [ARGUMENT...]",
		Short: "Define a process and start it, in one go",
		Long: `Define a process and start it. From then on its agent supervises it: a process that exits is started
again, also after a restart of the agent or of the host.

Everything has a default: the name is that of the program, the namespace is "default", the host is this
host (or the only one), the folder is the present one, and the account is yours. One COMMAND with
spaces is a line for the shell; several words are a program and its arguments.` + exitHelp,
		Example: `  gozzard run -- python3 -m http.server 9000
  gozzard run --name web --mem 512M --health http://127.0.0.1:9000/ -- python3 -m http.server 9000
  gozzard run --name backup --cron '0 3 * * *' -- ./backup.sh --all
  gozzard run --name worker --host 10.0.0.1 --host 10.0.0.2 --dir /opt/worker --user www -- ./worker
  gozzard run --proc-name serve 'cd /srv && exec ./serve >>serve.log 2>&1'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("give the command: gozzard run -- COMMAND [ARGUMENT...]")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.run(cmd.Context(), &o, args)
		},
	}

	f := cmd.Flags()
	f.SetInterspersed(false) // what follows COMMAND belongs to it
	o.register(f)
	o.taskFlags.register(cmd)
	return cmd
}

func (o *runOptions) register(f *pflag.FlagSet) {
	f.StringVar(&o.name, "name", "", "`NAME` of the process (default: that of the program)")
	f.StringVarP(&o.namespace, "namespace", "n", "default", "`NAMESPACE` of the process")
	f.StringVar(&o.user, "user", "", "`ACCOUNT` of the process (default: yours)")
	f.StringVar(&o.dir, "dir", "", "`FOLDER` in which it runs (default: the present one on this host, / on others)")
	f.StringArrayVar(&o.env, "env", nil, "variable of its environment as `NAME=VALUE`; may be repeated")
	f.StringVar(&o.mem, "mem", "", "limit of its memory, such as 512M or 50%")
	f.StringVar(&o.cpu, "cpu", "", "limit of its CPU in cores, such as 1.5, or 50%")
	f.StringVar(&o.cron, "cron", "", "run it at the times of this crontab `RULE`, such as '0 3 * * *'")
	f.StringVar(&o.health, "health", "", "health check: a `COMMAND`, a URL, or tcp://ADDRESS")
	f.StringVar(&o.restart, "restart", "", "`WHEN` it is started again: always (the default), on-failure or never")
	f.StringVar(&o.procName, "proc-name", "", "`PROGRAM` as ps shows it, for a shell line that does not begin with it")
	f.IntVar(&o.instances, "instances", 0, "start this many, as NAME-1, NAME-2 and so on, with INSTANCE in the environment")
	f.BoolVar(&o.replace, "replace", false, "replace the definition of a process with this name, and restart it")
	o.runHosts.register(f)
}

// run defines a process and starts it.
func (env *cliEnv) run(ctx context.Context, o *runOptions, args []string) error {
	// Check the flags and connect.
	if err := o.output.check(); err != nil {
		return err
	}
	c, err := env.connect()
	if errors.Is(err, errNoCredentials) {
		return needsServer(err)
	}
	if err != nil {
		return err
	}
	defer c.Close()

	// Make the definition.
	hosts, local, err := o.find(ctx, c)
	if err != nil && gozzard.KindOf(err) == gozzard.ErrUnavailable {
		return needsServer(withExitCode(err))
	}
	if err != nil {
		return withExitCode(err)
	}
	doc, err := o.document(args, hosts, local)
	if err != nil {
		return err
	}

	// Compare it with what is there.
	plan, err := c.PreviewDocument(ctx, doc)
	if err != nil {
		return env.printFaults(err)
	}
	if plan.Changed > 0 && !o.replace {
		if err := env.printPlan(&plan); err != nil {
			return err
		}
		return usage("%s/%s exists with another definition: choose another --name, or give --replace to replace and "+
			"restart it", o.namespace, o.name)
	}

	// Register it, and start it.
	action := "start"
	switch {
	case o.cron != "":
		action = "manage" // a start would run it at once; under supervision it waits for the first time of its rule
	case plan.Changed > 0:
		action = "restart"
	}
	if plan.New+plan.Changed > 0 {
		a, err := c.RegisterDocument(ctx, doc)
		if err != nil {
			return env.printFaults(err)
		}
		t, err := env.waitForTask(ctx, c, &o.taskFlags, "register "+o.name, a.TaskID)
		if err != nil {
			return err
		}
		if t.Counts.Failed > 0 {
			return env.printTask(&o.taskFlags, "register "+o.name, &t)
		}
	}
	return env.begin(ctx, c, o, action, hosts)
}

// begin starts what is defined, and says how to go on.
func (env *cliEnv) begin(ctx context.Context, c *client.Client, o *runOptions, action string, hosts []client.Host) error {
	// Start it.
	names := []string{o.name}
	if o.instances > 0 {
		names = []string{o.name + "-*"}
	}
	a, err := c.Operate(ctx, client.Operation{Action: action, Selection: client.Selection{Namespace: o.namespace,
		Names: names, Hosts: hosts}})
	if err != nil {
		return withExitCode(err)
	}
	if o.detach {
		return env.printAccepted(&o.taskFlags, a)
	}
	t, err := env.waitForTask(ctx, c, &o.taskFlags, action+" "+o.name, a.TaskID)
	if err != nil {
		return err
	}

	// Print what came of it.
	if err := env.printTask(&o.taskFlags, action+" "+o.name, &t); err != nil || o.output.structured() {
		return err
	}
	page, err := c.Processes(ctx, client.ProcessQuery{Namespaces: []string{o.namespace}, Names: names}, 0, 5)
	if err != nil {
		return withExitCode(err)
	}
	for i := range page.Processes {
		if p := &page.Processes[i]; p.PID > 0 {
			env.remark("%s runs on %s with pid %d", printable(p.Name), processHost(p), p.PID)
		} else if p.State == client.StateScheduled && !p.NextAt.IsZero() {
			env.remark("%s runs on %s next at %s", printable(p.Name), processHost(p), p.NextAt.Local().Format(time.DateTime))
		}
	}
	env.remark("see it:  gozzard ps        its output:  gozzard logs %s        stop it:  gozzard stop %[1]s", shellWord(names[0]))
	return nil
}

// shellWord is a text as a person can paste it into a shell: in quotes, if a shell would obey a part of it.
func shellWord(s string) string {
	if !strings.ContainsAny(s, obeyed+" \u3000") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// needsServer adds to an error how to get a server.
func needsServer(err error) error {
	var ex *exitError
	if !errors.As(err, &ex) {
		return err
	}
	return &exitError{ex.code, fmt.Errorf("%w\nno server answers here: start one with this command, in this folder and in "+
		"another terminal: gozzard dev", ex.err)}
}

// document is the definition in the form of the API.
func (o *runOptions) document(args []string, hosts []client.Host, local bool) ([]byte, error) {
	doc := map[string]any{"hosts": hosts, "start_check": "1s"}

	// What it runs, and as what.
	program := args[0]
	doc["command"] = args
	if len(args) == 1 && strings.ContainsAny(program, " \t\n;&|<>$") {
		doc["command"], program = program, strings.Fields(program)[0]
	} else if o.procName == "" {
		o.procName = filepath.Base(program)
	}
	if o.name == "" {
		o.name = filepath.Base(cmp.Or(o.procName, program)) // a line that begins with cd is not about a program cd
	}
	doc["namespace"], doc["name"] = o.namespace, o.name

	// Where, and as which account.
	if err := o.place(doc, local); err != nil {
		return nil, err
	}

	// The rest.
	env := map[string]string{}
	for _, e := range o.env {
		name, value, ok := strings.Cut(e, "=")
		if !ok {
			return nil, usage("--env %q: use NAME=VALUE", printable(e))
		}
		env[name] = value
	}
	if len(env) > 0 {
		doc["env"] = env
	}
	for key, value := range map[string]string{"memory": o.mem, "cpu": o.cpu, "schedule": o.cron, "health": o.health,
		"restart": o.restart, "proc_name": o.procName} {
		if value != "" {
			doc[key] = value
		}
	}
	if o.instances > 0 {
		doc["instances"] = o.instances
	}

	b, err := json.Marshal(doc)
	if err != nil {
		return nil, failed(fmt.Errorf("cannot encode the definition: %w", err))
	}
	return b, nil
}

// place adds the folder and the account.
func (o *runOptions) place(doc map[string]any, local bool) error {
	doc["folder"], doc["user"] = o.dir, o.user
	if o.user == "" {
		me, err := user.Current()
		if err != nil {
			return usage("cannot find out which account this is, so give --user ACCOUNT: %w", err)
		}
		doc["user"] = me.Username
	}

	switch {
	case o.dir != "" && !filepath.IsAbs(o.dir) && !local:
		return usage("--dir %q must be an absolute path: the process runs on another host", printable(o.dir))
	case o.dir == "" && !local:
		doc["folder"] = "/"
	case !local:
		// This machine knows nothing of the folders of another: the agent there checks it.
	default:
		dir, err := filepath.Abs(o.dir)
		if err != nil {
			return usage("cannot find the present folder, so give --dir FOLDER: %w", err)
		}
		if dir, err = filepath.EvalSymlinks(dir); err != nil {
			return usage("--dir: %w", err)
		}
		doc["folder"] = dir
	}
	return nil
}

// hostname is the name of this host, "" when it is not known.
func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}
