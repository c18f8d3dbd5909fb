//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gozzard/gozzard/bench/child"
)

// tools are the programs that the run measures.
type tools struct {
	dir      string            // folder of the programs that the run built
	paths    map[string]string // by name
	versions map[string]string // by name of the supervisor
	missing  map[string]string // why a supervisor cannot be measured
	probing  sync.Mutex
	front    bool // gozzard supports commands that stay in the foreground; otherwise all its processes are daemons
	probed   bool // front is known
}

func (t *tools) path(name string) string { return t.paths[name] }

// packages are the Debian packages by supervisor.
func packages() map[string]string {
	return map[string]string{"supervisord": "supervisor", "monit": "monit", "runit": "runit", "s6": "s6"}
}

// gather finds the programs and installs what is missing where that is allowed and possible.
func (b *bench) gather(ctx context.Context) error {
	t := &tools{dir: filepath.Join(b.dir, "tools"), paths: map[string]string{}, versions: map[string]string{},
		missing: map[string]string{}}
	b.tools = t

	if err := os.Mkdir(t.dir, 0o755); err != nil {
		return fmt.Errorf("cannot make a folder: %w", err)
	}
	if err := buildChild(ctx, t.childPath()); err != nil {
		return err
	}
	if b.install {
		b.installPackages(ctx)
	}

	for _, c := range candidates() {
		if c.needs == "" || !b.wants(c.name) {
			continue
		}
		path, err := exec.LookPath(c.needs)
		if err != nil && b.install {
			path, err = b.fetch(ctx, c.needs)
		}
		if err != nil {
			t.missing[c.name] = err.Error()
			b.say("cannot get %s: %v", c.name, err)
			continue
		}
		t.paths[c.needs] = path
		t.versions[c.name] = versionOf(ctx, c.name, path)
	}

	return b.gatherOwn(ctx)
}

// installPackages installs Debian packages. A failure shows when the program is looked for.
func (b *bench) installPackages(ctx context.Context) {
	var list []string
	for _, c := range candidates() {
		if name := packages()[c.name]; name != "" && b.wants(c.name) {
			if _, err := exec.LookPath(c.needs); err != nil {
				list = append(list, name)
			}
		}
	}

	if len(list) == 0 || os.Geteuid() != 0 {
		return
	}

	b.say("installing %s", strings.Join(list, " "))

	for _, args := range [][]string{{"-qq", "update"},
		append([]string{"-qq", "install", "-y", "--no-install-recommends"}, list...)} {
		cmd := exec.CommandContext(ctx, "apt-get", args...)
		// Do not let the packages start services on this machine.
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			b.say("apt-get %s: %v: %.300s", args[1], err, out)
			return
		}
	}
}

// fetch gets pm2 or Pebble into the folder of the run.
func (b *bench) fetch(ctx context.Context, name string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	dir := filepath.Join(b.tools.dir, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", fmt.Errorf("cannot make a folder: %w", err)
	}

	var cmd *exec.Cmd
	var path string
	switch name {
	case "pm2":
		path = filepath.Join(dir, "node_modules/.bin/pm2")
		cmd = exec.CommandContext(ctx, "npm", "install", "--no-audit", "--no-fund", "--prefix", dir, "pm2")
	case "pebble":
		path = filepath.Join(dir, "bin", name)
		mod := "module bench\n\ngo 1.26\n\nrequire github.com/canonical/pebble " + pebbleVersion + "\n"
		if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o644); err != nil {
			return "", fmt.Errorf("cannot build pebble: %w", err)
		}
		cmd = exec.CommandContext(ctx, "go", "build", "-mod=mod", "-o", path, "github.com/canonical/pebble/cmd/pebble")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	default:
		return "", fmt.Errorf("%s is not installed", name)
	}

	b.say("getting %s", name)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot get %s: %w: %.300s", name, err, out)
	}

	return path, nil
}

// versionOf is the version for the results. A program that does not print its version is measured too.
func versionOf(ctx context.Context, name, path string) string {
	var cmd *exec.Cmd
	switch {
	case packages()[name] != "":
		cmd = exec.CommandContext(ctx, "dpkg-query", "-W", "-f", "${Version}", packages()[name])
	case name == "pm2":
		cmd = exec.CommandContext(ctx, "node", "-p",
			"require(require('fs').realpathSync(process.argv[1])+'/../../package.json').version", path)
	default: // Pebble prints only what its builders set; the build information has the module version
		cmd = exec.CommandContext(ctx, "go", "version", "-m", path)
	}

	out, err := cmd.Output()
	if err != nil {
		return "of unknown version"
	}

	text := strings.TrimSpace(string(out))

	if name != "pebble" {
		return text
	}

	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 2 && (f[0] == "dep" || f[0] == "mod") &&
			f[1] == "github.com/canonical/pebble" {
			return f[2]
		}
	}

	return "of unknown version"
}

// gatherOwn builds gozzard and the prototype.
func (b *bench) gatherOwn(ctx context.Context) error {
	for name, folder := range map[string]string{"gozzard": "./cmd/gozzard", "prototype": "./bench/supervisors/prototype"} {
		b.tools.versions[name] = "of this tree"
		switch {
		case !b.wants(name):
		case name == "gozzard" && b.binary != "":
			b.tools.paths[name] = b.binary
		default:
			if err := b.build(ctx, name, folder); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) build(ctx context.Context, name, folder string) (err error) {
	b.say("building %s", name)
	b.tools.paths[name], err = child.Build(ctx, b.tools.dir, name, folder)
	return err
}
