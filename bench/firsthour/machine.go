//go:build linux

package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

var (
	//go:embed steps.sh
	sharedScript string
	//go:embed gozzard.sh
	gozzardScript string
	//go:embed pm2.sh
	pm2Script string
)

// figures are times of steps, in their order.
type figures []figure

type figure struct {
	what string
	ms   int64
}

func (f *figures) add(what string, took time.Duration) {
	*f = append(*f, figure{what, took.Milliseconds()})
}

func (f figures) find(what string) (int64, bool) {
	for _, x := range f {
		if x.what == what {
			return x.ms, true
		}
	}
	return 0, false
}

// read takes the figures from the output of a script.
func (f *figures) read(output string) error {
	for line := range strings.Lines(output) {
		text, isFigure := strings.CutPrefix(strings.TrimSpace(line), "time ")
		i := strings.LastIndex(text, ": ")
		if !isFigure || i < 0 {
			continue
		}
		ms, err := strconv.ParseInt(text[i+2:], 10, 64)
		if err != nil {
			return fmt.Errorf("cannot read the figure %q: %w", line, err)
		}
		f.add(text[:i], time.Duration(ms)*time.Millisecond)
	}
	return nil
}

// machine is a fresh Debian in a folder, with the account goose.
type machine struct {
	dir, root  string
	mounted    []string
	pm2Version string
}

// newMachine makes the machine. Go is that of this machine, because the README asks for it.
func newMachine(ctx context.Context) (_ *machine, err error) {
	dir, err := os.MkdirTemp("", "firsthour")
	if err != nil {
		return nil, err
	}
	m := &machine{dir: dir, root: filepath.Join(dir, "debian")}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.remove())
		}
	}()

	// Debian, with what the README asks for and what the steps use.
	words := []string{"--variant=minbase", "--include=git,make,ca-certificates,python3,nodejs,procps,curl", "bookworm", m.root}
	if source := os.Getenv("DEBIAN_MIRROR"); source != "" {
		words = append(words, source)
	}
	progress("a fresh Debian: minutes")
	if err := command(ctx, nil, "debootstrap", words...); err != nil {
		return nil, err
	}

	// The way to the registries, and Go.
	for _, file := range []string{"/etc/resolv.conf", "/etc/hosts", "/etc/ssl/certs/ca-certificates.crt"} {
		if err := command(ctx, nil, "cp", "-L", file, m.root+file); err != nil {
			return nil, err
		}
	}
	goroot, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("cannot find Go: %w", err)
	}
	if err := m.bind(ctx, strings.TrimSpace(string(goroot)), "/usr/local/go", "ro"); err != nil {
		return nil, err
	}
	if err := m.bind(ctx, "/dev", "/dev", "rw"); err != nil {
		return nil, err
	}
	return m, m.inside(ctx, "host", nil, "root", "useradd -m -s /bin/bash goose")
}

// bind makes a folder of this machine a folder of the new one.
func (m *machine) bind(ctx context.Context, from, to, how string) error {
	if err := os.MkdirAll(m.root+to, 0o755); err != nil {
		return err
	}
	if err := command(ctx, nil, "mount", "--bind", "-o", how, from, m.root+to); err != nil {
		return err
	}
	m.mounted = append(m.mounted, m.root+to)
	return nil
}

// remove deletes the machine. It deletes nothing while a folder of this machine is mounted there.
func (m *machine) remove() error {
	for _, dir := range m.mounted {
		if err := command(context.Background(), nil, "umount", dir); err != nil {
			return fmt.Errorf("%s stays: %w", m.dir, err)
		}
	}
	m.mounted = nil
	return os.RemoveAll(m.dir)
}

// get clones and builds gozzard, and installs pm2.
func (m *machine) get(ctx context.Context, ours, peers *figures) error {
	// A clone of what is committed here.
	progress("clone and build gozzard")
	began := time.Now()
	if err := command(ctx, nil, "git", "clone", "-q", "--no-hardlinks", ".", m.root+"/home/goose/gozzard"); err != nil {
		return err
	}
	if err := command(ctx, nil, "chroot", m.root, "chown", "-R", "goose:", "/home/goose/gozzard"); err != nil {
		return err
	}
	if err := m.inside(ctx, "host", nil, "goose", "cd ~/gozzard && make build"); err != nil {
		return err
	}
	ours.add("get it (clone and build; npm install)", time.Since(began))

	// pm2, by the npm of this machine: Debian's npm brings hundreds of packages.
	progress("install pm2")
	began = time.Now()
	if err := command(ctx, nil, "npm", "install", "--silent", "--prefix", m.root+"/home/goose/pm2", "pm2"); err != nil {
		return err
	}
	peers.add("get it (clone and build; npm install)", time.Since(began))
	if err := command(ctx, nil, "chroot", m.root, "chown", "-R", "goose:", "/home/goose/pm2"); err != nil {
		return err
	}
	var version bytes.Buffer
	err := m.inside(ctx, "host", &version, "goose", `node -p 'require("/home/goose/pm2/node_modules/pm2/package.json").version'`)
	m.pm2Version = strings.TrimSpace(version.String())
	return err
}

// steps takes the steps of a script, without a network.
func (m *machine) steps(ctx context.Context, name, script string, f *figures) error {
	progress("the steps with " + name)
	var out bytes.Buffer
	err := m.inside(ctx, "own", &out, "goose", sharedScript+script)
	fmt.Print(out.String())
	if err != nil {
		return fmt.Errorf("the steps with %s: %w", name, err)
	}
	return f.read(out.String())
}

// inside runs a script as an account of the machine, in its own process namespace, so that its end ends everything. The
// network is "host" or the machine's "own".
func (m *machine) inside(ctx context.Context, network string, out *bytes.Buffer, account, script string) error {
	words := []string{"--mount", "--pid", "--ipc", "--fork", "--kill-child", "--propagation", "private"}
	up := ":"
	if network == "own" {
		words, up = append(words, "--net"), "ip link set lo up"
	}
	words = append(words, "sh", "-c", up+` && mount -t proc proc "$1/proc" && exec chroot "$1" su - "$2" -c "$3"`, "sh", m.root,
		account, `export PATH=$PATH:/usr/sbin:/usr/local/go/bin GOTOOLCHAIN=local
`+exports()+script)
	return command(ctx, out, "unshare", words...)
}

// exports passes the settings of this machine's registry for Go on.
func exports() string {
	out, err := exec.Command("go", "env", "GOPROXY", "GOSUMDB").Output()
	values := strings.Split(string(out), "\n")
	if err != nil || len(values) < 2 {
		return ""
	}
	return fmt.Sprintf("export GOPROXY='%s' GOSUMDB='%s' GOFLAGS=-buildvcs=false\n", values[0], values[1])
}

func progress(what string) { fmt.Fprintln(os.Stderr, "firsthour:", what) }

// command runs a program. Its output goes to out, or into the error.
func command(ctx context.Context, out *bytes.Buffer, name string, words ...string) error {
	var all bytes.Buffer
	if out == nil {
		out = &all
	}
	cmd := exec.CommandContext(ctx, name, words...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		text := out.Bytes()
		return fmt.Errorf("%s: %w\n%s", name, err, text[max(0, len(text)-2000):])
	}
	return nil
}
