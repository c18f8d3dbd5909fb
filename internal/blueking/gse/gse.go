package gse

import (
	"context"
	"log/slog"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/rendered"
)

// Plane is the part of the control plane that this door uses.
type Plane interface {
	Operate(ctx context.Context, op *gozzard.Operation) (gozzard.Task, error)
	ReadFile(ctx context.Context, caller gozzard.Caller, q gozzard.FileRead) (gozzard.FileView, error)
	WriteFiles(ctx context.Context, op *gozzard.FileOperation) (gozzard.Task, error)
	CancelTask(ctx context.Context, q *record.Cancel) (record.TaskResults, error)
	Results(ctx context.Context, caller gozzard.Caller, id gozzard.TaskID) (record.TaskResults, error)
	Await(ctx context.Context, caller gozzard.Caller, id gozzard.TaskID, limit time.Duration) (record.TaskResults,
		error)
	Status(caller gozzard.Caller, key gozzard.Key, targets []gozzard.Target) []record.StatusRow
	Page(caller gozzard.Caller, namespace string, start, limit int) (total int, rows []fleet.Row)
	SetGroups(ctx context.Context, req record.GroupRequest) ([]record.GroupAnswer, error)
	Groups(ctx context.Context, caller gozzard.Caller, namespace string,
		targets []gozzard.Target) ([]record.GroupLimits, error)
	Resolve(caller gozzard.Caller, t gozzard.Target) (fleet.Host, bool)
	Rebind(ctx context.Context, caller gozzard.Caller, addr gozzard.HostAddr, agent gozzard.AgentID,
		requestHash [32]byte) error
}

// Options are the parts and settings of the door.
type Options struct {
	Plane    Plane
	Auth     *auth.Directory
	Log      *slog.Logger
	Observe  func(route string, code int, d time.Duration) // called after every request; nil means not at all
	MaxHosts int                                           // in one request; 100,000
	// how long register, update and unregister wait for agents; 10 s
	SyncWait time.Duration
}

type server struct {
	plane    Plane
	maxHosts int
	syncWait time.Duration
	rendered rendered.Tasks // that are polled
	reading  chan struct{}  // has room for the transfers that read their sources now
}

// New makes the door. Requests must reach it with their path as sent: see blueking.Handler.Owns.
func New(o Options) *blueking.Handler {
	if o.MaxHosts == 0 {
		o.MaxHosts = record.MaxTargets
	}
	if o.SyncWait == 0 {
		o.SyncWait = 10 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &server{plane: o.Plane, maxHosts: o.MaxHosts, syncWait: o.SyncWait,
		reading: make(chan struct{}, transferReads)}
	return blueking.New(blueking.Door{Prefixes: prefixes(), Routes: s.routes(), Auth: o.Auth, Log: o.Log,
		Observe: o.Observe})
}
