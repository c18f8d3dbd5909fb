package ratelimit

import (
	"io"
	"net/http"
	"time"
)

// The time limits of a request. A body has a fixed time and additional time for its length, so that an honest slow
// client is fast enough.
const (
	bodyTime   = 15 * time.Second
	bodyPace   = 64 << 10 // bytes per second
	answerTime = 5 * time.Minute
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
// limit: the server may take its time, and a client that waits for an event sends nothing meanwhile.
func setDeadlines(w http.ResponseWriter, r *http.Request) {
	c := http.NewResponseController(w)
	now := time.Now()
	_ = c.SetWriteDeadline(now.Add(answerTime)) // recorders of tests do not support it

	if r.Body == nil || r.Body == http.NoBody {
		_ = c.SetReadDeadline(time.Time{})
		return
	}
	if c.SetReadDeadline(now.Add(bodyTime)) == nil {
		r.Body = &pacedBody{ReadCloser: r.Body, control: c, until: now.Add(bodyTime)}
	}
}

// pacedBody extends the deadline while the body arrives.
type pacedBody struct {
	io.ReadCloser
	control *http.ResponseController
	until   time.Time
	pending int // bytes that have not extended the deadline yet
}

func (b *pacedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch b.pending += n; {
	case err == io.EOF:
		_ = b.control.SetReadDeadline(time.Time{}) // cannot fail: it was set before
	case b.pending >= bodyPace:
		b.until = b.until.Add(time.Duration(b.pending) * time.Second / bodyPace)
		b.pending = 0
		_ = b.control.SetReadDeadline(b.until)
	}
	return n, err
}
