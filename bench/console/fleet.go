//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// bigFleet is a running server with simulated hosts.
type bigFleet struct {
	server, hosts *exec.Cmd
	url           string
	authorization string        // the header of the app
	reported      time.Duration // from the start of the hosts until the server knew all processes
}

const benchUser, benchPassword = "bench", "a-long-password-for-loopback-only"

func startFleet(ctx context.Context, o options) (_ *bigFleet, err error) {
	f := &bigFleet{}
	defer func() {
		if err != nil {
			f.stop()
		}
	}()

	// Start the server.
	data := filepath.Join(o.dir, "data")
	agents, err := freeAddr()
	if err != nil {
		return nil, err
	}
	log, err := logFile(o.dir, "server")
	if err != nil {
		return nil, err
	}
	f.server = child(o.binary, "server", "--data", data, "--listen", "127.0.0.1:0", "--agent-listen", agents,
		"--rate-app=0", "--confirm-above=0", "--confirm-above-percent=0", "--destructive-quota=0", "--max-connections=0", "--max-in-flight=0", "--max-connections-total=0", "--max-agent-connections=0")
	f.server.Stdout, f.server.Stderr = log, log
	if err := f.server.Start(); err != nil {
		return nil, err
	}
	if err := f.connect(ctx, filepath.Join(data, "credentials.json")); err != nil {
		return nil, err
	}
	if err := f.addUser(ctx); err != nil {
		return nil, err
	}

	fmt.Fprintln(os.Stderr, "console: the server is up at", f.url)

	// Start the hosts, and wait for their reports.
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	state := filepath.Join(o.dir, "hosts")
	if err := os.Mkdir(state, 0o700); err != nil {
		return nil, err
	}
	began := time.Now()
	f.hosts = child(self, reporterRole, strconv.Itoa(o.hosts), strconv.Itoa(o.processes), strconv.Itoa(o.changes), agents,
		filepath.Join(data, "join.secret"), state)
	f.hosts.Stderr = log
	out, err := f.hosts.StdoutPipe()
	if err != nil {
		return nil, err
	}
	in, err := f.hosts.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := f.hosts.Start(); err != nil {
		return nil, err
	}
	if err := f.direct(ctx, o, in, bufio.NewReader(out)); err != nil {
		text, _ := os.ReadFile(log.Name()) // only for the message
		return nil, fmt.Errorf("the hosts did not report: %w\n%s", err, text[max(0, len(text)-2000):])
	}
	if err := f.awaitRows(ctx, o.hosts*o.processes); err != nil {
		return nil, err
	}
	f.reported = time.Since(began)
	return f, nil
}

// direct waits until the server knows all hosts, and then lets them report.
func (f *bigFleet) direct(ctx context.Context, o options, in io.Writer, out *bufio.Reader) error {
	if _, err := out.ReadString('\n'); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "console: the hosts are connected")
	err := f.until(ctx, "every host", func() error {
		text, err := f.call(ctx, http.MethodGet, "/api/v1/hosts?limit=1", nil)
		if err != nil {
			return err
		}
		return counted(text, o.hosts, "hosts")
	})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(in, "go"); err != nil {
		return err
	}
	if _, err := out.ReadString('\n'); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "console: the hosts have reported")
	return nil
}

// counted fails if a page is not one of so many rows.
func counted(text []byte, n int, what string) error {
	var page struct {
		Count int `json:"count"`
	}
	if err := json.Unmarshal(text, &page); err != nil {
		return err
	}
	if page.Count != n {
		return fmt.Errorf("%d of %d %s are known", page.Count, n, what)
	}
	return nil
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

func (f *bigFleet) stop() {
	for _, c := range []*exec.Cmd{f.hosts, f.server} {
		if c == nil || c.Process == nil {
			continue
		}
		_ = c.Process.Signal(syscall.SIGTERM) // fails when it has ended already
		timer := time.AfterFunc(20*time.Second, func() { _ = c.Process.Kill() })
		_ = c.Wait() // how it ended does not matter any more
		timer.Stop()
	}
}

// connect waits until the server answers.
func (f *bigFleet) connect(ctx context.Context, path string) error {
	return f.until(ctx, "the server", func() error {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var c map[string]string
		if err := json.Unmarshal(text, &c); err != nil {
			return err
		}
		f.url = c["url"]
		delete(c, "url")
		header, err := json.Marshal(c)
		if err != nil {
			return err
		}
		f.authorization = string(header)
		_, err = f.call(ctx, http.MethodGet, "/readyz", nil)
		return err
	})
}

// addUser makes a person that sees everything and may sign in.
func (f *bigFleet) addUser(ctx context.Context) error {
	_, err := f.call(ctx, http.MethodPost, "/api/v1/users", map[string]any{"name": benchUser, "password": benchPassword,
		"grants": []map[string]any{{"role": "admin"}}})
	return err
}

func (f *bigFleet) awaitRows(ctx context.Context, n int) error {
	return f.until(ctx, "the whole fleet", func() error {
		text, err := f.call(ctx, http.MethodGet, "/api/v1/processes?limit=1", nil)
		if err != nil {
			return err
		}
		return counted(text, n, "processes")
	})
}

// until repeats a question until it has an answer.
func (f *bigFleet) until(ctx context.Context, what string, ask func() error) error {
	end := time.Now().Add(5 * time.Minute)
	for {
		err := ask()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Now().After(end):
			return fmt.Errorf("%s is not there: %w", what, err)
		}
		time.Sleep(200 * time.Millisecond) // between two questions; nothing is measured meanwhile
	}
}

// call sends a request with the credentials of the app.
func (f *bigFleet) call(ctx context.Context, method, path string, body any) ([]byte, error) {
	var content io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, method, f.url+path, content)
	if err != nil {
		return nil, err
	}
	r.Header.Set("X-Bkapi-Authorization", f.authorization)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}

	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 64<<20))
	if err == nil && answer.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, strings.TrimSpace(string(text)))
	}
	return text, err
}

// cpuOf is the CPU time of a process so far.
func cpuOf(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, err
	}
	_, rest, ok := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 13 {
		return 0, errors.New("cannot read the CPU time of a process")
	}
	var ticks int64
	for _, text := range fields[11:13] {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

// memoryOf is the memory that a process has for itself alone.
func memoryOf(pid int) (bytes int64, err error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "smaps_rollup"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(line, ":")
		if name != "Private_Clean" && name != "Private_Dirty" {
			continue
		}
		kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		if err != nil {
			return 0, err
		}
		bytes += kb << 10
	}
	if bytes == 0 {
		return 0, errors.New("cannot read the memory of a process")
	}
	return bytes, nil
}
