package gsekit

import (
	"context"
	"encoding/json"
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
	Businesses(caller gozzard.Caller) []record.BusinessHead
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
	CountJobs(ctx context.Context, caller gozzard.Caller, f record.JobFilter) ([]record.JobCount, error)
	HasJobs(ctx context.Context, caller gozzard.Caller, biz int) (bool, error)
}

// CMDB is BlueKing CMDB, with the credentials of the server. An error may have a method CMDBError, with the code and the
// message of CMDB.
type CMDB interface {
	// Read makes a call that changes nothing.
	Read(ctx context.Context, call string, body any) (data json.RawMessage, err error)
	// Write makes a call that changes a business, for a caller whose rights were checked.
	Write(ctx context.Context, caller gozzard.Caller, biz int, call string, body any) (data json.RawMessage, err error)
}

// Configs is the part of internal/configfile that this door uses.
type Configs interface {
	Templates(ctx context.Context, caller gozzard.Caller, biz int) ([]record.ConfigListed, error)
	Template(ctx context.Context, caller gozzard.Caller, biz int, id int64) (record.ConfigListed, error)
	AddTemplate(ctx context.Context, caller gozzard.Caller, t *record.ConfigTemplate) error
	SaveTemplate(ctx context.Context, caller gozzard.Caller, biz int, id int64,
		change func(t *record.ConfigTemplate)) (record.ConfigTemplate, error)
	RemoveTemplate(ctx context.Context, caller gozzard.Caller, biz int, id int64) error
	Versions(ctx context.Context, caller gozzard.Caller, biz int, template int64) ([]record.ConfigVersion, error)
	Version(ctx context.Context, caller gozzard.Caller, biz int, id int64) (record.ConfigVersion, error)
	AddVersion(ctx context.Context, caller gozzard.Caller, v *record.ConfigVersion) error
	SaveVersion(ctx context.Context, caller gozzard.Caller, biz int, id int64,
		change func(v *record.ConfigVersion)) (record.ConfigVersion, error)
	CloneVersion(ctx context.Context, caller gozzard.Caller, biz int, id int64, description string) (record.ConfigVersion, error)
	Bindings(ctx context.Context, caller gozzard.Caller, biz int, template int64) ([]record.ConfigBinding, error)
	BindTemplate(ctx context.Context, caller gozzard.Caller, biz int, template int64,
		objects []record.ConfigObject) (deleted, created int, err error)
	BindObject(ctx context.Context, caller gozzard.Caller, biz int, object record.ConfigObject,
		templates []int64) (deleted, created int, err error)
	AddRefs(ctx context.Context, biz int, rows []topology.Row) error
	Preview(ctx context.Context, caller gozzard.Caller, biz, process int, content string) (string, error)
	Placed(ctx context.Context, caller gozzard.Caller, q topology.Query, template int64) ([]record.ConfigPlaced, error)
	Newest(ctx context.Context, caller gozzard.Caller, biz int, slot record.ConfigSlot) (record.ConfigNewest, error)
	File(ctx context.Context, caller gozzard.Caller, biz int, id int64) (record.ConfigInstance, error)
	Snapshot(ctx context.Context, c *record.ConfigInstance) (*record.ConfigSnapshot, error)
}

// Options are the parts and settings of the door.
type Options struct {
	Plane Plane
	Jobs  Jobs
	// Configs has the configuration files.
	Configs Configs
	// CMDB has the businesses that do not come from documents; nil means that there is none.
	CMDB CMDB
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
	configs     Configs
	cmdb        CMDB
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

	s := &server{plane: o.Plane, jobs: o.Jobs, configs: o.Configs, cmdb: o.CMDB, flush: o.Flush, granularity: o.Granularity, syncWait: o.SyncWait,
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
