package gsekit

import (
	"context"
	"log/slog"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

// Plane is the part of the control plane that this door uses.
type Plane interface {
	FindProcesses(caller gozzard.Caller, q topology.Query) (total int, rows []topology.Row)
	Business(ctx context.Context, caller gozzard.Caller, biz int) (record.Business, error)
	TopologyItems(ctx context.Context, biz int, rows []topology.Row, a gozzard.Action) ([]record.TopologyItem, error)
	Operate(ctx context.Context, op *gozzard.Operation) (gozzard.Task, error)
	Await(ctx context.Context, caller gozzard.Caller, id gozzard.TaskID, limit time.Duration) (record.TaskResults,
		error)
}

// Jobs is the part of internal/waves that this door uses.
type Jobs interface {
	Create(ctx context.Context, r record.JobRequest) (record.Job, error)
	Job(ctx context.Context, caller gozzard.Caller, biz int, id int64) (record.Job, error)
	Jobs(ctx context.Context, caller gozzard.Caller, f record.JobFilter) (total int, jobs []record.Job, err error)
	Tasks(ctx context.Context, caller gozzard.Caller, biz int, f record.JobTaskFilter) (record.JobTaskPage, error)
	Retry(ctx context.Context, caller gozzard.Caller, biz int, id int64, tasks []int64) (record.Job, error)
	HasJobs(ctx context.Context, caller gozzard.Caller, biz int) (bool, error)
}

// Options are the parts and settings of the door.
type Options struct {
	Plane Plane
	Jobs  Jobs
	// Flush updates a business from its source and then returns what of it could not be taken over; nil means that there
	// is no source but the record.
	Flush       Flush
	Auth        *auth.Directory
	Log         *slog.Logger
	Observe     func(route string, code int, d time.Duration) // called after every request; nil means not at all
	Granularity record.Granularity                            // of jobs; ByBusiness
	SyncWait    time.Duration                                 // how long sync_process_status waits for agents; 10 s
	Zone        *time.Location                                // of times without one; time.Local
}

// Flush updates a business from its source. left has a sentence for each thing that could not be taken over.
type Flush func(ctx context.Context, caller gozzard.Caller, biz int) (left []string, err error)

type server struct {
	plane       Plane
	jobs        Jobs
	flush       Flush
	granularity record.Granularity
	syncWait    time.Duration
	zone        *time.Location
}

// New makes the door. Requests must reach it with their path as sent: see blueking.Handler.Owns.
func New(o Options) *blueking.Handler {
	if o.Granularity == "" {
		o.Granularity = record.ByBusiness
	}
	if o.SyncWait == 0 {
		o.SyncWait = 10 * time.Second
	}
	if o.Zone == nil {
		o.Zone = time.Local
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Flush == nil {
		o.Flush = func(context.Context, gozzard.Caller, int) ([]string, error) { return nil, nil }
	}

	s := &server{plane: o.Plane, jobs: o.Jobs, flush: o.Flush, granularity: o.Granularity, syncWait: o.SyncWait,
		zone: o.Zone}
	return blueking.New(blueking.Door{
		Prefixes: prefixes(), Routes: s.routes(), Numbers: numberOf, DescribeError: describeError, Quiet: true,
		Auth: o.Auth, Log: o.Log, Observe: o.Observe,
	})
}

// request is one call with its form.
type request struct {
	*blueking.Call
	*form
	biz int
}

type handler func(ctx context.Context, r *request) (any, error)

// about makes the handler of a call on a business. The business is in the path on the paths of the app, and in the
// body on those of the bus.
func about(handle handler) handler {
	return func(ctx context.Context, r *request) (any, error) {
		r.biz = int(r.pathInt(r.Call, "bk_biz_id"))
		return handle(ctx, r)
	}
}

func (h handler) serve(ctx context.Context, c *blueking.Call) (any, error) {
	f, err := newForm(c)
	if err != nil {
		return nil, err
	}
	return h(ctx, &request{Call: c, form: f})
}
