package configfile

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

// Plane is the part of the control plane that knows businesses. What a caller may not see is not in its answers.
type Plane interface {
	Business(ctx context.Context, caller gozzard.Caller, biz int) (record.Business, error)
	FindProcesses(caller gozzard.Caller, q topology.Query) (total int, rows []topology.Row)
	TopologyItems(ctx context.Context, biz int, rows []topology.Row, a gozzard.Action) ([]record.TopologyItem, error)

	// May reports whether a caller may do something on a host. Without a definition no account is asked for.
	May(caller gozzard.Caller, a gozzard.Action, key gozzard.Key, t gozzard.Target, spec []byte) bool
}

// Options are the parts of Files. Log and Now may be nil.
type Options struct {
	Store Store
	Plane Plane
	Hosts Hosts
	Log   *slog.Logger
	Now   func() time.Time
}

// Files has the configuration files of all businesses. It is safe for concurrent use.
//
// To read them a caller needs to see the business. To change them it needs the right to configure on all hosts of the
// business, because a template is for all of them.
//
// A topology document may have templates too. They are in the same lists, and have versions like the others; their names,
// places and bindings are changed in the document only. If the document has a template with the id of another one, that of the
// document counts.
type Files struct {
	o         Options
	rendering chan struct{} // has an element for each template that a job renders now
	previews  *previews
}

// New makes Files.
func New(o Options) *Files {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Files{o: o, rendering: make(chan struct{}, rendersAtOnce), previews: newPreviews()}
}

// mayEdit rejects a caller that may not change the configuration files of a business.
func mayEdit(caller gozzard.Caller, biz int) error {
	if !caller.Rights.MayBusinessHosts(gozzard.ActionConfigure, biz) {
		return gozzard.Errorf(gozzard.ErrAppForbidden,
			caller.Form("app %s may not change configuration files of business %d: it needs the right to configure on its hosts",
				"user %s may not change configuration files of business %d: it needs the right to configure on its hosts"),
			caller.Named(), biz)
	}
	return nil
}

// business reads a business. For a caller that may not see it, it does not exist.
func (f *Files) business(ctx context.Context, caller gozzard.Caller, biz int) (record.Business, error) {
	if !caller.Rights.SeesBusiness(biz) {
		return record.Business{}, gozzard.Errorf(gozzard.ErrNotFound, "there is no business %d", biz)
	}
	return f.o.Plane.Business(ctx, caller, biz)
}

// audit is the row of a change.
func (f *Files) audit(caller gozzard.Caller, act string, id int64, about string) (gozzard.AuditRow, error) {
	row := gozzard.AuditRow{At: f.o.Now(), Caller: caller, Act: "config:" + act, Targets: 1}
	if id != 0 {
		row.Act += fmt.Sprintf(" %d", id)
	}
	return row, row.SetText(about)
}

// changed is the trail of something that is made or changed now.
func (f *Files) changed(caller gozzard.Caller, t record.Trail) record.Trail {
	t.Updated, t.UpdatedBy = f.o.Now().Truncate(time.Millisecond), caller.User
	if t.Created.IsZero() {
		t.Created, t.CreatedBy = t.Updated, t.UpdatedBy
	}
	return t
}
