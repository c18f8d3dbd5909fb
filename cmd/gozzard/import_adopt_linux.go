package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

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
}

func (a *adopted) key() gozzard.Key { return gozzard.Key{Namespace: a.Namespace, Name: a.Name} }

// move is an installation that moves to the agent of this host.
type move struct {
	env    *cliEnv
	o      *importOptions
	format importFormat
	agent  *agentsock.Client
	id     gozzard.AgentID
	list   []*adopted

	daemon      int // the other supervisor; 0 if it has ended
	daemonStart uint64
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
	if err := m.printPlan(); err != nil || o.dryRun {
		return err
	}
	if yes, err := m.confirm(in); err != nil || !yes {
		return err
	}

	// Make the agent find each process, while the other supervisor still has it.
	for _, a := range m.list {
		if err := m.handOver(ctx, a); err != nil {
			return err
		}
	}

	// Hold the output, then end the other supervisor.
	if err := m.release(); err != nil {
		return failed(err)
	}

	// Supervise them.
	for _, a := range m.list {
		if err := m.supervise(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

// findAgent asks the agent of this host for its id.
func (m *move) findAgent(ctx context.Context) error {
	path, err := agentd.SocketPath(m.o.data, m.o.socket)
	if err != nil {
		return failed(err)
	}
	m.agent = agentsock.NewClient(path)
	st, err := m.agent.Status(ctx)
	if err != nil {
		return withAgentExitCode(err)
	}
	m.id = st.Agent
	return nil
}

// findProcesses finds the pid of each process: from the other supervisor, or from the agent if it has the process already.
func (m *move) findProcesses(ctx context.Context, files []importer.File, r *importer.Result) error {
	running, err := m.format.pids(ctx, files, r)
	known, agentErr := m.agent.Processes(ctx)
	if agentErr != nil {
		return agentErr
	}
	for i := range r.Processes {
		p := &r.Processes[i]
		pid := running[p.Source]
		if pid == 0 {
			j := slices.IndexFunc(known.Processes, func(k agentsock.Process) bool {
				return k.Namespace == p.Namespace && k.Name == p.Name && k.PID > 0
			})
			if j < 0 {
				m.env.remark("%s/%s does not run: register and start it yourself", p.Namespace, p.Name)
				continue
			}
			pid = int(known.Processes[j].PID)
		}
		_, start, startErr := adopt.Parent(pid)
		if startErr != nil {
			return startErr
		}
		m.list = append(m.list, &adopted{Process: p, pid: pid, start: start, pidFile: m.pidFile(p)})
	}
	if len(m.list) == 0 {
		return errors.Join(err, errors.New("no process runs that could be adopted"))
	}
	return nil
}

// pidFile is the file that names a process to the agent, unless its definition has one.
func (m *move) pidFile(p *importer.Process) string {
	if slices.ContainsFunc(p.Fields, func(f specjson.Field) bool { return f.Key == "pid_file" }) {
		return ""
	}
	folder := "/run/gozzard-adopt"
	if os.Geteuid() != 0 {
		folder = filepath.Join(m.o.data, "adopt")
	}
	name := filepath.Base(filepath.Dir(agentd.LogFile("/", gozzard.Key{Namespace: p.Namespace, Name: p.Name})))
	return filepath.Join(folder, name+".pid")
}

// findDaemon finds the other supervisor and takes the ends of pipes that it holds.
func (m *move) findDaemon() error {
	if m.format.daemon == nil {
		return nil
	}
	for _, a := range m.list {
		parent, _, err := adopt.Parent(a.pid)
		if err != nil {
			return err
		}
		if !m.format.daemon.MatchString(adopt.CommandLine(parent)) {
			continue // it was given up before
		}
		if m.daemon != 0 && m.daemon != parent {
			return fmt.Errorf("pid %d and pid %d both supervise the processes; move them one after the other", m.daemon, parent)
		}
		m.daemon = parent
	}
	if m.daemon == 0 {
		return nil
	}

	// It must have no other process, and nothing that starts it again.
	_, start, err := adopt.Parent(m.daemon)
	if err != nil {
		return err
	}
	m.daemonStart = start
	if unit := adopt.Unit(m.daemon); unit != "" {
		return fmt.Errorf("pid %d belongs to the service %s of systemd, which would start it again and end its processes; "+
			"this version cannot adopt from there", m.daemon, unit)
	}
	children, err := adopt.Children(m.daemon)
	if err != nil {
		return err
	}
	for _, pid := range children {
		if !slices.ContainsFunc(m.list, func(a *adopted) bool { return a.pid == pid }) {
			return fmt.Errorf("pid %d (%s) is not imported, and would be left without a supervisor; stop it there first", pid,
				printable(gozzard.Clip(adopt.CommandLine(pid), 80)))
		}
	}

	// Whatever the system does not allow must show before anything is changed.
	for _, a := range m.list {
		if a.ends, err = adopt.Take(m.daemon, a.pid); err != nil {
			return err
		}
	}
	return nil
}

func (m *move) close() {
	for _, a := range m.list {
		a.ends.Close()
	}
}

// printPlan prints what will be done.
func (m *move) printPlan() error {
	for _, a := range m.list {
		if err := m.env.say("adopt %s/%s: pid %d\n", a.Namespace, a.Name, a.pid); err != nil {
			return err
		}
	}
	if m.daemon == 0 {
		return nil
	}
	return m.env.say("end pid %d (%s); its processes keep running\n", m.daemon, printable(gozzard.Clip(adopt.CommandLine(m.daemon), 80)))
}

// confirm asks, unless --yes was given.
func (m *move) confirm(in io.Reader) (bool, error) {
	if m.o.yes {
		return true, nil
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
		return err
	}

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
	doc := append(a.Document(), specjson.Field{Key: "hosts", Value: []client.Host{{Agent: m.id}}})
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
	if err := adopt.Keep(list); err != nil {
		return err
	}
	return adopt.Kill(m.daemon, m.daemonStart)
}

// supervise starts the supervision of a process that runs, and registers its definition as it was imported.
func (m *move) supervise(ctx context.Context, a *adopted) error {
	flags := taskFlags{output: outputFlag{format: "table", known: []string{"table"}}}
	err := m.env.runTask(ctx, &flags, "start "+a.Name, func(c *client.Client) (client.Accepted, error) {
		return c.Operate(ctx, client.Operation{Action: "start", Selection: client.Selection{Namespace: a.Namespace, Names: []string{a.Name},
			Hosts: []client.Host{{Agent: m.id}}}})
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
	if err := os.Remove(a.pidFile); err != nil && !errors.Is(err, os.ErrNotExist) {
		return failed(fmt.Errorf("cannot remove the pid file: %w", err))
	}
	return nil
}

var (
	isRunningProgram = regexp.MustCompile(`(?m)^(\S+)\s+RUNNING\s+pid ([0-9]{1,9}),`)
	isSupervisord    = regexp.MustCompile(`(^|/| )supervisord( |$)`)
	isPM2            = regexp.MustCompile(`^PM2\s|/pm2/lib/Daemon\.js`)
)

// supervisordPIDs asks supervisord for the pids of its programs.
func supervisordPIDs(ctx context.Context, files []importer.File, _ *importer.Result) (map[string]int, error) {
	out, err := exec.CommandContext(ctx, "supervisorctl", "-c", files[0].Name, "status").Output()
	pids := map[string]int{}
	for _, m := range isRunningProgram.FindAllStringSubmatch(string(out), -1) {
		source := m[1]
		if !strings.Contains(source, ":") {
			source += ":" + source
		}
		pids[source], _ = strconv.Atoi(m[2])
	}
	if len(pids) > 0 {
		return pids, nil // its exit code says that some do not run
	}
	return pids, fmt.Errorf("supervisorctl names no running program: %w: %s", errors.Join(err), printable(gozzard.Clip(string(out), 200)))
}

// pm2PIDs are the pids in the output of pm2 jlist.
func pm2PIDs(_ context.Context, _ []importer.File, r *importer.Result) (map[string]int, error) {
	pids := map[string]int{}
	for i := range r.Processes {
		if p := &r.Processes[i]; p.PID > 0 {
			pids[p.Source] = p.PID
		}
	}
	if len(pids) == 0 {
		return nil, errors.New("the file has no pids: give the output of pm2 jlist")
	}
	return pids, nil
}

// procinfoPIDs are the pids in the pid files of the definitions.
func procinfoPIDs(_ context.Context, _ []importer.File, r *importer.Result) (map[string]int, error) {
	pids := map[string]int{}
	for i := range r.Processes {
		p := &r.Processes[i]
		for _, f := range p.Fields {
			path, _ := f.Value.(string)
			if f.Key != "pid_file" {
				continue
			}
			text, err := readLimited(path)
			if err != nil {
				continue // it does not run
			}
			first, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
			pid, err := strconv.Atoi(strings.TrimSpace(first))
			if _, _, gone := adopt.Parent(pid); err == nil && pid > 0 && gone == nil {
				pids[p.Source] = pid
			}
		}
	}
	return pids, nil
}

// adoptable says how running processes of a format are found.
func adoptable(f *importFormat) {
	switch f.cmd.Name() {
	case "supervisord":
		f.pids, f.daemon = supervisordPIDs, isSupervisord
	case "pm2":
		f.pids, f.daemon = pm2PIDs, isPM2
	case "procinfo":
		f.pids = procinfoPIDs
	}
}
