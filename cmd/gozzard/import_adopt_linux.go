package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mattn/go-isatty"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/adopt"
	"github.com/gozzard/gozzard/internal/agentd"
	"github.com/gozzard/gozzard/internal/agentsock"
	"github.com/gozzard/gozzard/internal/importer"
	"github.com/gozzard/gozzard/internal/specjson"
)

// adoptPatience is how long an agent may take to find a process. It looks every 10 seconds.
const adoptPatience = 15 * time.Second

// adopted is a running process that is being moved.
type adopted struct {
	*importer.Process
	pid     int
	start   uint64 // of the process, so that no other one with the pid is meant
	pidFile string // names the process to the agent; "": the definition has a pid file
	ends    adopt.Ends

	registered bool // by this command
	takenBack  bool // no file names it to the agent any more
}

func (a *adopted) key() gozzard.Key { return gozzard.Key{Namespace: a.Namespace, Name: a.Name} }

// move is an installation that moves to the agent of this host.
type move struct {
	env    *cliEnv
	o      *importOptions
	format importFormat
	agent  *agentsock.Client
	status agentsock.Status
	list   []*adopted

	daemon      int // the other supervisor; 0 if it has ended
	daemonStart uint64

	services []*heldService // of systemd
	trees    *adopt.Trees   // of cgroups; nil: there are no services
}

// adopt moves running processes to the agent of this host. Every step can be repeated: a move that was interrupted goes on
// when the command is run again.
func (env *cliEnv) adopt(ctx context.Context, o *importOptions, format importFormat, files []importer.File, r *importer.Result,
	in io.Reader) error {
	// Find out what runs, and whether everything can be taken over. Nothing is changed.
	m := &move{env: env, o: o, format: format}
	if err := m.findAgent(ctx); err != nil {
		return err
	}
	if err := m.findProcesses(ctx, files, r); err != nil {
		return failed(err)
	}
	if err := m.findDaemon(); err != nil {
		return failed(err)
	}
	defer m.close()
	if err := m.findServices(ctx); err != nil {
		return failed(err)
	}
	if err := m.printPlan(r); err != nil || o.dryRun {
		return err
	}
	if yes, err := m.confirm(in); err != nil || !yes {
		return err
	}

	// Make the agent find each process, while the other supervisor still has it.
	for _, a := range m.list {
		if err := m.handOver(ctx, a); err != nil {
			return errors.Join(err, m.keepAsItWas(ctx), m.printLeft())
		}
	}

	// Make systemd give them up. Hold the output, then end the other supervisor.
	if err := m.giveUp(ctx); err != nil {
		return errors.Join(failed(err), m.keepAsItWas(ctx), m.printLeft())
	}
	if err := m.release(); err != nil {
		return failed(err)
	}

	// Supervise them.
	for _, a := range m.list {
		if err := m.supervise(ctx, a); err != nil {
			return err
		}
	}
	return m.printBack()
}

// findAgent asks the agent of this host for its id.
func (m *move) findAgent(ctx context.Context) error {
	path, err := agentd.SocketPath(m.o.data, m.o.socket)
	if err != nil {
		return failed(err)
	}
	m.agent = agentsock.NewClient(path)
	if m.status, err = m.agent.Status(ctx); err != nil {
		return withAgentExitCode(err)
	}
	return nil
}

func isPIDFile(f specjson.Field) bool { return f.Key == "pid_file" }

// pidFile is the file that names a process to the agent, unless its definition has one.
func (m *move) pidFile(p *importer.Process) string {
	if !m.format.units && slices.ContainsFunc(p.Fields, isPIDFile) {
		return "" // systemd knows the pid, whatever the file says
	}
	folder := "/run/gozzard-adopt"
	if os.Geteuid() != 0 {
		folder = filepath.Join(m.o.data, "adopt")
	}
	name := filepath.Base(filepath.Dir(agentd.LogFile("/", gozzard.Key{Namespace: p.Namespace, Name: p.Name})))
	return filepath.Join(folder, name+".pid")
}

func (m *move) close() {
	for _, a := range m.list {
		a.ends.Close()
	}
}

// printPlan prints what will be done.
func (m *move) printPlan(r *importer.Result) error {
	for _, a := range m.list {
		if err := m.env.say("adopt %s/%s: pid %d\n", a.Namespace, a.Name, a.pid); err != nil {
			return err
		}
	}
	refused, err := m.printRefusals()
	if err != nil {
		return err
	}
	if err := m.printServices(r); err != nil || m.daemon == 0 || refused != nil {
		return cmp.Or(refused, err)
	}
	return m.env.say("end pid %d (%s); its processes keep running\n", m.daemon, printable(gozzard.Clip(adopt.CommandLine(m.daemon), 80)))
}

// confirm asks, unless --yes was given.
func (m *move) confirm(in io.Reader) (bool, error) {
	if m.o.yes {
		return true, nil
	}
	if f, ok := in.(*os.File); !ok || !isatty.IsTerminal(f.Fd()) {
		return false, usage("standard input is not a terminal, so the command cannot ask: give --yes")
	}
	if err := checkWrite(fmt.Fprint(m.env.errs, m.env.text("Do this? [y/N] "))); err != nil {
		return false, err
	}
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, failed(fmt.Errorf("cannot read the answer: %w", err))
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return false, m.env.say("nothing was changed\n")
	}
	return true, nil
}

// handOver registers a process with the file that names its pid, and waits until the agent has found it. The agent decides by
// its rules: name, account, age, and that no other definition has it.
func (m *move) handOver(ctx context.Context, a *adopted) error {
	if m.daemon != 0 {
		log, err := adopt.OpenLog(agentd.LogFile(m.o.data, a.key()))
		if err != nil {
			return failed(err)
		}
		_ = log.Close() // it was only made
	}
	if a.pidFile != "" {
		if err := writePIDFile(a.pidFile, a.pid); err != nil {
			return failed(err)
		}
	}
	if err := m.register(ctx, a, a.pidFile); err != nil {
		return errors.Join(err, a.removePIDFile())
	}
	a.registered = true
	if err := m.accepted(ctx, a); err != nil {
		return errors.Join(err, m.takeBack(ctx, a))
	}
	return nil
}

// printLeft prints which definitions a move that did not begin has left, and how to undo them.
func (m *move) printLeft() error {
	for _, a := range m.list {
		if !a.registered || !a.takenBack {
			continue
		}
		if err := m.env.say("left: %s/%s is registered, and is not supervised; to undo it: gozzard unregister %s\n", a.Namespace, a.Name,
			target(a)); err != nil {
			return err
		}
	}
	return nil
}

// target names a process in a command.
func target(a *adopted) string {
	if a.Namespace == "default" {
		return shellWord(a.Name)
	}
	return shellWord(a.Name) + " -n " + shellWord(a.Namespace)
}

// takeBack ends the handover of a process that the agent does not accept: no file names it to the agent any more.
func (m *move) takeBack(ctx context.Context, a *adopted) error {
	if a.takenBack = true; a.pidFile == "" {
		return nil
	}
	return errors.Join(a.removePIDFile(), m.register(ctx, a, ""))
}

// keepAsItWas ends the handovers if systemd has not given up any service. Otherwise the command goes on from there when it is
// run again.
func (m *move) keepAsItWas(ctx context.Context) error {
	if ctx.Err() != nil || slices.ContainsFunc(m.services, func(s *heldService) bool { return s.givenUp }) {
		return nil
	}
	var errs []error
	for _, a := range m.list {
		if a.registered && !a.takenBack {
			errs = append(errs, m.takeBack(ctx, a))
		}
	}
	return errors.Join(errs...)
}

// removePIDFile removes the file that names the process to the agent.
func (a *adopted) removePIDFile() error {
	if err := os.Remove(a.pidFile); a.pidFile != "" && err != nil && !errors.Is(err, os.ErrNotExist) {
		return failed(fmt.Errorf("cannot remove the pid file: %w", err))
	}
	return nil
}

// accepted waits until the agent has found a process.
func (m *move) accepted(ctx context.Context, a *adopted) error {
	why := ""
	for until := time.Now().Add(adoptPatience); time.Now().Before(until); time.Sleep(200 * time.Millisecond) {
		p, err := m.seen(ctx, a)
		switch {
		case err != nil:
			return withAgentExitCode(err)
		case int(p.PID) == a.pid:
			return nil
		case p.PID > 0:
			return failed(fmt.Errorf("the agent has pid %d as %s/%s, not pid %d; nothing was ended", p.PID, a.Namespace, a.Name, a.pid))
		}
		why = p.Message
	}
	return failed(fmt.Errorf("the agent does not accept pid %d as %s/%s; nothing was ended: %s", a.pid, a.Namespace, a.Name, printable(why)))
}

// writePIDFile writes a pid into a file that only this account can change.
func writePIDFile(path string, pid int) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("cannot make the folder of pid files: %w", err)
	}
	if err := os.WriteFile(path, []byte(strconv.Itoa(pid)+"\n"), 0o644); err != nil {
		return fmt.Errorf("cannot write the pid file: %w", err)
	}
	return nil
}

// seen is a process as the agent sees it.
func (m *move) seen(ctx context.Context, a *adopted) (agentsock.Process, error) {
	all, err := m.agent.Processes(ctx)
	for _, p := range all.Processes {
		if p.Namespace == a.Namespace && p.Name == a.Name {
			return p, err
		}
	}
	return agentsock.Process{}, err
}

// register registers a definition on this host. pidFile "" means that of the definition.
func (m *move) register(ctx context.Context, a *adopted, pidFile string) error {
	doc := a.Document()
	if pidFile != "" {
		doc = slices.DeleteFunc(doc, isPIDFile)
	}
	doc = append(doc, specjson.Field{Key: "hosts", Value: []client.Host{{Agent: m.status.Agent}}})
	if pidFile != "" {
		doc = append(doc, specjson.Field{Key: "pid_file", Value: pidFile})
	}
	text, err := doc.MarshalJSON()
	if err != nil {
		return failed(err)
	}
	flags := taskFlags{output: outputFlag{format: "table", known: []string{"table"}}}
	return m.env.runTask(ctx, &flags, "register "+a.Name, func(c *client.Client) (client.Accepted, error) {
		return c.RegisterDocument(ctx, text)
	})
}

// release makes a keeper hold the output of the processes, and ends the other supervisor.
func (m *move) release() error {
	if m.daemon == 0 {
		return nil
	}
	var list []adopt.Kept
	for _, a := range m.list {
		lock := agentd.LogFile(m.o.data, a.key())
		list = append(list, adopt.Kept{Log: lock, Lock: filepath.Join(filepath.Dir(lock), "keeper"), Ends: a.ends})
	}
	if err := adopt.Keep(list, m.keeperPlace); err != nil {
		return err
	}
	return adopt.Kill(m.daemon, m.daemonStart)
}

// supervise starts the supervision of a process that runs, and registers its definition as it was imported.
func (m *move) supervise(ctx context.Context, a *adopted) error {
	flags := taskFlags{output: outputFlag{format: "table", known: []string{"table"}}}
	err := m.env.runTask(ctx, &flags, "start "+a.Name, func(c *client.Client) (client.Accepted, error) {
		return c.Operate(ctx, client.Operation{Action: "start", Selection: client.Selection{Namespace: a.Namespace, Names: []string{a.Name},
			Hosts: []client.Host{{Agent: m.status.Agent}}}})
	})
	if err != nil {
		return err
	}
	p, err := m.seen(ctx, a)
	if err != nil {
		return withAgentExitCode(err)
	}
	if _, start, err := adopt.Parent(a.pid); int(p.PID) != a.pid || err != nil || start != a.start {
		return failed(fmt.Errorf("%s/%s runs as pid %d now, not as pid %d: it ended meanwhile", a.Namespace, a.Name, p.PID, a.pid))
	}
	if a.pidFile == "" {
		return nil
	}
	if err := m.register(ctx, a, ""); err != nil {
		return err
	}
	return a.removePIDFile()
}
