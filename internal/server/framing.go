package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gozzard/gozzard/internal/ratelimit"
)

// Two programs that read one stream of requests must agree where each request ends. A request with both Content-Length
// and Transfer-Encoding has two ends. A proxy may use one and this server the other, and then a part of one caller's
// body becomes the request of another caller. net/http removes Content-Length from such a request and serves it, so the
// connection keeps the bytes of each head until its handler begins.

// maxHead is how many bytes of a request are kept: the longest head that net/http reads, and what it may read beyond.
const maxHead = 24 << 10

// staleBytes is how many bytes at the beginning of a recorded head may belong to the request before. net/http looks for
// so many bytes before it reads the next request.
const staleBytes = 4

// framedListener makes connections that keep the head of each request.
type framedListener struct{ net.Listener }

// Accept waits for a connection.
func (l framedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &framedConn{Conn: c, records: true}, nil
}

// The phases of a connection after a request. net/http sets a deadline for the idle time, waits for the next request,
// and sets the deadline of its head. A read between the two deadlines is the beginning of a request, except for
// staleBytes. When there is no such read, the client has sent requests ahead, and the head is not recorded.
const (
	phaseRequest = iota
	phaseIdle
	phaseWaiting
)

// framedConn is a connection that keeps the head of the present request.
type framedConn struct {
	net.Conn

	mu      sync.Mutex
	phase   int
	records bool
	head    []byte
	stale   int    // bytes of head that may belong to the request before
	last    []byte // the last bytes that were read, up to staleBytes
}

// Read reads, and keeps what belongs to a head.
func (c *framedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.keep(p[:n])
	}
	var plain tls.RecordHeaderError
	if errors.As(err, &plain) && plain.Conn != nil && looksLikeHTTP(plain.RecordHeader) {
		_, _ = io.WriteString(plain.Conn, "HTTP/1.0 400 Bad Request\r\n\r\nthis server speaks HTTPS: use https://\n")
	}
	return n, err
}

// looksLikeHTTP reports whether bytes begin a request without TLS.
func looksLikeHTTP(b [5]byte) bool {
	switch string(b[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "DELET":
		return true
	}
	return false
}

func (c *framedConn) keep(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase == phaseWaiting && !c.records {
		c.records, c.head, c.stale = true, append([]byte(nil), c.last...), len(c.last)
	}
	if c.records {
		c.head = append(c.head, b[:min(len(b), max(0, maxHead-len(c.head)))]...)
	}
	c.last = append(c.last, b[max(0, len(b)-staleBytes):]...)
	c.last = append([]byte(nil), c.last[max(0, len(c.last)-staleBytes):]...)
}

// idle begins the wait for the next request.
func (c *framedConn) idle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.phase, c.records, c.head = phaseIdle, false, nil
}

// take ends the recording and returns the head.
func (c *framedConn) take() (head []byte, stale int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	head, stale = c.head, c.stale
	c.records, c.head, c.stale, c.phase = false, nil, 0, phaseRequest
	return head, stale
}

// setPhase moves on when net/http sets a deadline.
func (c *framedConn) setPhase() {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.phase {
	case phaseIdle:
		c.phase = phaseWaiting
	case phaseWaiting:
		c.phase = phaseRequest
	}
}

// twoLengths reports whether a head says the length of its body by Content-Length, although it has another way, too. It
// also reports true for a head that was not recorded.
func twoLengths(head []byte, stale int) bool {
	if stale > len(head) {
		return true
	}
	end := bytes.Index(head[stale:], []byte("\n\r\n"))
	if bare := bytes.Index(head[stale:], []byte("\n\n")); bare >= 0 && (end < 0 || bare < end) {
		end = bare
	}
	if end < 0 {
		return true
	}

	for line := range bytes.Lines(head[:stale+end]) {
		name, _, _ := bytes.Cut(line, []byte(":"))
		if bytes.EqualFold(bytes.TrimSpace(name), []byte("Content-Length")) {
			return true
		}
	}
	return false
}

type framedKey struct{}

// framed makes a server that rejects requests of two lengths.
func framed(srv *http.Server, refused func(rule string)) {
	next := srv.Handler
	srv.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, framedKey{}, c)
	}
	srv.ConnState = func(c net.Conn, state http.ConnState) {
		if f, ok := c.(*framedConn); ok && state == http.StateIdle {
			f.idle()
		}
	}
	srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := r.Context().Value(framedKey{}).(*framedConn)
		if t, ok := c.Conn.(*tls.Conn); ok {
			state := t.ConnectionState()
			r.TLS = &state
		}
		if head, stale := c.take(); len(r.TransferEncoding) > 0 && twoLengths(head, stale) {
			refused(ratelimit.RuleFraming)
			w.Header().Set("Connection", "close")
			http.Error(w, "the request has both Content-Length and Transfer-Encoding: send one of them",
				http.StatusBadRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// SetReadDeadline sets the deadline of reads.
func (c *framedConn) SetReadDeadline(t time.Time) error {
	c.setPhase()
	return c.Conn.SetReadDeadline(t)
}
