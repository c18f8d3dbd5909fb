//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"
)

// peer is a supervisor with its processes.
type peer interface {
	// prepare writes the configuration, so that only start is missing.
	prepare(ctx context.Context) error
	// start runs the supervisor, which starts its processes by itself. It does not wait for them.
	start(ctx context.Context) error
	// main is the pid of the supervisor's first process, 0 when there is none yet.
	main() int
	// status asks for the state of all processes, in the way that costs the caller least.
	status(ctx context.Context) error
	// stopAll stops all processes, in the fastest way. It need not wait until they are gone.
	stopAll(ctx context.Context) error
	// end kills the supervisor. The caller kills its processes.
	end()
}

// candidate is a supervisor that can be measured.
type candidate struct {
	name    string
	needs   string // program that must be installed
	daemons bool   // can watch processes that are not its children
	only    bool   // watches daemons only
	// throttled supervisors start a process at most once a second (runit, s6) or lose one that is killed right after
	// its start (pm2). A process must have run for a while before its restart is an ordinary one.
	throttled bool
	limit     bool // no peer: what is possible at all
	make      func(*site) peer
}

func candidates() []candidate {
	return []candidate{
		{name: "gozzard", daemons: true, make: func(s *site) peer { return &gozzardPeer{site: s} }},
		{name: "prototype", limit: true, make: func(s *site) peer { return &prototypePeer{site: s} }},
		{name: "pebble", needs: "pebble", make: func(s *site) peer { return &pebblePeer{site: s} }},
		{name: "runit", needs: "runsvdir", throttled: true, make: func(s *site) peer { return &runitPeer{site: s} }},
		{name: "s6", needs: "s6-svscan", throttled: true, make: func(s *site) peer { return &s6Peer{site: s} }},
		{name: "pm2", needs: "pm2", throttled: true, make: func(s *site) peer { return &pm2Peer{site: s} }},
		{name: "supervisord", needs: "supervisord", make: func(s *site) peer { return &supervisordPeer{site: s} }},
		{name: "monit", needs: "monit", daemons: true, only: true,
			make: func(s *site) peer { return &monitPeer{site: s} }},
	}
}

func peerNames() (list []string) {
	for _, c := range candidates() {
		list = append(list, c.name)
	}
	return list
}

// site is where one supervisor runs: a folder that is removed with everything in it, and the processes.
type site struct {
	dir string
	n   int
	how
	tools     *tools
	proc      *process // the supervisor
	track     *tracker
	found     figures
	patience  time.Duration
	throttled bool // see candidate
}

// newSite makes the folder and the supervised program: a copy, so that no other process has its path.
func newSite(root, name string, n int, as how, t *tools) (*site, error) {
	dir, err := os.MkdirTemp(root, name+"-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a folder: %w", err)
	}

	s := &site{dir: dir, n: n, how: as, tools: t}
	b, err := os.ReadFile(t.childPath())
	if err != nil {
		return nil, fmt.Errorf("cannot copy the program to supervise: %w", err)
	}
	if err := os.WriteFile(s.program(), b, 0o755); err != nil {
		return nil, fmt.Errorf("cannot copy the program to supervise: %w", err)
	}

	s.track, err = newTracker(s.program(), n)
	return s, err
}

func (s *site) program() string            { return filepath.Join(s.dir, "child") }
func (s *site) path(name ...string) string { return filepath.Join(append([]string{s.dir}, name...)...) }
func (s *site) process(i int) string       { return "p" + strconv.Itoa(i) }
func (s *site) pidFile(i int) string       { return s.path(s.process(i) + ".pid") }
func (s *site) argument(i int) string      { return strconv.Itoa(firstNumber + i) }
func (s *site) command(i int) string       { return s.program() + " " + s.argument(i) }

// daemon is the shell command that puts a process into the background, detached from its parent.
func (s *site) daemon(i int) string {
	return s.command(i) + " </dev/null >/dev/null 2>&1 & echo $! >" + s.pidFile(i)
}

// write writes a file in the site.
func (s *site) write(name, text string, mode os.FileMode) error {
	path := s.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("cannot write the configuration: %w", err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		return fmt.Errorf("cannot write the configuration: %w", err)
	}
	return nil
}

// launch runs the supervisor in its folder.
func (s *site) launch(name string, args ...string) error {
	var err error
	s.proc, err = launch(s.dir, exec.Command(name, args...))
	return err
}

func (s *site) main() int {
	if s.proc == nil {
		return 0
	}
	return s.proc.cmd.Process.Pid
}

func (s *site) end() {
	if s.proc != nil {
		s.proc.kill()
	}
}

// run runs a command of the peer to its end.
func (s *site) run(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = s.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %.300s", name, err, out)
	}
	return nil
}

// process is a program that the run starts and stops.
type process struct {
	cmd *exec.Cmd
	log string
	end chan struct{}
}

// launch runs a program in a folder, with its output in a file there. The program ends when this one ends.
func launch(dir string, cmd *exec.Cmd) (*process, error) {
	f, err := os.CreateTemp(dir, "log-*.txt")
	if err != nil {
		return nil, fmt.Errorf("cannot make a log: %w", err)
	}

	defer f.Close()
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, f, f
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", cmd.Path, err)
	}

	p := &process{cmd: cmd, log: f.Name(), end: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // how it ended is in ProcessState
		close(p.end)
	}()

	return p, nil
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill() // fails when it has ended already
	<-p.end
}

// words is the end of the program's output, for messages.
func (p *process) words() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return plain(string(b[max(0, len(b)-400):]))
}

// plain puts a text on one line without colours, for messages.
func plain(s string) string {
	s = regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(strings.ToValidUTF8(s, ""), "")
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }),
		" ")
}

// socketClient sends HTTP over a Unix socket.
func socketClient(path string) *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial, DisableCompression: true},
		Timeout: 2 * time.Minute}
}

// talk sends a request and reads the answer. The answer must be a success with a minimum of bytes for each process.
func talk(ctx context.Context, c *http.Client, method, url string, body []byte, set func(*http.Request),
	least int) error {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if set != nil {
		set(req)
	}

	res, err := c.Do(req)
	if err != nil {
		return err
	}

	text, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		return err
	}
	if res.StatusCode/100 != 2 || len(text) < least {
		return fmt.Errorf("%s: HTTP %d, %d bytes: %.300s", url, res.StatusCode, len(text), text)
	}

	return nil
}

// words is the last output of the supervisor.
func (s *site) words() string {
	if s.proc == nil {
		return "it was not started"
	}
	return s.proc.words()
}
