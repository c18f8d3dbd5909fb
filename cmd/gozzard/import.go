package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/internal/agentd"
	"github.com/gozzard/gozzard/internal/importer"
	"github.com/gozzard/gozzard/internal/specjson"
)

// importOptions are the flags of `gozzard import`.
type importOptions struct {
	output    outputFlag
	out       string
	report    string
	namespace string
	user      string
	profile   string

	adopt          bool
	dryRun         bool
	yes            bool
	lessProtection bool   // what systemd protects may run without that
	data           string // state folder of the agent
	socket         string
}

// importFormat is a format that can be imported.
type importFormat struct {
	cmd     *cobra.Command
	read    func([]importer.File, importer.World) (*importer.Result, error)
	profile bool // it has variables for several environments
	units   bool // files may be given by the names of units

	// Running processes of this format can be adopted: their pids by Process.Source, and the command line of their supervisor, if
	// it must end.
	pids   func(context.Context, []importer.File, *importer.Result) (map[string]int, error)
	daemon *regexp.Regexp
}

func importFormats() []importFormat {
	return []importFormat{
		{read: importer.Supervisord, cmd: &cobra.Command{Use: "supervisord FILE...", Short: "Import the programs of supervisord",
			Long: `Import the programs of supervisord's configuration, with the files that it includes. Groups become
namespaces. Each process of a program with numprocs becomes one definition.

Expansions such as %(ENV_HOME)s are replaced with the environment of this command: run it with that of
supervisord.`,
			Example: `  gozzard import supervisord /etc/supervisor/supervisord.conf >processes.yaml
  gozzard import supervisord /etc/supervisor/conf.d/*.conf --user www-data --out processes.yaml`}},
		{read: importer.PM2, profile: true, cmd: &cobra.Command{Use: "pm2 FILE...", Short: "Import the apps of pm2",
			Long: `Import the apps of pm2. FILE is the output of "pm2 jlist", a dump.pm2, or an ecosystem file in JSON or YAML;
"-" reads standard input.

An ecosystem.config.js is a program, and an import runs none. This writes it as JSON:

  node -p 'JSON.stringify(require("./ecosystem.config.js"))' >ecosystem.json`,
			Example: `  pm2 jlist | gozzard import pm2 - >processes.yaml
  gozzard import pm2 ecosystem.json --env production --user app`}},
		{read: importer.Systemd, units: true, cmd: &cobra.Command{Use: "systemd UNIT...", Short: "Import services of systemd",
			Long: `Import service units, with their drop-ins. UNIT is a file, or the name of a unit of this machine. With a
timer and its service, the definition gets a schedule. After and Before count between the units that are
imported together.

Gozzard does not have systemd's protection, such as ProtectSystem. The report marks what is missing with
"security".`,
			Example: `  gozzard import systemd nginx redis-server >processes.yaml
  gozzard import systemd ./web.service ./web@1.service --report report.txt`}},
		{read: importer.Procfile, cmd: &cobra.Command{Use: "procfile FILE...", Short: "Import the lines of a Procfile",
			Long: `Import the lines of a Procfile. The file .env beside it becomes env_file. Each line gets a PORT, as
foreman gives it: 5000 or that of .env for the first line, and 100 more for the next.`,
			Example: `  gozzard import procfile ./Procfile --namespace shop --user app`}},
		{read: importer.Procinfo, cmd: &cobra.Command{Use: "procinfo FILE...", Short: "Import the processes of a GSE agent",
			Long: `Import the processes that a GSE agent keeps: its file procinfo.json, or .proc of version 2. Namespaces and
names stay as they are. Passwords are not imported.`,
			Example: `  gozzard import procinfo /usr/local/gse/agent/etc/procinfo.json >processes.yaml`}},
	}
}

// newImportCommand is `gozzard import`.
func newImportCommand(env *cliEnv) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Make definitions from configurations of other supervisors",
		Long: `Make definitions from configurations of other supervisors. The definitions are printed as YAML for
"gozzard register -f". A report on standard error lists what has no counterpart, with file and line, why,
and what to do:

  left out   the process is not imported
  security   it runs with less protection than before
  check      it may behave in another way: decide before you start it
  note       a difference that does no harm

A configuration that cannot be read is an error, and nothing is printed.

Exit code: 0 everything was imported, 6 some processes were left out, 2 a configuration cannot be read.`,
	}
	for _, f := range importFormats() {
		adoptable(&f)
		cmd.AddCommand(newImportFormatCommand(env, f))
	}
	return cmd
}

func newImportFormatCommand(env *cliEnv, format importFormat) *cobra.Command {
	var o importOptions
	cmd := format.cmd
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveDefault // files
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !cmd.Flags().Changed("data") {
			o.data = agentd.LocalState(o.data)
		}
		return env.imports(cmd.Context(), &o, format, args, cmd.InOrStdin())
	}

	f := cmd.Flags()
	o.output.register(cmd, f, "yaml", "json")
	f.StringVar(&o.out, "out", "", "write the definitions to this `FILE`")
	f.StringVar(&o.report, "report", "", "write the report to this `FILE`")
	f.StringVarP(&o.namespace, "namespace", "n", "", "`NAMESPACE` of all processes, instead of those of the configuration")
	f.StringVar(&o.user, "user", "", "`ACCOUNT` of the processes that name none")
	if format.profile {
		f.StringVar(&o.profile, "env", "", "also use the variables of env_`NAME`, such as production")
	}
	if format.pids != nil {
		f.BoolVar(&o.adopt, "adopt", false, "register the processes that run, adopt them without a restart, and end the other supervisor")
		f.BoolVar(&o.dryRun, "dry-run", false, "with --adopt: print what would be done, and do nothing")
		f.BoolVarP(&o.yes, "yes", "y", false, "with --adopt: do not ask")
		if format.units {
			f.BoolVar(&o.lessProtection, "accept-less-protection", false, "with --adopt: adopt services that systemd protects; Gozzard does not")
		}
		f.StringVar(&o.data, "data", "./agent", "with --adopt: state folder of the agent; without this flag, and without ./agent, /var/lib/gozzard-agent if it exists")
		f.StringVar(&o.socket, "socket", agentd.SocketName, "with --adopt: `PATH` of the agent's socket; a name without a folder is in the state folder")
	}
	return cmd
}

// imports reads configurations and writes definitions and the report.
func (env *cliEnv) imports(ctx context.Context, o *importOptions, format importFormat, args []string, in io.Reader) error {
	// Read the configurations.
	if err := o.output.check(); err != nil {
		return err
	}
	files, err := readImports(args, format.units, in)
	if err != nil {
		return err
	}
	result, err := format.read(files, env.importWorld(o))
	if err != nil {
		return usage("cannot import: %w; nothing was imported", err)
	}

	// Adopt what runs, or write what became of them.
	if o.adopt {
		left := result.LeftOutProcesses()
		if left > 0 || format.units || o.dryRun {
			_, _ = io.WriteString(env.errs, env.reportText(result)) // stderr may be closed
		}
		if err := env.adopt(ctx, o, format, files, result, in); err != nil || left == 0 {
			return err
		}
		return &exitError{exitPartly, nil}
	}
	if err := env.writeImport(o, result); err != nil {
		return err
	}
	if n := result.LeftOutProcesses(); n > 0 {
		return &exitError{exitPartly, nil}
	}
	return nil
}

// importWorld is what importers may look at.
func (env *cliEnv) importWorld(o *importOptions) importer.World {
	host, _ := os.Hostname() // an expansion that needs it says that it is missing
	return importer.World{Namespace: o.namespace, User: o.user, Profile: o.profile, Hostname: host, Adopts: o.adopt, Env: env.lookup, Read: readLimited,
		Script: isScript,
		Glob: func(pattern string) []string {
			found, _ := filepath.Glob(pattern) // a wrong pattern matches nothing
			found = slices.DeleteFunc(found, isAdoptDropIn)
			slices.Sort(found)
			return found
		}}
}

// writeImport writes the definitions and the report.
func (env *cliEnv) writeImport(o *importOptions, r *importer.Result) error {
	if o.output.format == "json" {
		docs := make([]specjson.Object, len(r.Processes))
		for i := range r.Processes {
			docs[i] = r.Processes[i].Document()
		}
		return o.output.write(env.out, map[string]any{"definitions": docs, "report": append([]importer.Note{}, r.Notes...)})
	}

	// The report comes first: it says what to look at in the definitions.
	report := env.reportText(r)
	if o.report != "" {
		if err := os.WriteFile(o.report, []byte(report), 0o600); err != nil {
			return failed(fmt.Errorf("cannot write the report: %w", err))
		}
	} else {
		_, _ = io.WriteString(env.errs, report) // stderr may be closed
	}

	text := importer.WriteYAML(r.Processes)
	if o.out == "" {
		return checkWrite(env.out.Write(text))
	}
	if len(r.Processes) == 0 {
		return nil
	}
	if err := os.WriteFile(o.out, text, 0o600); err != nil { // variables may be secrets
		return failed(fmt.Errorf("cannot write the definitions: %w", err))
	}
	return nil
}

// reportText is the report for people, what matters most first. Notes that say the same stand together.
func (env *cliEnv) reportText(r *importer.Result) string {
	type heading struct {
		level                   importer.Level
		process, reason, advice string
	}
	var order []heading
	lines := map[heading][]string{}
	for _, level := range []importer.Level{importer.LeftOut, importer.Security, importer.Check, importer.Harmless} {
		for i := range r.Notes {
			n := &r.Notes[i]
			if n.Level != level {
				continue
			}
			h := heading{n.Level, n.Process, n.Reason, n.Advice}
			if lines[h] == nil {
				order = append(order, h)
			}
			lines[h] = append(lines[h], notePlace(n))
		}
	}

	var b strings.Builder
	for _, h := range order {
		fmt.Fprintf(&b, "%s\n", strings.Join([]string{env.chinese.Message(string(h.level)), printable(h.process),
			printable(env.chinese.Message(h.reason))}, env.colon()))
		for _, l := range lines[h] {
			fmt.Fprintf(&b, "    %s\n", l)
		}
		if h.advice != "" {
			fmt.Fprintf(&b, "    %s\n", printable(env.text("to do: %s", env.chinese.Message(h.advice))))
		}
	}
	b.WriteString(env.text("imported %d, left out %d", len(r.Processes), r.LeftOutProcesses()) + "\n")
	return b.String()
}

// notePlace is where a note is about.
func notePlace(n *importer.Note) string {
	place := n.File
	if n.Line > 0 {
		place = fmt.Sprintf("%s:%d", n.File, n.Line)
	}
	switch {
	case n.Key != "" && (n.Value != "" || n.Line > 0 && n.Level == importer.Security): // an empty list is a value
		place += ": " + n.Key + "=" + n.Value
	case n.Key != "":
		place += ": " + n.Key
	}
	return printable(place)
}
