package ratelimit

import (
	"io"
	"net/http"
	"time"
)

// How slowly a request may come and its answer be taken. A body has a time of its own and some more for its length:
// an honest slow line is faster.
const (
	bodyTime   = 15 * time.Second
	bodyPace   = 64 << 10 // bytes a second
	answerTime = 5 * time.Minute
)

// secure sets what browsers are told with every answer. Nothing here is a page, nothing may be framed or kept, and
// other sites are told nothing: there is no header of CORS, so their scripts cannot read an answer.
func secure(h http.Header, r *http.Request) {
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

// pace bounds the time of a request's body and of its answer. When the body has arrived nothing bounds the wait any
// more: the server may think as long as it likes, and somebody who waits for an event says nothing meanwhile.
func pace(w http.ResponseWriter, r *http.Request) {
	c := http.NewResponseController(w)
	now := time.Now()
	_ = c.SetWriteDeadline(now.Add(answerTime)) // not supported by recorders of tests
	if r.Body == nil || r.Body == http.NoBody {
		_ = c.SetReadDeadline(time.Time{})
		return
	}
	if c.SetReadDeadline(now.Add(bodyTime)) == nil {
		r.Body = &pacedBody{ReadCloser: r.Body, control: c, until: now.Add(bodyTime)}
	}
}

// pacedBody gives its sender more time as it arrives.
type pacedBody struct {
	io.ReadCloser
	control *http.ResponseController
	until   time.Time
	unpaid  int // bytes for which no time was given yet
}

func (b *pacedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch b.unpaid += n; {
	case err == io.EOF:
		_ = b.control.SetReadDeadline(time.Time{}) // it was set before, so it can be
	case b.unpaid >= bodyPace:
		b.until = b.until.Add(time.Duration(b.unpaid) * time.Second / bodyPace)
		b.unpaid = 0
		_ = b.control.SetReadDeadline(b.until)
	}
	return n, err
}
