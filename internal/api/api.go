package api

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/approval"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/live"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/rendered"
	"github.com/gozzard/gozzard/internal/topology"
	"github.com/gozzard/gozzard/internal/topology/index"
	"github.com/gozzard/gozzard/internal/upgrade"
)

// Door is the name under which operations of this API are recorded.
const Door = "api"

// Plane is the part of the control plane that this API uses.
type Plane interface {
	Operate(ctx context.Context, op *gozzard.Operation) (gozzard.Task, error)
	Preview(ctx context.Context, op *gozzard.Operation) ([]record.Preview, error)
	Definitions(ctx context.Context, caller gozzard.Caller, f fleet.Filter, start, limit int) (int, []record.Definition,
		error)
	Results(ctx context.Context, caller gozzard.Caller, id gozzard.TaskID) (record.TaskResults, error)
	Await(ctx context.Context, caller gozzard.Caller, id gozzard.TaskID, max time.Duration) (record.TaskResults, error)
	Tasks(ctx context.Context, caller gozzard.Caller, f record.TaskFilter, limit int) (record.TaskPage, error)
	CancelTask(ctx context.Context, q *record.Cancel) (record.TaskResults, error)
	FailedItems(ctx context.Context, caller gozzard.Caller, id gozzard.TaskID, only []int) ([]gozzard.Item, error)
	Find(caller gozzard.Caller, f fleet.Filter, start, limit int) (int, []fleet.Row)
	Hosts(caller gozzard.Caller) []fleet.Host
	Resolve(caller gozzard.Caller, t gozzard.Target) (fleet.Host, bool)
	Forget(ctx context.Context, caller gozzard.Caller, host gozzard.HostRef) (record.Forgotten, error)
	LastEvent() uint64
	Events(ctx context.Context, caller gozzard.Caller, f record.EventFilter, limit int) (record.EventPage, error)
	EventsAfter(ctx context.Context, caller gozzard.Caller, f record.EventFilter, id uint64,
		limit int) (record.EventPage, <-chan struct{}, error)
	LastTaskChange() uint64
	TasksAfter(ctx context.Context, caller gozzard.Caller, after uint64) ([]record.TaskSummary, uint64, <-chan struct{},
		error)
	Log(ctx context.Context, caller gozzard.Caller, t gozzard.Target, q gozzard.LogQuery) (gozzard.LogChunk, error)
	History(ctx context.Context, caller gozzard.Caller, t gozzard.Target, q gozzard.HistoryQuery) (gozzard.History, error)
	WriteFiles(ctx context.Context, op *gozzard.FileOperation) (gozzard.Task, error)
	ReadFile(ctx context.Context, caller gozzard.Caller, q gozzard.FileRead) (gozzard.FileView, error)
	FileHistory(ctx context.Context, caller gozzard.Caller, q gozzard.FileRead) ([]gozzard.FileVersion, error)
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
	// Carries reports whether the headers of a request have credentials beside Authorization and Challenge; may be nil.
	// The cookie of the console does not count in such a request.
	Carries func(r *http.Request) bool
	// Challenge is the value of WWW-Authenticate for a caller without credentials: the header that carries the
	// credentials of an app.
	Challenge string
	Metrics   *Metrics                    // counts every request, and is served at /metrics; may be nil
	Ready     func(context.Context) error // asked by /readyz; nil means always ready
	// Detail is added to the answer of /readyz by a server that is ready, "" if there is nothing to say; may be nil
	Detail func() string
	Self   Self // what the server knows about itself
	Log    *slog.Logger

	Accounts *auth.Accounts // nil: the server has no accounts to change
	Provider *auth.Provider // nil: there is no login provider

	Enrol   *enrol.Registry // nil: this server accepts no enrolments
	Join    *JoinScript     // nil: the server has no script that adds hosts
	Restore *enrol.Restore  // nil: the record cannot have been restored from a backup

	// Work lists the tasks and jobs of a user that have not ended, by their names; may be nil
	Work func(ctx context.Context, user string) ([]string, error)

	Audit Audit // nil: there is no audit

	Configs Configs    // the configuration files of businesses
	Jobs    ConfigJobs // the work on them

	Flag func(gozzard.AgentID) string // why an agent is limited, "" if it is not; may be nil

	Releases *upgrade.Runner // nil: the server has no releases

	// Rights are the present rights of a caller that was identified earlier; nil: they do not change.
	Rights func(gozzard.Caller) *gozzard.Rights

	Keys Keys // nil: the server has no keys that callers can rotate

	Servers *enrol.ServerDesk // nil: no other server shares the record of this one
	Relays  *enrol.RelayDesk  // nil: this server accepts no enrolments

	Notify Notify // alerts to receivers

	Requests *approval.Desk // nil: no act waits for a second person

	// Holds reports whether an operation would have to wait for a second person, and does nothing; nil: none has to.
	Holds func(op *gozzard.Operation, attempts []gozzard.Attempt) bool

	Live *live.Hub // nil: the server has no live data

	Stopping <-chan struct{} // closed when the server stops, which ends streams; may be nil

	// Proxied reports whether a request came through a proxy that the server trusts. Such a request may have any name in
	// its header Host. nil: there is no proxy.
	Proxied func(*http.Request) bool
}

type api struct {
	Options
	query    map[string][]string // the query parameters of a route, by method and path
	document func() []byte       // the OpenAPI document
	streams  streamCount         // open event streams
	watchers watchers            // the same, by their users
	rendered rendered.Tasks      // that are polled
}

// New makes the handler of every route in Routes.
func New(o Options) http.Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}

	a := &api{Options: o, query: make(map[string][]string),
		document: sync.OnceValue(func() []byte { return OpenAPI(o.Challenge) })}
	byPath := make(map[string]map[string]Route)
	for _, rt := range Routes() {
		if rt.Access == 0 {
			panic("route " + rt.Method + " " + rt.Path + " has no access")
		}
		if byPath[rt.Path] == nil {
			byPath[rt.Path] = make(map[string]Route)
		}
		byPath[rt.Path][rt.Method] = rt
		a.query[rt.Method+" "+rt.Path] = rt.query()
	}

	mux := http.NewServeMux()
	for path, methods := range byPath {
		mux.Handle(path, a.instrument(path, a.onPath(methods)))
	}
	mux.Handle("/", a.instrument("other", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.fail(w, r, gozzard.Errorf(gozzard.ErrNotFound, "this path does not exist"))
	})))

	return mux
}
