package esb

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
)

// Access is what a route asks of its caller. The zero value is none of them: a route that forgets to say it stops the program at its start.
type Access uint8

// The kinds of access.
const (
	AccessUser Access = iota + 1 // a proven app, and a user by token or by the word of a trusted app
	AccessApp                    // a proven app
)

// Door is one API: where it is served and what it serves.
type Door struct {
	Prefixes []Prefix
	Routes   []Route
	Numbers  func(gozzard.ErrorKind) Number // nil: NumberOf
	Auth     *auth.Book
	Log      *slog.Logger
	Observe  func(route string, code int, d time.Duration) // nil: nobody watches
}

// Prefix is one folder of paths. Its Family picks the routes that live there.
type Prefix struct {
	Path    string // such as /api/v2/proc
	Family  string
	Gateway bool // the HTTP status tells the kind of an error; elsewhere it is 200
}

// Route is one call.
type Route struct {
	Name     string
	Families []string
	Access   Access
	Read     bool // changes nothing: GET with query parameters is served too
	MaxBody  int64
	Handle   func(ctx context.Context, c *Call) (any, error)
}

// Call is one request whose sender is known.
type Call struct {
	Caller         gozzard.Caller
	App            auth.App
	Body           Value
	Faults         *Faults
	IdempotencyKey string
	// Hash is of the call's name and the body: the same body sent to another call is another request.
	Hash [sha256.Size]byte
}

// Handler serves a door.
type Handler struct {
	door  Door
	table map[string]served
}

type served struct {
	route   *Route
	gateway bool
}

// New makes the handler of a door. A route without access, size or handler is a mistake in the program and panics.
func New(d Door) *Handler {
	if d.Auth == nil || d.Log == nil {
		panic("esb: a door needs credentials and a log")
	}
	if d.Numbers == nil {
		d.Numbers = NumberOf
	}
	if d.Observe == nil {
		d.Observe = func(string, int, time.Duration) {}
	}
	h := &Handler{door: d, table: make(map[string]served)}
	for i := range d.Routes {
		r := &d.Routes[i]
		if r.Name == "" || r.Access == 0 || r.MaxBody <= 0 || r.Handle == nil || len(r.Families) == 0 {
			panic(fmt.Sprintf("esb: route %q does not say its access, size, families and handler", r.Name))
		}
		for _, p := range d.Prefixes {
			for _, family := range r.Families {
				if p.Family != family {
					continue
				}
				path := p.Path + "/" + r.Name
				if _, twice := h.table[path]; twice {
					panic("esb: two routes at " + path)
				}
				h.table[path] = served{route: r, gateway: p.Gateway}
			}
		}
	}
	return h
}

// Owns reports whether the door serves a path, so that a server with several doors can choose. It must be asked before http.ServeMux sees the
// request: that one redirects double slashes, and a redirect drops the body.
func (h *Handler) Owns(r *http.Request) bool {
	_, ok := h.find(r)
	return ok
}

// find looks a path up: empty segments do not count; anything encoded, "." and ".." match nothing.
func (h *Handler) find(r *http.Request) (served, bool) {
	escaped := r.URL.EscapedPath()
	if strings.ContainsAny(escaped, "%\x00") {
		return served{}, false
	}
	var path strings.Builder
	for segment := range strings.SplitSeq(escaped, "/") {
		switch segment {
		case "":
		case ".", "..":
			return served{}, false
		default:
			path.WriteByte('/')
			path.WriteString(segment)
		}
	}
	s, ok := h.table[path.String()]
	return s, ok
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	a := answer{id: NewRequestID(), status: http.StatusOK}
	name := "unknown"
	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler {
				panic(p)
			}
			h.door.Log.Error("request panicked", "route", name, "request_id", a.id, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			a.fail(http.StatusInternalServerError, h.door.Numbers(gozzard.ErrInternal).Code, Text(nil))
		}
		code := a.send(w, h.door)
		h.door.Observe(name, code, time.Since(began))
	}()
	s, ok := h.find(r)
	if !ok {
		a.fail(http.StatusNotFound, h.door.Numbers(gozzard.ErrNotFound).Code, notFoundText)
		return
	}
	name = s.route.Name
	if r.Method != http.MethodPost && (r.Method != http.MethodGet || !s.route.Read) {
		w.Header().Set("Allow", s.route.methods())
		a.fail(http.StatusMethodNotAllowed, h.door.Numbers(gozzard.ErrInvalid).Code, name+" takes "+s.route.methods())
		return
	}
	data, err := h.serve(r, s.route)
	if err != nil {
		drain(r)
		h.failed(&a, s, err)
		return
	}
	a.envelope = Envelope{Result: true, Code: CodeOK, Message: "success", Data: data}
}

func (r *Route) methods() string {
	if r.Read {
		return "GET, POST"
	}
	return "POST"
}

func (h *Handler) serve(r *http.Request, route *Route) (any, error) {
	in, err := receive(h.door.Auth, r, route.Access, route.MaxBody)
	if err != nil {
		return nil, err
	}
	key, err := idempotencyKey(r.Header)
	if err != nil {
		return nil, err
	}
	var faults Faults
	root, err := in.doc.Root(&faults)
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	sum.Write([]byte(route.Name))
	sum.Write([]byte{0})
	sum.Write(in.body)
	c := &Call{Caller: in.caller, App: in.app, Body: root, Faults: &faults, IdempotencyKey: key}
	sum.Sum(c.Hash[:0])
	return route.Handle(r.Context(), c)
}

// failed turns an error into an answer. What the caller cannot mend is logged with its cause; what he can is only told.
func (h *Handler) failed(a *answer, s served, err error) {
	kind := gozzard.KindOf(err)
	n := h.door.Numbers(kind)
	switch kind {
	case gozzard.ErrInternal, gozzard.ErrUnavailable, gozzard.ErrStorageFull:
		h.door.Log.Error("request failed", "route", s.route.Name, "request_id", a.id, "error", err.Error())
	}
	status := http.StatusOK
	if s.gateway {
		status = n.Status
	}
	a.fail(status, n.Code, Text(err))
}

// answer is what will be sent.
type answer struct {
	id       string
	status   int
	envelope Envelope
}

func (a *answer) fail(status, code int, text string) {
	a.status = status
	a.envelope = Envelope{Code: code, Message: text}
}

// send encodes and writes the answer and returns its code. What cannot be encoded is a mistake of ours and told as one.
func (a *answer) send(w http.ResponseWriter, d Door) int {
	a.envelope.RequestID = a.id
	body, err := a.envelope.Encode()
	if err != nil {
		d.Log.Error("request failed", "request_id", a.id, "error", err.Error())
		a.fail(http.StatusInternalServerError, d.Numbers(gozzard.ErrInternal).Code, Text(nil))
		a.envelope.RequestID = a.id
		if body, err = a.envelope.Encode(); err != nil { // two strings and a number
			panic(err)
		}
	}
	write(w, a.status, a.id, body)
	return a.envelope.Code
}
