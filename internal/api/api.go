package api

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
	"github.com/gozzard/gozzard/internal/topology/index"
	"github.com/gozzard/gozzard/internal/upgrade"
)

// Plane is the control plane as this API needs it.
type Plane interface {
	Operate(ctx context.Context, op *gozzard.Operation) (gozzard.Task, error)
	Results(ctx context.Context, caller gozzard.Caller, id gozzard.TaskID) (record.TaskResults, error)
	Await(ctx context.Context, caller gozzard.Caller, id gozzard.TaskID, max time.Duration) (record.TaskResults, error)
	Find(caller gozzard.Caller, f fleet.Filter, start, limit int) (int, []fleet.Row)
	Hosts(caller gozzard.Caller) []fleet.Host
	Resolve(caller gozzard.Caller, t gozzard.Target) (fleet.Host, bool)
	Events(caller gozzard.Caller, f record.EventFilter, limit int) record.EventPage
	EventsAfter(caller gozzard.Caller, f record.EventFilter, id uint64, limit int) (record.EventPage, <-chan struct{})
	Log(ctx context.Context, caller gozzard.Caller, t gozzard.Target, q gozzard.LogQuery) (gozzard.LogChunk, error)
	Status(caller gozzard.Caller, key gozzard.Key, targets []gozzard.Target) []record.StatusRow

	ApplyTopology(ctx context.Context, req record.ApplyRequest) (record.ApplyAnswer, error)
	Business(ctx context.Context, caller gozzard.Caller, biz int) (record.Business, error)
	Businesses(caller gozzard.Caller) []record.BusinessHead
	FindProcesses(caller gozzard.Caller, q topology.Query) (total int, rows []topology.Row)
	TopologyItems(ctx context.Context, biz int, rows []topology.Row, a gozzard.Action) ([]record.TopologyItem, error)
	TopologyTree(caller gozzard.Caller, biz int, env topology.Env) []index.SetCount
}

// Options are the parts of the API.
type Options struct {
	Plane Plane
	// Authenticate finds the caller of a request by its headers. It never reads the body.
	Authenticate func(r *http.Request) (gozzard.Caller, error)
	Challenge    string                      // the value of WWW-Authenticate for callers without credentials
	Metrics      *Metrics                    // told of every request and served at /metrics; nil keeps none
	Ready        func(context.Context) error // asked by /readyz; nil is always ready
	Log          *slog.Logger

	Accounts *auth.Accounts // changed by admins; nil: not here
	Provider *auth.Provider // of logins; nil: there is none

	Enrol   *enrol.Registry // nil: no host is enrolled here
	Restore *enrol.Restore  // nil: the record cannot come out of a backup

	Audit Audit // nil: none is kept

	Flag func(gozzard.AgentID) string // what is held against an agent, "" for nothing; nil: nothing ever is

	Releases *upgrade.Runner // nil: none are kept

	Stopping <-chan struct{} // closed when the server ends, so that streams end too; nil never is
}

// Door is the name under which operations of this API are recorded.
const Door = "api"

// access is what a route asks of its caller. The zero value is refused when the routes are made: a forgotten field
// never opens a door.
type access uint8

const (
	accessCaller access = iota + 1 // credentials of an app, with a user
	accessOpen                     // anybody
	// anybody on this machine, others with credentials and sight of the whole fleet
	accessLoopbackOrKnown
	accessAdmin // credentials of somebody who may do everything
	// a host that enrols or renews: by its token or its certificate, over TLS 1.3
	accessHost
)

type route struct {
	method string
	path   string
	access access
	serve  func(a *api, w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error
}

// routes is the whole API.
func routes() []route {
	return []route{
		{http.MethodPost, "/api/v1/operations", accessCaller, (*api).postOperation},
		{http.MethodGet, "/api/v1/tasks/{id}", accessCaller, (*api).getTask},
		{http.MethodGet, "/api/v1/processes", accessCaller, (*api).getProcesses},
		{http.MethodPut, "/api/v1/processes", accessCaller, (*api).putProcess},
		{http.MethodDelete, "/api/v1/processes", accessCaller, (*api).deleteProcesses},
		{http.MethodGet, "/api/v1/hosts", accessCaller, (*api).getHosts},
		{http.MethodGet, "/api/v1/events", accessCaller, (*api).getEvents},
		{http.MethodGet, "/api/v1/events/stream", accessCaller, (*api).streamEvents},
		{http.MethodGet, "/api/v1/logs", accessCaller, (*api).getLog},
		{http.MethodGet, "/api/v1/topology", accessCaller, (*api).getBusinesses},
		{http.MethodGet, "/api/v1/topology/{biz}", accessCaller, (*api).getTopology},
		{http.MethodPut, "/api/v1/topology/{biz}", accessCaller, (*api).putTopology},
		{http.MethodGet, "/api/v1/topology/{biz}/tree", accessCaller, (*api).getTree},
		{http.MethodPost, enrol.JoinPath, accessHost, (*api).postJoin},
		{http.MethodPost, enrol.RenewPath, accessHost, (*api).postRenew},
		{http.MethodGet, "/api/v1/enrol/tokens", accessCaller, (*api).getEnrolTokens},
		{http.MethodPost, "/api/v1/enrol/tokens", accessCaller, (*api).postEnrolToken},
		{http.MethodDelete, "/api/v1/enrol/tokens/{id}", accessCaller, (*api).deleteEnrolToken},
		{http.MethodGet, "/api/v1/enrol/agents", accessCaller, (*api).getMembers},
		{http.MethodPut, "/api/v1/enrol/agents/{agent}", accessCaller, (*api).putMember},
		{http.MethodGet, "/api/v1/restore", accessAdmin, (*api).getRestore},
		{http.MethodPost, "/api/v1/restore/confirm", accessAdmin, (*api).postRestore},
		{http.MethodGet, enrol.ReleasePath + "/{version}/{file}", accessHost, (*api).getReleaseFile},
		{http.MethodGet, "/api/v1/releases", accessAdmin, (*api).getReleases},
		{http.MethodPost, "/api/v1/releases", accessAdmin, (*api).postRelease},
		{http.MethodDelete, "/api/v1/releases/{version}", accessAdmin, (*api).deleteRelease},
		{http.MethodPut, "/api/v1/releases/{version}/files/{file}", accessAdmin, (*api).putReleaseFile},
		{http.MethodGet, "/api/v1/rolls", accessAdmin, (*api).getRolls},
		{http.MethodPost, "/api/v1/rolls", accessAdmin, (*api).postRoll},
		{http.MethodPut, "/api/v1/rolls/{version}", accessAdmin, (*api).putRoll},
		{http.MethodGet, "/api/v1/whoami", accessCaller, (*api).getWho},
		{http.MethodGet, "/api/v1/apps", accessAdmin, (*api).getApps},
		{http.MethodPost, "/api/v1/apps", accessAdmin, (*api).postApp},
		{http.MethodPut, "/api/v1/apps/{code}", accessAdmin, (*api).putApp},
		{http.MethodDelete, "/api/v1/apps/{code}", accessAdmin, (*api).deleteApp},
		{http.MethodPost, "/api/v1/apps/{code}/secrets", accessAdmin, (*api).postSecret},
		{http.MethodDelete, "/api/v1/apps/{code}/secrets", accessAdmin, (*api).deleteSecrets},
		{http.MethodGet, "/api/v1/users", accessAdmin, (*api).getUsers},
		{http.MethodPost, "/api/v1/users", accessAdmin, (*api).postUser},
		{http.MethodPut, "/api/v1/users/{name}", accessAdmin, (*api).putUser},
		{http.MethodDelete, "/api/v1/users/{name}", accessAdmin, (*api).deleteUser},
		{http.MethodPut, "/api/v1/users/{name}/password", accessCaller, (*api).putPassword},
		{http.MethodGet, "/api/v1/users/{name}/tokens", accessCaller, (*api).getTokens},
		{http.MethodPost, "/api/v1/users/{name}/tokens", accessCaller, (*api).postToken},
		{http.MethodDelete, "/api/v1/users/{name}/tokens/{id}", accessCaller, (*api).deleteToken},
		{http.MethodGet, "/api/v1/grants", accessAdmin, (*api).getGrants},
		{http.MethodPost, "/api/v1/grants", accessAdmin, (*api).postGrant},
		{http.MethodDelete, "/api/v1/grants", accessAdmin, (*api).deleteGrant},
		{http.MethodPost, "/api/v1/login", accessOpen, (*api).postLogin},
		{http.MethodPost, "/api/v1/logout", accessCaller, (*api).postLogout},
		{http.MethodGet, "/login/oidc", accessOpen, (*api).getProviderLogin},
		{http.MethodGet, "/login/oidc/callback", accessOpen, (*api).getProviderCallback},
		{http.MethodGet, "/api/v1/audit", accessCaller, (*api).getAudit},
		{http.MethodGet, "/healthz", accessOpen, (*api).getHealth},
		{http.MethodGet, "/readyz", accessOpen, (*api).getReady},
		{http.MethodGet, "/metrics", accessLoopbackOrKnown, (*api).getMetrics},
	}
}

type api struct {
	Options
	streams atomic.Int64 // of events, open now
}

// New makes the handler of everything under /api/v1/, and of /healthz, /readyz and /metrics.
func New(o Options) http.Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}

	a := &api{Options: o}
	mux := http.NewServeMux()
	byPath := make(map[string]map[string]route)
	for _, rt := range routes() {
		if rt.access == 0 {
			panic("route " + rt.method + " " + rt.path + " does not say who may use it")
		}
		if byPath[rt.path] == nil {
			byPath[rt.path] = make(map[string]route)
		}
		byPath[rt.path][rt.method] = rt
	}

	for path, methods := range byPath {
		mux.Handle(path, a.instrument(path, a.onPath(methods)))
	}

	mux.Handle("/", a.instrument("other", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.fail(w, r, gozzard.Errorf(gozzard.ErrNotFound, "nothing is served at this path"))
	})))

	return mux
}

// onPath serves the methods of one path.
func (a *api) onPath(methods map[string]route) http.Handler {
	allowed := make([]string, 0, len(methods)+1)
	for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
		if _, ok := methods[m]; ok {
			allowed = append(allowed, m)
		}
	}

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		method := r.Method
		if method == http.MethodHead {
			method = http.MethodGet
		}

		rt, ok := methods[method]
		if !ok {
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			a.failStatus(w, r, http.StatusMethodNotAllowed,
				gozzard.Errorf(gozzard.ErrInvalid, "this path takes %s", strings.Join(allowed, ", ")))
			return
		}

		caller, err := a.admit(r, rt.access)
		if err == nil {
			err = rt.serve(a, w, r, caller)
		}
		if err != nil {
			a.fail(w, r, err)
		}
	})
}

// admit lets a request in or says why not.
func (a *api) admit(r *http.Request, need access) (gozzard.Caller, error) {
	if need == accessOpen || need == accessLoopbackOrKnown && fromLoopback(r) {
		return gozzard.Caller{}, nil
	}
	if need == accessHost {
		return gozzard.Caller{}, a.admitHost(r)
	}

	// No body: credentials of this API are in headers, so that nothing of a stranger is read.
	caller, err := a.Authenticate(r)
	if err == nil && need == accessAdmin && !caller.Rights.All() {
		return gozzard.Caller{}, gozzard.Errorf(gozzard.ErrUserForbidden, "this needs the role admin on everything")
	}
	if err == nil && need == accessLoopbackOrKnown && !caller.Rights.SeesAll() { // it counts the whole fleet
		return gozzard.Caller{}, gozzard.Errorf(gozzard.ErrUserForbidden, "this needs a role that sees the whole fleet")
	}

	return caller, err
}

func (a *api) instrument(path string, h http.Handler) http.Handler {
	if a.Metrics == nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		rec := &statusRecorder{ResponseWriter: w, code: http.StatusOK}
		h.ServeHTTP(rec, r)
		if rec.Header().Get("Content-Type") == streamType { // how long somebody listens says nothing about the server
			return
		}
		a.Metrics.ObserveRequest(path, rec.code, time.Since(start))
	})
}

// statusRecorder remembers the status of an answer.
type statusRecorder struct {
	http.ResponseWriter
	code int
}

func (s *statusRecorder) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}

// Unwrap lets http.ResponseController reach the connection.
func (s *statusRecorder) Unwrap() http.ResponseWriter { return s.ResponseWriter }
