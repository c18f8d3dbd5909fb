//go:build linux

package compat_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a test waits for a state before it fails.
const patience = time.Minute

// binary builds the program of this checkout once, as in a release. GOZZARD_BINARY names a program to use instead.
var binary = sync.OnceValues(func() (string, error) {
	if p := os.Getenv("GOZZARD_BINARY"); p != "" {
		return filepath.Abs(p)
	}

	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}

	program := filepath.Join(buildDir, "gozzard")
	cmd := exec.Command("go", "build", "-trimpath", "-o", program, "./cmd/gozzard")
	cmd.Dir = filepath.Dir(strings.TrimSpace(string(out)))
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if b, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, b)
	}

	return program, nil
})

// buildDir is where binary puts the program. TestMain makes and removes it.
var buildDir string

func TestMain(m *testing.M) {
	var err error
	if buildDir, err = os.MkdirTemp("", "gozzard-compat-bin-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(buildDir)
	os.Exit(code)
}

func binaryOf(t *testing.T) string {
	t.Helper()
	program, err := binary()
	if err != nil {
		t.Fatalf("cannot build the program: %v", err)
	}
	return program
}

// daemon is a gozzard process that runs in the background of a test.
type daemon struct {
	t    *testing.T
	name string
	log  string
	cmd  *exec.Cmd
	end  chan struct{}
}

// start runs the program in the background. It ends with the test; its output is shown when the test fails.
func start(t *testing.T, name string, args ...string) *daemon {
	t.Helper()
	d := &daemon{t: t, name: name, log: filepath.Join(t.TempDir(), "log"), end: make(chan struct{})}
	out, err := os.Create(d.log)
	if err != nil {
		t.Fatal(err)
	}

	defer out.Close()

	d.cmd = exec.Command(binaryOf(t), args...)
	d.cmd.Env = environment()
	d.cmd.Stdout, d.cmd.Stderr = out, out
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}

	go func() {
		_ = d.cmd.Wait()
		close(d.end)
	}()

	t.Cleanup(func() {
		d.stop(syscall.SIGKILL)
		if t.Failed() {
			t.Logf("--- output of %s %v\n%s", name, args, d.output())
		}
	})

	return d
}

// environment is that of the test without settings of the program.
func environment() (env []string) {
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GOZZARD_") {
			env = append(env, v)
		}
	}
	return env
}

// stop sends a signal and waits for the end of the process.
func (d *daemon) stop(sig syscall.Signal) {
	_ = d.cmd.Process.Signal(sig)
	select {
	case <-d.end:
	case <-time.After(20 * time.Second):
		_ = d.cmd.Process.Kill()
		<-d.end
	}
}

// output is the end of what the process has printed.
func (d *daemon) output() []byte {
	b, _ := os.ReadFile(d.log)
	return b[max(0, len(b)-6000):]
}

// until waits for a condition. It fails the test at once when the process ends.
func (d *daemon) until(what string, condition func() bool) {
	d.t.Helper()
	wait(d.t, what, func() bool {
		select {
		case <-d.end:
			d.t.Fatalf("%s has ended (%v) before this: %s", d.name, d.cmd.ProcessState, what)
		default:
		}
		return condition()
	})
}

// wait waits for a condition.
func wait(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !condition(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("this did not happen: %s", what)
		}
	}
}

// run runs a command of the program to its end and returns its standard output and its exit code. env is added to the
// environment.
func run(t *testing.T, env []string, args ...string) (stdout string, code int) {
	t.Helper()
	cmd := exec.Command(binaryOf(t), args...)
	cmd.Env = append(environment(), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatalf("gozzard %v: %v", args, err)
	}
	if code = cmd.ProcessState.ExitCode(); code != 0 {
		t.Logf("gozzard %v: exit code %d\n%s", args, code, errs.Bytes())
	}

	return out.String(), code
}

// must is run with exit code 0.
func must(t *testing.T, env []string, args ...string) string {
	t.Helper()
	out, code := run(t, env, args...)
	if code != 0 {
		t.Fatalf("gozzard %v: exit code %d", args, code)
	}
	return out
}

// freeAddress finds a loopback address with an unused port.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
