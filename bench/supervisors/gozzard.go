//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gozzard/gozzard/internal/policy"
)

// gozzardPeer is a server and an agent with default settings. The measured supervisor is the agent.
type gozzardPeer struct {
	*site
	server   *process
	agents   string // address for agents
	url      string
	auth     string
	http     *http.Client
	profiled bool  // the agent writes profiles
	deaths   []int // how often each process was killed since its count was reset
}

const (
	opStart  = 0
	opStop   = 1
	opHost   = 3
	opUnhost = 4
)

// prepare starts the processes with a call of the API, which is measured. Then it kills agent and processes as a power
// cut would: the host's disk has the list of what must run.
func (p *gozzardPeer) prepare(ctx context.Context) error {
	p.connect()
	if err := p.startServer(ctx); err != nil {
		return err
	}
	if err := p.start(ctx); err != nil {
		return err
	}
	if err := p.online(ctx); err != nil {
		return err
	}
	if err := p.probeFront(ctx); err != nil {
		return err
	}

	p.track.forget() // the probe
	began := clock()
	task, err := p.operate(ctx, opStart, p.items())
	if err != nil {
		return err
	}

	ok, err := p.track.awaitAll(ctx, p.patience, nil)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("not all processes were started by the call: %s", p.proc.words())
	}

	p.found.repeat(rowStartCall, p.track.last().since(began))
	good, err := p.verdicts(ctx, task)
	if err != nil {
		return err
	}
	if !good {
		return fmt.Errorf("not all starts have a good verdict: %s", p.proc.words())
	}

	p.proc.kill()
	endAll(p.track.newest)
	return nil
}

func (p *gozzardPeer) connect() {
	p.http = &http.Client{Transport: &http.Transport{DisableCompression: true}, Timeout: 2 * time.Minute}
}

func (p *gozzardPeer) startServer(ctx context.Context) (err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("cannot find a port: %w", err)
	}

	p.agents = l.Addr().String()

	if err := l.Close(); err != nil {
		return fmt.Errorf("cannot free a port: %w", err)
	}

	data := p.path("server")
	p.server, err = launch(p.dir, exec.Command(p.tools.path("gozzard"), "server", "--data", data, "--listen",
		"127.0.0.1:0", "--agent-listen", p.agents,
		"--rate-app=0", "--max-connections=0", "--max-in-flight=0", "--confirm-above=0", "--confirm-above-percent=0",
		"--destructive-quota=0", "--max-connections-total=0", "--max-agent-connections=0"))
	if err != nil {
		return err
	}

	var text []byte
	err = p.until(ctx, "the server's credentials", p.server, func() bool {
		text, err = os.ReadFile(filepath.Join(data, "credentials.json"))
		return err == nil
	})
	if err != nil {
		return err
	}

	var c map[string]string
	if err := json.Unmarshal(text, &c); err != nil {
		return fmt.Errorf("cannot read credentials: %w", err)
	}

	p.url = c["url"]
	delete(c, "url")
	auth, err := json.Marshal(c)
	p.auth = string(auth)
	return err
}

func (p *gozzardPeer) start(context.Context) error {
	rules := p.path("policy.yaml")
	if err := os.WriteFile(rules, []byte(policy.Permissive), 0o600); err != nil {
		return fmt.Errorf("cannot write policy: %w", err)
	}
	if p.profiled {
		return p.startProfiled(rules)
	}
	return p.launch(p.tools.path("gozzard"), "agent", "--data", p.path("agent"), "--server", p.agents, "--ip",
		"127.0.0.1",
		"--secret-file", p.path("server", "join.secret"), "--policy", rules)
}

// startProfiled starts this program as the agent.
func (p *gozzardPeer) startProfiled(rules string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find this program: %w", err)
	}
	if err := os.MkdirAll(p.profileSite(), 0o700); err != nil {
		return fmt.Errorf("cannot make a folder: %w", err)
	}
	return p.launch(self, profiledAgent, p.path("agent"), p.agents, p.path("server", "join.secret"), rules, p.profileSite())
}

// online waits until the server knows the agent.
func (p *gozzardPeer) online(ctx context.Context) error {
	return p.until(ctx, "the agent", p.proc, func() bool {
		data, err := p.call(ctx, "get_agent_status", map[string]any{"hosts": p.hosts()})
		return err == nil && strings.Contains(string(data), `"bk_agent_alive":1`)
	})
}

// until polls a condition while a program runs.
func (p *gozzardPeer) until(ctx context.Context, words string, needs *process, cond func() bool) error {
	for end := time.Now().Add(30 * time.Second); !cond(); time.Sleep(10 * time.Millisecond) {
		select {
		case <-needs.end:
			return fmt.Errorf("%s ended: %s", needs.cmd.Path, needs.words())
		case <-ctx.Done():
			return ctx.Err()
		default:
		}
		if time.Now().After(end) {
			return fmt.Errorf("timed out waiting for %s: %s", words, needs.words())
		}
	}
	return nil
}

func (p *gozzardPeer) hosts() []map[string]any {
	return []map[string]any{{"ip": "127.0.0.1", "bk_cloud_id": 0, "bk_supplier_id": 0}}
}

// item is an operation on one process, as a child of the agent or as a daemon.
func (p *gozzardPeer) item(name, command, pidFile string, timeout int) map[string]any {
	account := "root"

	if u, err := user.Current(); err == nil {
		account = u.Username
	}

	return map[string]any{
		"meta": map[string]any{"namespace": "bench", "name": name, "labels": map[string]string{}}, "hosts": p.hosts(),
		"spec": map[string]any{
			"identity": map[string]any{
				"proc_name": "child", "setup_path": p.dir, "pid_path": pidFile, "user": account, "index_key": "",
				"config_path": "", "log_path": "",
			},
			"control":        map[string]any{"start_cmd": command},
			"monitor_policy": p.settings(timeout),
		},
	}
}

func (p *gozzardPeer) settings(timeout int) map[string]any {
	if p.defaults {
		return map[string]any{"auto_type": 1, "op_timeout": 60} // it has no default
	}
	return map[string]any{"auto_type": 1, "start_check_secs": 0, "stop_check_secs": 5, "start_retries": 100_000,
		"start_interval": 0, "op_timeout": timeout}
}

// atOnce is how many deaths in a row the agent answers without a pause, with these settings and with the default ones.
const (
	atOnce        = 3
	atOnceDefault = 1
)

// forgive resets the counts of the agent as an operator does: with the end and the begin of supervision.
func (p *gozzardPeer) forgive(ctx context.Context, from, to, deaths int) error {
	limit := atOnce
	if p.defaults {
		limit = atOnceDefault
	}
	if p.deaths == nil {
		p.deaths = slices.Repeat([]int{limit}, p.n)
	}

	var items []map[string]any
	for i, item := range p.items()[from:to] {
		if p.deaths[from+i] += deaths; p.deaths[from+i] > limit {
			p.deaths[from+i] = deaths
			items = append(items, item)
		}
	}
	for _, op := range []int{opUnhost, opHost} {
		if len(items) == 0 {
			return nil
		}
		if good, err := p.settled(ctx, op, items); err != nil || !good {
			return fmt.Errorf("cannot reset the counts of processes: good %v: %w", good, err)
		}
	}
	return nil
}

func (p *gozzardPeer) items() (list []map[string]any) {
	for i := range p.n {
		command := p.daemon(i)
		if !p.daemons && p.tools.front {
			command = "exec " + p.command(i)
		}
		list = append(list, p.item(p.site.process(i), command, p.pidFile(i), 30))
	}
	return list
}

// probeFront finds out whether this version of gozzard supports commands that stay in the foreground.
func (p *gozzardPeer) probeFront(ctx context.Context) error {
	if p.daemons {
		return nil
	}

	p.tools.probing.Lock()
	defer p.tools.probing.Unlock()

	if p.tools.probed {
		return nil
	}

	item := []map[string]any{p.item("probe", "exec "+p.program()+" "+strconv.Itoa(firstNumber+maxPlaces-1), p.path("probe.pid"), 3)}
	var err error
	if p.tools.front, err = p.settled(ctx, opStart, item); err != nil {
		return err
	}

	p.tools.probed = true
	if p.tools.front {
		_, err = p.settled(ctx, opStop, item)
	}

	return err
}

func (p *gozzardPeer) status(ctx context.Context) error {
	for start := 0; start < p.n; start += 1000 {
		page := map[string]any{"meta": map[string]any{"namespace": "bench"},
			"page": map[string]any{"start": start, "limit": 1000}}
		data, err := p.call(ctx, "sync_proc_status", page)
		if err != nil {
			return err
		}
		if len(data) < 100*min(p.n-start, 1000) {
			return fmt.Errorf("sync_proc_status: only %d bytes: %.300s", len(data), data)
		}
	}
	return nil
}

func (p *gozzardPeer) stopAll(ctx context.Context) error {
	if err := p.online(ctx); err != nil {
		return err
	}
	_, err := p.operate(ctx, opStop, p.items())
	return err
}

func (p *gozzardPeer) end() {
	p.site.end()
	if p.server != nil {
		p.server.kill()
	}
}

// clean removes the agent's cgroups, which are empty by then.
func (p *gozzardPeer) clean() error {
	id, err := os.ReadFile(p.path("agent", "agent-id"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the agent did not start
	}

	name := strings.TrimSpace(string(id))
	if err != nil || name == "" || name != filepath.Base(name) {
		return fmt.Errorf("cannot remove cgroups of agent %q: %w", name, err)
	}

	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		dir := filepath.Join(root, "gozzard", name)
		for range 50 { // a process that was just killed may need a moment to leave
			if err = removeGroups(dir); err == nil {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		if err != nil {
			return fmt.Errorf("cannot remove cgroups: %w", err)
		}
	}

	return nil
}

func removeGroups(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}

	for _, e := range entries {
		if e.IsDir() {
			if err := removeGroups(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}

	return os.Remove(dir)
}

// serverFigures describes what the server costs in addition to the agent.
func (p *gozzardPeer) serverFigures(cpu time.Duration, window time.Duration) string {
	pid := p.server.cmd.Process.Pid
	return fmt.Sprintf("N = %s: the gozzard server of the run, which may serve many agents, has %.1f MB PSS and %.0f ms CPU per minute idle.",
		strconv.Itoa(p.n), float64(pssOf([]int{pid}))/(1<<20), perMinute(cpu, window))
}
