package agentsock_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gozzard/gozzard/internal/agentsock"
)

const helperVariable = "GOZZARD_LOCAL_HELPER"

// TestMain runs this program as a helper of another account, which serves a socket or sends requests to one.
func TestMain(m *testing.M) {
	switch os.Getenv(helperVariable) {
	case "":
		goleak.VerifyTestMain(m)
	case "talk":
		talk(os.Args[1], os.Args[2])
	case "serve":
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		// it never fails
		_ = agentsock.New(options(os.Args[1], "", slog.New(slog.NewTextHandler(os.Stderr, nil)),
			new(atomic.Int64))).Run(ctx)
	}
}

// heard is what a client received from a socket.
type heard struct {
	Refused string // the error of the system when connecting
	Code    int    // 0 if there was no answer
	Bytes   int
	Body    string
}

// talk prints what a client receives: idle connections are kept open, then a request is sent on one more.
func talk(path, request string) {
	idle, _ := strconv.Atoi(os.Getenv(helperVariable + "_IDLE"))
	for range idle {
		if c, err := net.Dial("unix", path); err == nil {
			defer c.Close()
		}
	}
	_ = json.NewEncoder(os.Stdout).Encode(ask(path, request)) // the reader fails without it
}

func ask(path, request string) (h heard) {
	c, err := net.Dial("unix", path)
	if err != nil {
		h.Refused = err.Error()
		return h
	}

	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	_, _ = io.WriteString(c, request) // a rejected client may be disconnected meanwhile
	b, err := io.ReadAll(io.LimitReader(c, 1<<20))
	h.Bytes = len(b)

	if err != nil && !errors.Is(err, syscall.ECONNRESET) {
		h.Refused = err.Error()
	}

	head, body, _ := strings.Cut(string(b), "\r\n\r\n")
	if words := strings.Fields(head); len(words) > 1 {
		h.Code, _ = strconv.Atoi(words[1])
	}

	h.Body = body
	return h
}

// account is an account of this host.
type account struct {
	uid, gid uint32
	groups   []uint32
}

func (a account) command(mode string, args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...) // other accounts cannot enter the folder of the test
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), helperVariable+"="+mode, "GORACE=atexit_sleep_ms=0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: a.uid, Gid: a.gid, Groups: a.groups}}
	return cmd
}

// asks sends a request from a process of the account, which also opens the given number of idle connections.
func (a account) asks(t *testing.T, path, request string, idle int) (h heard) {
	t.Helper()
	cmd := a.command("talk", path, request)
	cmd.Env = append(cmd.Env, helperVariable+"_IDLE="+strconv.Itoa(idle))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &h); err != nil {
		t.Fatalf("%v: %q", err, out)
	}
	return h
}

const (
	getStatus     = "GET /status HTTP/1.1\r\nHost: agent\r\n\r\n"
	getProcesses  = "GET /processes HTTP/1.1\r\nHost: agent\r\n\r\n"
	postReconnect = "POST /reconnect HTTP/1.1\r\nHost: agent\r\n\r\n"
)

// lines is a log that can be read while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func options(path, group string, log *slog.Logger, reconnects *atomic.Int64) agentsock.Options {
	return agentsock.Options{
		Path: path, Group: group, Log: log, HeaderTime: time.Minute,
		Status: func() agentsock.Status { return agentsock.Status{Agent: "a1", Version: "v"} },
		Processes: func(most int) ([]agentsock.Process, int) {
			return []agentsock.Process{{Namespace: "shop", Name: "web\x1b[31m", State: "running", PID: 7}}, 1
		},
		Reconnect: func() error { reconnects.Add(1); return nil },
	}
}

// served is a socket that is being served.
type served struct {
	path       string
	log        lines
	reconnects atomic.Int64
	stop       func()
}

func serve(t *testing.T, path, group string, change func(*agentsock.Options)) *served {
	t.Helper()
	s := &served{path: path}
	o := options(path, group, slog.New(slog.NewTextHandler(&s.log, nil)), &s.reconnects)

	if change != nil {
		change(&o)
	}

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- agentsock.New(o).Run(ctx) }()

	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})

	t.Cleanup(s.stop)
	return s
}

// up waits until the socket answers.
func (s *served) up(t *testing.T) *served {
	t.Helper()
	until(t, s.log.String, func() bool { return strings.Contains(s.log.String(), "local socket is served") })
	return s
}

func until(t *testing.T, words func() string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited too long: %s", words())
		}
	}
}

// openFolder is a folder of root that every account may enter.
func openFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "gozzard-local-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func needsRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("not root")
	}
}
