package agentsock

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"syscall"
	"time"
)

// Errors that callers act on.
var (
	ErrNotRunning = errors.New("no agent listens")
	ErrNotAllowed = errors.New("not allowed")
)

// Limits of an answer. They are needed because any program may have made the socket.
const (
	clientTime = 20 * time.Second
	maxHead    = 16 << 10
	maxAnswer  = 64 << 20
)

// Client sends requests to the agent behind a socket. It uses the form of HTTP requests and answers, with one
// connection for each request.
type Client struct{ path string }

// NewClient makes a client for the socket at a path.
func NewClient(path string) *Client { return &Client{path} }

// Status returns the state of the agent.
func (c *Client) Status(ctx context.Context) (st Status, err error) {
	return st, c.ask(ctx, http.MethodGet, "/status", &st)
}

// Processes returns the processes that the agent manages.
func (c *Client) Processes(ctx context.Context) (p Processes, err error) {
	return p, c.ask(ctx, http.MethodGet, "/processes", &p)
}

// Reconnect makes the agent close its connection to the server and open it again. It does not wait for that.
func (c *Client) Reconnect(ctx context.Context) error {
	return c.ask(ctx, http.MethodPost, "/reconnect", &struct{}{})
}

// ask sends one request and decodes the answer.
func (c *Client) ask(ctx context.Context, method, verb string, into any) error {
	// Connect.
	ctx, cancel := context.WithTimeout(ctx, clientTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://agent"+verb, nil)
	if err != nil {
		return fmt.Errorf("cannot ask the agent: %w", err)
	}

	conn, err := dial(ctx, c.path)
	if err != nil {
		return c.explain(err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // ends reads and writes
	defer stop()

	// Send the request and read the answer.
	if err := req.Write(conn); err != nil {
		return c.explain(err)
	}
	bound := &io.LimitedReader{R: conn, N: maxHead}
	res, err := http.ReadResponse(bufio.NewReader(bound), req)
	if err != nil {
		return c.explain(err)
	}
	defer res.Body.Close()
	bound.N = maxAnswer
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return fmt.Errorf("cannot read the answer of the agent at %s: %w", c.path, err)
	}

	// Decode it.
	if res.StatusCode >= 300 {
		var f fault
		if json.Unmarshal(b, &f) != nil || f.Error == "" {
			f.Error = res.Status
		}
		if res.StatusCode == http.StatusForbidden {
			return fmt.Errorf("the agent at %s rejected the request: %w: %s", c.path, ErrNotAllowed, f.Error)
		}
		return fmt.Errorf("the agent at %s rejected the request: %s", c.path, f.Error)
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("cannot read the answer of the agent at %s: %w", c.path, err)
	}
	return nil
}

// explain turns an error of the system into one that says what to do about it.
func (c *Client) explain(err error) error {
	const elsewhere = "it does not run, has its socket elsewhere (--data, --socket), or runs without a socket " +
		"(its log says why); gozzard agent --data DIR starts it"
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%w on %s: %s", ErrNotRunning, c.path, elsewhere)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w to use %s: run this as root, as the account of the agent, "+
			"or as a member of the group of its --socket-group", ErrNotAllowed, c.path)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE):
		return fmt.Errorf("%w: the agent at %s closed the connection without an answer: it answers root, its own "+
			"account and members of its --socket-group, a few at a time", ErrNotAllowed, c.path)
	}
	return fmt.Errorf("cannot ask the agent at %s: %w", c.path, err)
}
