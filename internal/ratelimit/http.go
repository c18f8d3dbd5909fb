package ratelimit

import (
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// The time limits of a request. A body has a fixed time and additional time for its length, so that an honest slow
// client is fast enough. Of that, the fixed time is the longest without progress.
const (
	bodyTime   = 15 * time.Second
	bodyPace   = 64 << 10 // bytes per second
	answerTime = 5 * time.Minute
)

// maxRead limits one read of a body, so that a body takes room for little more than what has arrived.
const maxRead = 16 << 10

// What is read and dropped of a body that the server answers without reading it to its end. Most clients send
// everything before they read. If the server closed the connection earlier, the client would get an error instead of
// the answer. Only for callers that are identified the server reads more than a little.
const (
	drainBytes     = 8 << 20
	drainLongBytes = 256 << 20
	drainTime      = 30 * time.Second
)

// setSecurityHeaders sets the headers that protect browsers. No answer is a page, may be framed or stored. There is no
// CORS header, so scripts of other sites cannot read an answer.
func setSecurityHeaders(h http.Header, r *http.Request) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	if r.TLS != nil {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// setDeadlines limits the time of a request's body and of its answer. After the body has arrived there is no read
// limit: the server may take its time, and a client that waits for an event sends nothing meanwhile. The answer must be
// written to the writer that it returns; within limits the time for the rest of a body that is not used. What is read of
// the body counts in held until the caller is identified.
func setDeadlines(w http.ResponseWriter, r *http.Request, within time.Duration, held *holding) http.ResponseWriter {
	c := http.NewResponseController(w)
	now := time.Now()
	_ = c.SetWriteDeadline(now.Add(answerTime)) // recorders of tests do not support it

	if r.Body == nil || r.Body == http.NoBody {
		_ = c.SetReadDeadline(time.Time{})
		return w
	}
	if c.SetReadDeadline(now.Add(bodyTime)) != nil {
		return w
	}

	body := &pacedBody{ReadCloser: r.Body, control: c, until: now.Add(bodyTime), drains: drainBytes, drainTime: within,
		asks: r.Header.Get("Expect") != "", held: held}
	r.Body = body
	return &drainingWriter{ResponseWriter: w, body: body}
}

// drainingWriter reads the rest of the body before the answer begins.
type drainingWriter struct {
	http.ResponseWriter
	body *pacedBody
}

// WriteHeader begins the answer.
func (w *drainingWriter) WriteHeader(code int) {
	w.body.drain()
	w.ResponseWriter.WriteHeader(code)
}

// Write writes a part of the answer.
func (w *drainingWriter) Write(b []byte) (int, error) {
	w.body.drain()
	return w.ResponseWriter.Write(b)
}

// Unwrap gives http.ResponseController access to the connection.
func (w *drainingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// pacedBody extends the deadline while the body arrives.
type pacedBody struct {
	io.ReadCloser
	control *http.ResponseController
	until   time.Time
	pending int // bytes that have not extended the deadline yet

	drains    int64 // how many bytes are dropped at most
	drainTime time.Duration
	asks      bool // the client waits until the server reads ("Expect: 100-continue")
	begun     bool // the server has read
	ended     bool // there is nothing more to read
	held      *holding
	dropped   atomic.Bool // others needed its room
}

// DropLong makes the server read and drop also a long body before it answers. The doors call it, by this name, when an
// identified caller sends too much.
func (b *pacedBody) DropLong() { b.drains = drainLongBytes }

// Identified ends the count of the body among those of unknown callers. The doors call it, by this name, when they know
// the app before the whole body is read, or read only to drop.
func (b *pacedBody) Identified() { b.held.release() }

// drop ends a body that holds room which others need.
func (b *pacedBody) drop() {
	b.dropped.Store(true)
	_ = b.control.SetReadDeadline(time.Now()) // cannot fail: it was set before
}

func (b *pacedBody) Read(p []byte) (int, error) {
	b.begun = true
	p = p[:min(len(p), maxRead)]
	if err := b.held.grow(int64(len(p)), b.drop); err != nil {
		return 0, err
	}

	n, err := b.ReadCloser.Read(p)
	b.held.add(n)
	if b.dropped.Load() {
		b.ended = true
		return 0, errNoRoom("the body arrived too slowly while many unknown callers sent bodies")
	}
	b.ended = err != nil
	switch b.pending += n; {
	case err == io.EOF:
		_ = b.control.SetReadDeadline(time.Time{}) // cannot fail: it was set before
	case b.pending >= bodyPace:
		b.until = b.until.Add(time.Duration(b.pending) * time.Second / bodyPace)
		b.pending = 0
		until := b.until
		if soon := time.Now().Add(bodyTime); soon.Before(until) { // fast bytes buy no time for a client that then stops
			until = soon
		}
		_ = b.control.SetReadDeadline(until)
	}
	return n, err
}

// drain reads and drops the rest of the body, up to a size and for a time. It does nothing for a client that waits and
// has sent nothing.
func (b *pacedBody) drain() {
	if b.ended || b.asks && !b.begun {
		return
	}
	b.ended = true
	b.held.release() // what follows is not kept

	// The end of the body ends its time limit. Otherwise the connection is of no use any more: net/http must not wait for
	// the rest either.
	_ = b.control.SetReadDeadline(time.Now().Add(b.drainTime)) // cannot fail: it was set before
	_, err := io.CopyN(io.Discard, b.ReadCloser, b.drains)
	if err == io.EOF {
		_ = b.control.SetReadDeadline(time.Time{})
		return
	}
	_ = b.control.SetReadDeadline(time.Now())
}
