package blueking

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/audit"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/language"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// Access says which callers a route accepts. The zero value is invalid: a route without an access stops the program
// when it starts.
type Access uint8

// The kinds of access.
const (
	AccessUser Access = iota + 1 // an identified app and a user
	AccessApp                    // an identified app
)

// Door is one API: its paths and its routes.
type Door struct {
	Prefixes []Prefix
	Routes   []Route
	Numbers  func(gozzard.ErrorKind) Number // nil means NumberOf
	// DescribeError makes the number and the text of an error, for a door with its own numbers or languages; nil means
	// Numbers and Words.Error.
	DescribeError func(w Words, err error) (Number, string)
	Quiet         bool // the answer to a successful call has no message
	Auth          *auth.Directory
	Log           *slog.Logger
	Observe       func(route string, code int, d time.Duration) // called after every request; nil means not at all
}

// Prefix is one folder of paths. It has the routes of its Family.
type Prefix struct {
	Path    string // such as /api/v2/proc; it may have parameters like the path of a route
	Family  string
	Gateway bool // errors have an HTTP status; without Gateway it is always 200
}

// Route is one call of an API.
type Route struct {
	Name string
	// Path is below the prefix; "" means Name. A part in braces, as in job/{job_id}/retry, is a number that
	// Call.Number has under that name.
	Path     string
	Families []string
	Access   Access
	Read     bool     // the call changes nothing, so GET with query parameters is allowed too
	Methods  []string // nil means POST, and GET if Read
	Bodiless bool     // an empty body means an empty object
	// TextQuery makes every value of a query a string. Without it a value that begins like an object or a list must be one.
	TextQuery bool
	MaxBody   int64
	Handle    func(ctx context.Context, c *Call) (any, error)
}

// Call is one request of an identified caller.
type Call struct {
	Caller         gozzard.Caller
	App            auth.App
	Body           strictjson.Value
	Faults         *strictjson.Faults
	IdempotencyKey string
	// Hash is the digest of the route's name, the numbers in the path and the body. The same body sent to another
	// route has another hash.
	Hash [sha256.Size]byte
	// Request has the query and the headers; its body has been read.
	Request *http.Request
	// Words are for the messages of the answer.
	Words     Words
	numbers   []number
	textQuery bool
}

// number is a parameter in a path.
type number struct {
	name  string
	value int64
}

// Number is the parameter of the path with this name. ok is false if the path has no such parameter.
func (c *Call) Number(name string) (value int64, ok bool) {
	for _, n := range c.numbers {
		if n.name == name {
			return n.value, true
		}
	}
	return 0, false
}

// Query is the query string as an object of strings, or as the body of a GET request if the route has no TextQuery.
func (c *Call) Query() (strictjson.Value, error) {
	body, err := queryBody(c.Request.URL.RawQuery, c.textQuery)
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
	door    Door
	table   paths
	chinese *language.Catalogue
}

// New makes the handler of a door. A route without access, size, families or handler is a mistake of the program: New
// panics.
func New(d Door) *Handler {
	if d.Auth == nil || d.Log == nil {
		panic("blueking: a door needs credentials and a log")
	}
	if d.Numbers == nil {
		d.Numbers = NumberOf
	}
	if d.DescribeError == nil {
		d.DescribeError = func(w Words, err error) (Number, string) {
			return d.Numbers(gozzard.KindOf(err)), w.Error(err)
		}
	}
	if d.Observe == nil {
		d.Observe = func(string, int, time.Duration) {}
	}

	h := &Handler{door: d, table: paths{}, chinese: language.Messages()}
	for i := range d.Routes {
		r := &d.Routes[i]
		if r.Name == "" || r.Access == 0 || r.MaxBody <= 0 || r.Handle == nil || len(r.Families) == 0 {
			panic(fmt.Sprintf("blueking: route %q does not say its access, size, families and handler", r.Name))
		}
		for _, p := range d.Prefixes {
			if slices.Contains(r.Families, p.Family) {
				h.table.add(p, r)
			}
		}
	}

	return h
}

// Owns reports whether the door serves a path, so that a server with several doors can select one. Do not put an
// http.ServeMux before it: that redirects paths with double slashes, and a redirect loses the body.
func (h *Handler) Owns(r *http.Request) bool {
	_, _, ok := h.table.find(r)
	return ok
}

// ServeHTTP answers one request. A panic becomes an internal error.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	a := answer{id: gozzard.RequestIDOf(r.Context()), status: http.StatusOK}
	name := "unknown"
	words := Words{Language: languageOf(r), chinese: h.chinese}
	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler {
				panic(p)
			}
			h.door.Log.Error("request panicked", "route", name, "request_id", a.id, "panic", fmt.Sprint(p), "stack",
				string(debug.Stack()))
			a.fail(http.StatusInternalServerError, h.door.Numbers(gozzard.ErrInternal).Code, words.Error(nil))
		}
		code := a.send(w, h.door)
		h.door.Observe(name, code, time.Since(began))
	}()

	// Find the route.
	s, numbers, ok := h.table.find(r)
	if !ok {
		a.fail(http.StatusNotFound, h.door.Numbers(gozzard.ErrNotFound).Code, words.Message(notFoundText))
		if h.atGateway(r) {
			text := fmt.Sprintf("API not found [method=%+q path=%+.200q]", r.Method, r.URL.Path)
			a.failGateway(gatewayPath, text, text)
		}
		return
	}

	route := s.route(r.Method)
	if route == nil {
		name = s.routes[0].Name
		w.Header().Set("Allow", s.methods())
		text := fmt.Sprintf("%s takes %s", name, s.methods())
		a.fail(http.StatusMethodNotAllowed, h.door.Numbers(gozzard.ErrInvalid).Code, words.Message(text))
		if s.gateway {
			a.failGateway(gatewayMethod, words.Message(text), text)
		}
		return
	}

	// Serve it.
	name = route.Name
	data, err := h.serve(r, words, route, numbers)
	if err != nil {
		drain(r)
		h.failed(r.Context(), &a, words, route, s.gateway, err)
		return
	}

	a.envelope = Envelope{Result: true, Code: CodeOK, Data: data}

	if !h.door.Quiet {
		a.envelope.Message = "success"
	}
}

// serve identifies the caller, reads the request and calls the route.
func (h *Handler) serve(r *http.Request, words Words, route *Route, numbers []number) (any, error) {
	// Identify the caller.
	var in *received
	err := auth.Guarded(r, func() (app auth.App, err error) {
		if in, err = receive(h.door.Auth, r, route); err == nil {
			app = in.app
		}
		return app, err
	})
	if err != nil {
		audit.Refused(r.Context(), gozzard.Caller{}, err)
		return nil, unidentified{err}
	}

	// Read the request.
	key, err := idempotencyKey(r.Header)
	if err != nil {
		return nil, err
	}

	var faults strictjson.Faults
	root, err := in.doc.Root(&faults)
	if err != nil {
		return nil, err
	}

	// Hash it.
	sum := sha256.New()
	sum.Write([]byte(route.Name))

	for _, n := range numbers {
		sum.Write(strconv.AppendInt([]byte{'/'}, n.value, 10))
	}

	sum.Write([]byte{0})
	sum.Write(in.body)
	// Call the route.
	c := &Call{Caller: in.caller, App: in.app, Body: root, Faults: &faults, IdempotencyKey: key, Request: r,
		Words: words, numbers: numbers, textQuery: route.TextQuery}
	sum.Sum(c.Hash[:0])
	data, err := route.Handle(r.Context(), c)
	audit.Refused(r.Context(), in.caller, err)
	return data, err
}

// failed turns an error into an answer. Errors that the caller cannot correct are also logged, with their cause. A caller
// that does not wait any more is no error of the server.
func (h *Handler) failed(ctx context.Context, a *answer, words Words, route *Route, gateway bool, err error) {
	switch gozzard.KindOf(err) {
	case gozzard.ErrInternal, gozzard.ErrUnavailable, gozzard.ErrStorageFull:
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			h.door.Log.Debug("request failed", "route", route.Name, "request_id", a.id, "err", err)
			break
		}
		h.door.Log.Error("request failed", "route", route.Name, "request_id", a.id, "err", err)
	}
	n, text := h.door.DescribeError(words, err)
	status := http.StatusOK
	if gateway {
		status = n.Status
	}
	a.fail(status, n.Code, text)
	if own, ok := gatewayNumberOf(err); ok && gateway {
		a.failGateway(own, text, Text(err))
	}
	a.retry = gozzard.RetryAfter(err)
}
