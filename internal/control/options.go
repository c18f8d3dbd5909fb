package control

import (
	"context"
	"log/slog"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
)

// Options are the parts and settings of a Plane. Zero settings get their defaults.
type Options struct {
	Store    Store
	Topology TopologyStore // nil: the server has no businesses
	Dispatch Dispatcher
	Live     *fleet.Index
	Log      *slog.Logger
	Now      func() time.Time
	Observe  Observer

	// Addrs are the addresses of an agent, given those that it reports. nil: an agent has what it reports.
	Addrs func(agent gozzard.AgentID, reported []gozzard.HostAddr) []gozzard.HostAddr

	// Gone reports whether an agent was removed from the fleet for ever. It may be nil: none ever was.
	Gone func(gozzard.AgentID) bool

	// Rights are the present rights of a caller whose operation waited for a host. It may be nil: rights do not change.
	Rights func(gozzard.Caller) *gozzard.Rights

	// Hold is asked before an operation is recorded: it returns an error for one that has to wait. It may be nil.
	Hold func(ctx context.Context, op *gozzard.Operation, attempts []gozzard.Attempt) error

	// FoldQuery decides whether an operation that changes nothing has its own row in the audit; see
	// record.NewTask.FoldAudit. nil: all have.
	FoldQuery func(gozzard.AuditRow) (quiet bool, done func(recorded bool))

	// AuditRead records that a caller sees the content of a file. After an error it does not see it. nil: it is not recorded.
	AuditRead func(context.Context, gozzard.AuditRow) error

	// Tracer follows operations. nil: nothing is traced.
	Tracer Tracer

	// Peers carries news to the other servers that share the record, and Server is the id of this one. nil: it is alone.
	Peers  PeerLink
	Server string

	// ThroughHome says that commands of this server reach only its own agents, so those for others go through their homes.
	ThroughHome bool

	// Changed is called when another server changed recorded facts of these kinds. It may be nil.
	Changed func(kinds []string)

	Interval time.Duration // between full reports of an agent; 30 s

	// Servers are the servers that agents of a cloud area may use. If it is nil, agents are not told.
	Servers func(cloud int) []gozzard.ServerAddress
	Lease   time.Duration // silence after which a host is offline; 14 s, so that it is known within 15
	Slack   time.Duration // on top of a command's own time before an attempt is given up; 8 s
	Resend  time.Duration // the shortest pause between repeats of what an agent has not answered; 1 s
	Keep    time.Duration // results are kept at least that long; 24 h
	Window  int           // attempts of all tasks that are sent and not answered, at most; 16,384
	Quota   int           // attempts of one app without a verdict; 0: no limit
	Admit   Admission     // of operations; nil: all are admitted

	HelloRate float64  // sessions opened in a second; 2000, below 0 no limit
	Joining   *Joining // agents that are joining; nil: New makes it

	Events     int           // events kept in memory, the newest; 20,000
	KeepEvents time.Duration // events are kept that long; 30 days
	MostEvents int           // events that are kept; 1,000,000
	Refresh    time.Duration // between repeats of what agents get anyway, such as pools; 5 min
	Answer     time.Duration // time for an agent to answer a question, such as one for a log; 10 s
}

func (o *Options) setDefaults() {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}

	def(&o.Interval, 30*time.Second)
	def(&o.Lease, 14*time.Second)
	def(&o.Slack, 8*time.Second)
	def(&o.Resend, time.Second)
	def(&o.Keep, 24*time.Hour)
	def(&o.Refresh, 5*time.Minute)
	def(&o.Answer, 10*time.Second)

	def(&o.KeepEvents, 30*24*time.Hour)

	if o.Events == 0 {
		o.Events = 20_000
	}
	if o.MostEvents == 0 {
		o.MostEvents = 1_000_000
	}
	if o.HelloRate == 0 {
		o.HelloRate = 2000
	}
	if o.Window == 0 {
		o.Window = 16 << 10
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Joining == nil {
		o.Joining = NewJoining(o.Now)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}

// Observer is called when something happens, for metrics. Funcs that are nil are not called.
type Observer struct {
	Accepted func(targets int)
	Settled  func(action gozzard.Action, state gozzard.AttemptState, code gozzard.Code)
	Refused  func(rule string) // a report or request was rejected, by this rule
	Update   func(from gozzard.AgentID, r gozzard.UpdateReport)

	// Downgraded: an agent came back with an older protocol and its session was rejected.
	Downgraded func(agent gozzard.AgentID, said, known uint32)

	// Copied: copies of an agent run at the same time, at different servers.
	Copied func(agent gozzard.AgentID, cloud int)
}

// rejected counts a rejection.
func (o *Observer) rejected(rule string) {
	if o.Refused != nil {
		o.Refused(rule)
	}
}
