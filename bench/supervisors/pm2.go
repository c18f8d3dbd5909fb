//go:build linux

package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// pm2Peer is pm2 in fork mode, without the limit of restarts after which it would give up.
type pm2Peer struct{ *site }

func (p *pm2Peer) prepare(context.Context) error {
	type app struct {
		Name        string `json:"name"`
		Script      string `json:"script"`
		Args        string `json:"args"`
		Interpreter string `json:"interpreter"`
		Mode        string `json:"exec_mode"`
		Restarts    int    `json:"max_restarts,omitempty"`
		Out         string `json:"out_file,omitempty"`
		Err         string `json:"error_file,omitempty"`
		Vizion      bool   `json:"vizion"`
		PMX         bool   `json:"pmx"`
	}
	var apps []app
	for i := range p.n {
		a := app{Name: p.site.process(i), Script: p.program(), Args: p.argument(i), Interpreter: "none", Mode: "fork"}
		if !p.defaults {
			a.Restarts, a.Out, a.Err = 1_000_000, "/dev/null", "/dev/null"
		}
		apps = append(apps, a)
	}

	b, err := json.Marshal(map[string]any{"apps": apps})
	if err != nil {
		return err
	}

	return p.write("apps.json", string(b), 0o600)
}

func (p *pm2Peer) pm2(args ...string) *exec.Cmd {
	cmd := exec.Command(p.tools.path("pm2"), args...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "PM2_HOME="+p.path("home"), "PM2_DISCRETE_MODE=true")
	return cmd
}

// start runs the command that starts the daemon and passes the processes to it. The command ends when all are started.
func (p *pm2Peer) start(context.Context) (err error) {
	_ = os.Remove(filepath.Join(p.path("home"), "pm2.pid")) // left by a daemon that was killed
	p.proc, err = launch(p.dir, p.pm2("start", p.path("apps.json")))
	return err
}

// main is the daemon, not the command.
func (p *pm2Peer) main() int {
	b, err := os.ReadFile(filepath.Join(p.path("home"), "pm2.pid"))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || pid < 2 {
		return 0
	}
	return pid
}

func (p *pm2Peer) status(ctx context.Context) error { return p.wait(ctx, p.pm2("jlist")) }

func (p *pm2Peer) stopAll(ctx context.Context) error { return p.wait(ctx, p.pm2("stop", "all")) }

func (p *pm2Peer) wait(ctx context.Context, cmd *exec.Cmd) error {
	c, err := launch(p.dir, cmd)
	if err != nil {
		return err
	}
	select {
	case <-c.end:
		return nil
	case <-ctx.Done():
		c.kill()
		return ctx.Err()
	}
}

func (p *pm2Peer) end() {
	p.site.end()
	if pid := p.main(); pid != 0 && strings.Contains(strings.Join(argv(pid), " "), p.dir) {
		_ = syscall.Kill(pid, syscall.SIGKILL) // fails when it has ended already
	}
}
