package agentsock_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/agentsock"
)

// A socket on which no program listens is replaced. A socket in use is left alone, and replaced when its program has
// ended.
func TestStaleSocketIsReplaced(t *testing.T) {
	path := filepath.Join(openFolder(t), "agent.sock")
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}

	stale.SetUnlinkOnClose(false) // as when a program is killed

	if err := stale.Close(); err != nil {
		t.Fatal(err)
	}

	before, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}

	first := serve(t, path, "", nil).up(t)
	now, err := os.Lstat(path)
	if err != nil || os.SameFile(before, now) {
		t.Errorf("not replaced: %v", err)
	}

	second := serve(t, path, "", func(o *agentsock.Options) {
		o.Status = func() agentsock.Status { return agentsock.Status{Agent: "second"} }
	})

	until(t, second.log.String, func() bool {
		return strings.Contains(second.log.String(),
			"another program listens on "+path+" (pid ")
	})

	ask := func(want string) {
		t.Helper()
		if st, err := agentsock.NewClient(path).Status(t.Context()); string(st.Agent) != want || err != nil {
			t.Errorf("%q answers, want %q: %v", st.Agent, want, err)
		}
	}

	ask("a1")
	first.stop()
	second.up(t)
	ask("second")
	second.stop()

	if left, err := os.ReadDir(filepath.Dir(path)); len(left) != 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// Files of an agent that was killed while it made its socket are removed.
func TestHalfMadeSocketIsCleared(t *testing.T) {
	dir := openFolder(t)
	nest := filepath.Join(dir, ".agent.sock.new")
	if err := os.Mkdir(nest, 0o700); err != nil {
		t.Fatal(err)
	}

	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(nest, "s"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}

	l.SetUnlinkOnClose(false)

	if err := l.Close(); err != nil {
		t.Fatal(err)
	}

	serve(t, filepath.Join(dir, "agent.sock"), "", nil).up(t)

	if left, err := os.ReadDir(dir); len(left) != 1 || err != nil {
		t.Errorf("%v, %v", left, err)
	}
}

// TE7: a file that has the socket's name and is not a socket is not touched. The socket is made when the file is gone.
func TestTE7OnlySocketsAreReplaced(t *testing.T) {
	for name, put := range map[string]func(path, other string) error{
		"a file":             func(path, _ string) error { return os.WriteFile(path, []byte("kept"), 0o600) },
		"a folder":           func(path, _ string) error { return os.Mkdir(path, 0o700) },
		"a pipe":             func(path, _ string) error { return syscall.Mkfifo(path, 0o600) },
		"a link to a file":   func(path, other string) error { return os.Symlink(other+"/file", path) },
		"a link to a socket": func(path, other string) error { return os.Symlink(other+"/socket", path) },
		"a link to nothing":  func(path, other string) error { return os.Symlink(other+"/nothing", path) },
	} {
		t.Run(name, func(t *testing.T) {
			path, other := filepath.Join(openFolder(t), "agent.sock"), openFolder(t)
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: other + "/socket", Net: "unix"})
			if err != nil {
				t.Fatal(err)
			}

			l.SetUnlinkOnClose(false)

			if err := errors.Join(l.Close(), os.WriteFile(other+"/file", []byte("kept"), 0o600),
				put(path, other)); err != nil {
				t.Fatal(err)
			}

			before, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}

			s := serve(t, path, "", nil)
			until(t, s.log.String, func() bool {
				return strings.Contains(s.log.String(),
					path+" is there and is no socket")
			})

			after, err := os.Lstat(path)
			if err != nil || !os.SameFile(before, after) || before.Mode() != after.Mode() {
				t.Fatalf("%v became %v, %v", before, after, err)
			}

			names, err := os.ReadDir(other)
			if err != nil || len(names) != 2 {
				t.Errorf("%v, %v", names, err)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}

			s.up(t)
		})
	}
}

// TE7: no socket is made in a folder that other accounts can write.
func TestTE7FolderOfOthers(t *testing.T) {
	needsRoot(t)

	for name, change := range map[string]func(dir string) error{
		"everybody writes":      func(dir string) error { return os.Chmod(dir, 0o777) },
		"sticky":                func(dir string) error { return os.Chmod(dir, 0o777|os.ModeSticky) },
		"a group writes":        func(dir string) error { return os.Chmod(dir, 0o775) },
		"of another account":    func(dir string) error { return os.Chown(dir, 54321, 54321) },
		"everybody writes over": func(dir string) error { return os.Chmod(filepath.Dir(dir), 0o777) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(openFolder(t), "run")
			if err := errors.Join(os.Mkdir(dir, 0o755), change(dir)); err != nil {
				t.Fatal(err)
			}
			s := serve(t, filepath.Join(dir, "agent.sock"), "", nil)
			until(t, s.log.String, func() bool {
				return strings.Contains(s.log.String(),
					"cannot use the socket's folder")
			})
			if names, err := os.ReadDir(dir); len(names) != 0 || err != nil {
				t.Errorf("%v, %v", names, err)
			}
		})
	}
}

// If the folder or the group does not exist, the log says so once, and the socket is made when it exists.
func TestSocketComesLater(t *testing.T) {
	dir := filepath.Join(openFolder(t), "run")
	s := serve(t, filepath.Join(dir, "agent.sock"), "", nil)
	until(t, s.log.String, func() bool { return strings.Contains(s.log.String(), "no such file or directory") })
	other := serve(t, filepath.Join(openFolder(t), "agent.sock"), "no-such-group", nil)
	until(t, other.log.String, func() bool {
		return strings.Contains(other.log.String(),
			"group: unknown group no-such-group")
	})

	time.Sleep(time.Second) // in which it is tried again

	if n := strings.Count(s.log.String(), "cannot serve the local socket"); n != 1 {
		t.Errorf("said %d times", n)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}

	s.up(t)
}

// An address of a socket has 107 bytes; a state folder may have more.
func TestLongPath(t *testing.T) {
	dir := filepath.Join(openFolder(t), strings.Repeat("long/", 60))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s := serve(t, filepath.Join(dir, "agent.sock"), "", nil).up(t)
	if st, err := agentsock.NewClient(s.path).Status(t.Context()); st.Agent != "a1" || err != nil {
		t.Errorf("%+v, %v", st, err)
	}
}

// The socket of another program with the same name is not removed at the end.
func TestEndTakesOnlyItsOwn(t *testing.T) {
	s := serve(t, filepath.Join(openFolder(t), "agent.sock"), "", nil).up(t)
	if err := os.Remove(s.path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.path, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.stop()
	if b, err := os.ReadFile(s.path); string(b) != "kept" {
		t.Errorf("%q, %v", b, err)
	}
}

// Whatever the answer of a socket is, the client returns an error in words.
func TestClientOfAnything(t *testing.T) {
	for name, c := range map[string]struct{ answer, want string }{
		"nothing": {"", "closed the connection without an answer"},
		"no HTTP": {"\x00\xff\r\n\r\n", "cannot ask the agent"},
		"no JSON": {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[}", "cannot read the answer"},
		"cut off": {"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{", "cannot read the answer"},
		"headers": {"HTTP/1.1 200 OK\r\n" + strings.Repeat("X-A: b\r\n", 1<<16) + "\r\n", "the agent at "},
		"redirect": {"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
			"rejected the request: 302 Found"},
		"a refusal": {"HTTP/1.1 403 No\r\nContent-Length: 16\r\n\r\n" + `{"error":"mine"}`, "not allowed: mine"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(openFolder(t), "agent.sock")
			l, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}

			done := make(chan struct{})
			go func() {
				defer close(done)
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					_, _ = conn.Read(make([]byte, 4096)) // the request, which fits
					_, _ = io.Copy(conn, strings.NewReader(c.answer))
					_ = conn.Close()
				}
			}()

			defer func() { _ = l.Close(); <-done }()

			if _, err := agentsock.NewClient(path).Status(t.Context()); err == nil ||
				!strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TD1: a request that is too large, too slow or over the limit ends its own connection and no other.
func TestTD1LocalSocket(t *testing.T) {
	s := serve(t, filepath.Join(openFolder(t), "agent.sock"), "", nil).up(t)
	for name, c := range map[string]struct {
		request string
		code    int
	}{
		"header": {"GET /status HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n",
			http.StatusRequestHeaderFieldsTooLarge},
		"path": {"GET /" + strings.Repeat("x", 64<<10) + " HTTP/1.1\r\nHost: a\r\n\r\n",
			http.StatusRequestHeaderFieldsTooLarge},
		"body": {"POST /reconnect HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{\"a\":\"b\"}",
			http.StatusBadRequest},
		"great body": {"POST /reconnect HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n{",
			http.StatusBadRequest},
		"chunks": {"POST /reconnect HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
			http.StatusBadRequest},
		"parameters":   {"POST /reconnect?all=1 HTTP/1.1\r\nHost: a\r\n\r\n", http.StatusBadRequest},
		"other verb":   {"GET /reconnect HTTP/1.1\r\nHost: a\r\n\r\n", http.StatusMethodNotAllowed},
		"other path":   {"POST /stop HTTP/1.1\r\nHost: a\r\n\r\n", http.StatusNotFound},
		"dots":         {"GET /x/../status HTTP/1.1\r\nHost: a\r\n\r\n", http.StatusNotFound},
		"everything":   {"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", http.StatusNotFound},
		"one, not two": {getStatus + postReconnect, http.StatusOK},
	} {
		if h := ask(s.path, c.request); h.Code != c.code || strings.Count(h.Body, "HTTP/1.1") != 0 {
			t.Errorf("%s: %+v", name, h)
		}
	}

	if s.reconnects.Load() != 0 {
		t.Error("the agent reconnected")
	}

	slow := serve(t, filepath.Join(openFolder(t), "agent.sock"), "",
		func(o *agentsock.Options) { o.HeaderTime = 200 * time.Millisecond }).up(t)

	// Run does not wait longer than that; otherwise the test would end with a time-out.
	for _, begin := range []string{"", "GET /status HTTP/1.1\r\nX"} {
		if h := ask(slow.path, begin); h.Code == 200 || h.Refused != "" {
			t.Errorf("%q and nothing more: %+v", begin, h)
		}
	}
}

// TD1: owners have a separate limit, members share one, and each member may use only a part of it.
func TestTD1TooManyConnections(t *testing.T) {
	needsRoot(t)
	s := serve(t, filepath.Join(openFolder(t), "agent.sock"), "100", nil).up(t)
	alice, bob := account{uid: 54321, gid: 100}, account{uid: 54322, gid: 100}
	if h := alice.asks(t, s.path, getStatus, 3); h.Code != 200 {
		t.Errorf("a member beside 3 of her own: %+v", h)
	}
	if h := alice.asks(t, s.path, getStatus, 4); h.Bytes != 0 {
		t.Errorf("a member beside 4 of her own: %+v", h)
	}

	root := account{}
	if h := root.asks(t, s.path, getStatus, 15); h.Code != 200 {
		t.Errorf("root beside 15 of its own: %+v", h)
	}

	// Those of before may still have their places, so that some of the idle ones are closed at once: then others follow.
	var idle []net.Conn
	h := heard{Bytes: -1}
	for tries := 0; tries < 20 && h.Bytes != 0; tries++ {
		for range 200 {
			c, err := net.Dial("unix", s.path)
			if err != nil {
				t.Fatal(err)
			}
			idle = append(idle, c)
		}
		h = root.asks(t, s.path, getStatus, 0)
	}
	if h.Bytes != 0 {
		t.Errorf("root beside 200 of its own: %+v", h)
	}
	if h := bob.asks(t, s.path, getStatus, 0); h.Code != 200 {
		t.Errorf("a member beside 200 of root: %+v", h)
	}

	for _, c := range idle {
		_ = c.Close()
	}

	until(t, func() string { return "room is not made again" },
		func() bool { return ask(s.path, getStatus).Code == 200 })
}

// An answer lists a bounded number of processes and says how many there are.
func TestProcessesAreBounded(t *testing.T) {
	s := serve(t, filepath.Join(openFolder(t), "agent.sock"), "", func(o *agentsock.Options) {
		o.Processes = func(most int) ([]agentsock.Process, int) { return make([]agentsock.Process, most), 1_000_000 }
	}).up(t)
	p, err := agentsock.NewClient(s.path).Processes(t.Context())
	if err != nil || p.Count != 1_000_000 || len(p.Processes) != agentsock.MaxProcesses {
		t.Errorf("%d of %d, %v", len(p.Processes), p.Count, err)
	}
}

// TD1: clients that ask for large answers and do not read them block neither memory nor other clients.
func TestTD1UnreadAnswers(t *testing.T) {
	needsRoot(t)

	s := serve(t, filepath.Join(openFolder(t), "agent.sock"), "100", func(o *agentsock.Options) {
		// more than fits into the buffer of a socket
		o.Processes = func(most int) ([]agentsock.Process, int) { return make([]agentsock.Process, 3000), 3000 }
	}).up(t)

	var idle []net.Conn
	defer func() {
		for _, c := range idle {
			_ = c.Close()
		}
	}()

	for range 4 {
		c, err := net.Dial("unix", s.path)
		if err != nil {
			t.Fatal(err)
		}
		idle = append(idle, c)
		if _, err := io.WriteString(c, getProcesses); err != nil {
			t.Fatal(err)
		}
	}

	if h := (account{uid: 54321, gid: 100}).asks(t, s.path, getProcesses, 0); h.Code != 200 {
		t.Errorf("a member beside owners that do not read: %d", h.Code)
	}
	if h := ask(s.path, getStatus); h.Code != 200 {
		t.Errorf("how it stands: %+v", h)
	}

	later := 0 // two requests are being answered and use the memory of their answers
	for _, c := range idle {
		head := make([]byte, len("HTTP/1.1 503"))
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		if _, err := io.ReadFull(c, head); err != nil {
			t.Error(err)
		}
		if string(head) == "HTTP/1.1 503" {
			later++
		}
	}

	if later != len(idle)-2 {
		t.Errorf("%d of %d were asked to try later", later, len(idle))
	}

	until(t, func() string { return "clients that do not read are never disconnected" },
		func() bool { return ask(s.path, getProcesses).Code == 200 })
}
