package blueking

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// Access is what a route asks of its caller. The zero value is none of them: a route that forgets to say it stops
// the program at its start.
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
	// Tell words an error that ends a call, for doors with numbers and a language of their own; nil: Numbers and Text.
	Tell    func(r *http.Request, err error) (Number, string)
	Quiet   bool // success has no message
	Auth    *auth.Directory
	Log     *slog.Logger
	Observe func(route string, code int, d time.Duration) // nil: nobody watches
}

// Prefix is one folder of paths. Its Family picks the routes that live there.
type Prefix struct {
	Path    string // such as /api/v2/proc; may have parameters as routes have
	Family  string
	Gateway bool // the HTTP status tells the kind of an error; elsewhere it is 200
}

// Route is one call.
type Route struct {
	Name string
	// below the prefix; "" is Name. A part in braces, such as job/{job_id}/retry, is a number that the call gets by
	// that name
	Path     string
	Families []string
	Access   Access
	Read     bool     // changes nothing: GET with query parameters is served too
	Methods  []string // nil: POST, and GET when it reads
	Bodiless bool     // an empty body is an empty object
	MaxBody  int64
	Handle   func(ctx context.Context, c *Call) (any, error)
}

// Call is one request whose sender is known.
type Call struct {
	Caller         gozzard.Caller
	App            auth.App
	Body           strictjson.Value
	Faults         *strictjson.Faults
	IdempotencyKey string
	// Hash is of the call's name, its path's numbers and the body: the same body sent to another call is another
	// request.
	Hash [sha256.Size]byte
	// Request is what was sent, for its query and headers; its body has been read.
	Request *http.Request
	numbers []number
}

// number is a parameter in a path.
type number struct {
	name  string
	value int64
}

// Number is the parameter of the path with this name; ok is false on paths that have none.
func (c *Call) Number(name string) (value int64, ok bool) {
	for _, n := range c.numbers {
		if n.name == name {
			return n.value, true
		}
	}
	return 0, false
}

// Query is the query string as the object that it would be as a body.
func (c *Call) Query() (strictjson.Value, error) {
	body, err := queryBody(c.Request.URL.RawQuery)
	if err != nil {
		return strictjson.Value{}, err
	}
	doc, err := strictjson.Parse(body)
	if err != nil {
		return strictjson.Value{}, err
	}
	return doc.Root(c.Faults)
}

// Handler serves a door.
type Handler struct {
	door  Door
	table paths
}

// New makes the handler of a door. A route without access, size or handler is a mistake in the program and panics.
func New(d Door) *Handler {
	if d.Auth == nil || d.Log == nil {
		panic("esb: a door needs credentials and a log")
	}
	if d.Numbers == nil {
		d.Numbers = NumberOf
	}
	if d.Tell == nil {
		d.Tell = func(_ *http.Request, err error) (Number, string) { return d.Numbers(gozzard.KindOf(err)), Text(err) }
	}
	if d.Observe == nil {
		d.Observe = func(string, int, time.Duration) {}
	}

	h := &Handler{door: d, table: paths{}}
	for i := range d.Routes {
		r := &d.Routes[i]
		if r.Name == "" || r.Access == 0 || r.MaxBody <= 0 || r.Handle == nil || len(r.Families) == 0 {
			panic(fmt.Sprintf("esb: route %q does not say its access, size, families and handler", r.Name))
		}
		for _, p := range d.Prefixes {
			if slices.Contains(r.Families, p.Family) {
				h.table.add(p, r)
			}
		}
	}

	return h
}

// Owns reports whether the door serves a path, so that a server with several doors can choose. It must be asked
// before http.ServeMux sees the request: that one redirects double slashes, and a redirect drops the body.
func (h *Handler) Owns(r *http.Request) bool {
	_, _, ok := h.table.find(r)
	return ok
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	a := answer{id: gozzard.NewRequestID(), status: http.StatusOK}
	name := "unknown"
	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler {
				panic(p)
			}
			h.door.Log.Error("request panicked", "route", name, "request_id", a.id, "panic", fmt.Sprint(p), "stack",
				string(debug.Stack()))
			a.fail(http.StatusInternalServerError, h.door.Numbers(gozzard.ErrInternal).Code, Text(nil))
		}
		code := a.send(w, h.door)
		h.door.Observe(name, code, time.Since(began))
	}()

	s, numbers, ok := h.table.find(r)
	if !ok {
		a.fail(http.StatusNotFound, h.door.Numbers(gozzard.ErrNotFound).Code, notFoundText)
		return
	}

	route := s.route(r.Method)
	if route == nil {
		name = s.routes[0].Name
		w.Header().Set("Allow", s.methods())
		a.fail(http.StatusMethodNotAllowed, h.door.Numbers(gozzard.ErrInvalid).Code, name+" takes "+s.methods())
		return
	}

	name = route.Name
	data, err := h.serve(r, route, numbers)
	if err != nil {
		drain(r)
		h.failed(&a, r, route, s.gateway, err)
		return
	}

	a.envelope = Envelope{Result: true, Code: CodeOK, Data: data}

	if !h.door.Quiet {
		a.envelope.Message = "success"
	}
}

func (h *Handler) serve(r *http.Request, route *Route, numbers []number) (any, error) {
	var in *received
	err := auth.Guarded(r, func() (app auth.App, err error) {
		if in, err = receive(h.door.Auth, r, route); err == nil {
			app = in.app
		}
		return app, err
	})

	if err != nil {
		return nil, err
	}

	key, err := idempotencyKey(r.Header)
	if err != nil {
		return nil, err
	}

	var faults strictjson.Faults
	root, err := in.doc.Root(&faults)
	if err != nil {
		return nil, err
	}

	sum := sha256.New()
	sum.Write([]byte(route.Name))

	for _, n := range numbers {
		sum.Write(strconv.AppendInt([]byte{'/'}, n.value, 10))
	}

	sum.Write([]byte{0})
	sum.Write(in.body)
	c := &Call{Caller: in.caller, App: in.app, Body: root, Faults: &faults, IdempotencyKey: key, Request: r,
		numbers: numbers}
	sum.Sum(c.Hash[:0])
	return route.Handle(r.Context(), c)
}

// failed turns an error into an answer. What the caller cannot mend is logged with its cause; what he can is only told.
func (h *Handler) failed(a *answer, r *http.Request, route *Route, gateway bool, err error) {
	switch gozzard.KindOf(err) {
	case gozzard.ErrInternal, gozzard.ErrUnavailable, gozzard.ErrStorageFull:
		h.door.Log.Error("request failed", "route", route.Name, "request_id", a.id, "error", err.Error())
	}
	n, text := h.door.Tell(r, err)
	status := http.StatusOK
	if gateway {
		status = n.Status
	}
	a.fail(status, n.Code, text)
	a.retry = gozzard.RetryAfter(err)
}

// answer is what will be sent.
type answer struct {
	id       string
	status   int
	retry    string // header Retry-After
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

	if a.retry != "" {
		w.Header().Set("Retry-After", a.retry)
	}

	write(w, a.status, a.id, body)
	return a.envelope.Code
}
