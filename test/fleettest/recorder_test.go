//go:build linux

package fleettest_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// recorder relays the connections of an agent. It keeps the messages that the server sends, and can send them again: what
// anybody on the way between server and agent could do.
type recorder struct {
	l  net.Listener
	to string
	wg sync.WaitGroup

	mu       sync.Mutex
	messages [][]byte // as NATS sends them
	agent    net.Conn // the newest connection
	conns    []net.Conn
}

func newRecorder(t *testing.T, to string) *recorder {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{l: l, to: to}
	r.wg.Go(r.accept)
	t.Cleanup(func() {
		_ = l.Close()
		r.mu.Lock()
		for _, c := range r.conns {
			_ = c.Close()
		}
		r.mu.Unlock()
		r.wg.Wait()
	})
	return r
}

func (r *recorder) addr() string { return r.l.Addr().String() }

func (r *recorder) accept() {
	for {
		agent, err := r.l.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", r.to)
		if err != nil {
			_ = agent.Close()
			continue
		}
		r.mu.Lock()
		r.agent, r.conns = agent, append(r.conns, agent, server)
		r.mu.Unlock()
		r.wg.Go(func() { _, _ = io.Copy(server, agent); _ = server.Close() })
		r.wg.Go(func() { r.relay(server, agent); _ = agent.Close() })
	}
}

// relay passes on what the server sends, one message after the other.
func (r *recorder) relay(server, agent net.Conn) {
	in := bufio.NewReader(server)
	for {
		frame, isMessage, err := readFrame(in)
		if err != nil {
			return
		}
		r.mu.Lock()
		if isMessage {
			r.messages = append(r.messages, frame)
		}
		_, err = agent.Write(frame)
		r.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// readFrame reads a line of NATS, with the payload that follows a message.
func readFrame(in *bufio.Reader) (frame []byte, isMessage bool, err error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return nil, false, err
	}
	fields := strings.Fields(line)
	if len(fields) == 0 || fields[0] != "MSG" && fields[0] != "HMSG" {
		return []byte(line), false, nil
	}
	n, err := strconv.Atoi(fields[len(fields)-1])
	if err != nil {
		return nil, false, fmt.Errorf("%q: %w", line, err)
	}
	frame = append([]byte(line), make([]byte, n+2)...)
	_, err = io.ReadFull(in, frame[len(line):])
	return frame, true, err
}

// replay sends every message to the agent again, and returns how many there are.
func (r *recorder) replay(t *testing.T) int {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.messages {
		if _, err := r.agent.Write(m); err != nil {
			t.Fatal(err)
		}
	}
	return len(r.messages)
}
