package control

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/delivery"
	"github.com/gozzard/gozzard/internal/pace"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/taskname"
)

const (
	cancelTime  = 10 * time.Second       // for one call
	cancelPause = 5 * time.Millisecond   // between the first two looks at the record; then longer
	cancelLong  = 200 * time.Millisecond // the longest pause
)

// CancelTask cancels the operations of a task that were not sent to their hosts. When it returns, the record has their
// verdicts, and no server sends them any more. What was sent runs on and gets its true verdict. It needs the right to do
// what it cancels; if that is missing for one of the operations, none is cancelled. A task that the caller may not read is
// not found, as in Results.
func (p *Plane) CancelTask(ctx context.Context, q *record.Cancel) (record.TaskResults, error) {
	// Find what it is about.
	res, err := p.Results(ctx, q.Caller, q.Task)
	if err != nil {
		return record.TaskResults{}, err
	}
	if q.Door != "" && res.Task.Door != q.Door {
		return record.TaskResults{}, gozzard.Errorf(gozzard.ErrNotFound, "no such task")
	}
	var open []gozzard.Attempt
	for i := range res.Attempts {
		if a := &res.Attempts[i]; !a.State.Final() && (q.Only == nil || q.Only(a)) {
			open = append(open, *a)
		}
	}

	// Reject what the caller may not do.
	for i := range open {
		if !p.mayCancel(&q.Caller, &open[i]) {
			p.o.Observe.rejected("not_permitted")
			return record.TaskResults{}, gozzard.Errorf(gozzard.ErrAppForbidden,
				"not permitted: app %s may not %s %s here, so nothing was cancelled", q.Caller.App, open[i].Action, open[i].Key)
		}
	}
	if len(open) == 0 {
		return res, nil
	}

	// Cancel, after the audit has it.
	if err := p.o.Store.AddAudit(ctx, []gozzard.AuditRow{p.cancelRow(ctx, q, &res.Task, open)}); err != nil {
		return record.TaskResults{}, err
	}
	c := &cancelling{p: p, task: res.Task.Seq, chosen: map[int32]bool{}, sent: map[gozzard.OpID]uint64{}, asks: true}
	for i := range open {
		c.chosen[open[i].Ref.Index] = true
	}
	if err := c.run(ctx); err != nil {
		return record.TaskResults{}, err
	}

	p.results.drop(res.Task.Seq)
	res.Attempts, err = p.o.Store.Attempts(ctx, res.Task.Seq)
	res.Version = 0
	return res, err
}

// mayCancel reports whether a caller may do what an attempt does, on the host as it is now.
func (p *Plane) mayCancel(caller *gozzard.Caller, a *gozzard.Attempt) bool {
	info := gozzard.HostInfo{Agent: a.Agent, Addrs: []gozzard.HostAddr{a.Addr}}
	if h, known := p.o.Live.Host(a.Agent); known {
		info = h.Info
	}
	return p.stillMay(caller, &delivery.Waited{Ref: a.Ref, Action: a.Action, Key: a.Key, Account: a.Account, Spec: a.Spec}, &info)
}

// cancelRow is the audit row of a caller that cancels attempts.
func (p *Plane) cancelRow(ctx context.Context, q *record.Cancel, t *gozzard.Task, list []gozzard.Attempt) gozzard.AuditRow {
	acts := map[string]bool{}
	for i := range list {
		acts[list[i].Action.String()] = true
	}
	row := gozzard.AuditRow{At: p.o.Now(), Caller: q.Caller, Origin: gozzard.OriginOf(ctx), TaskID: taskname.Of(t.ID),
		Act: "cancel:" + strings.Join(slices.Sorted(maps.Keys(acts)), ","), RequestHash: q.RequestHash, Targets: len(list)}
	row.SetHosts(gozzard.HostLines(list))
	return row
}

// cancelling cancels attempts of one task. It compares the record with what the servers have until each attempt has a
// verdict, or was sent, or may have been sent and will never be sent again.
type cancelling struct {
	p      *Plane
	task   gozzard.TaskSeq
	chosen map[int32]bool          // indexes of attempts
	sent   map[gozzard.OpID]uint64 // in these sessions
	asks   bool                    // asks the homes of agents; else it notes what this server does not deliver

	missing []int32
}

// run cancels.
func (c *cancelling) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cancelTime)
	defer cancel()
	for pause := cancelPause; ; pause = min(2*pause, cancelLong) {
		todo, err := c.left(ctx)
		if err == nil && len(todo) == 0 {
			return nil
		}
		if err == nil {
			err = c.step(ctx, todo)
		}
		if err == nil {
			err = pace.Sleep(ctx, pause)
		}

		switch {
		case err == nil:
		case ctx.Err() != nil:
			return &gozzard.Error{Kind: gozzard.ErrUnavailable, Cause: err, Message: fmt.Sprintf("it is not known whether all "+
				"operations of the task are cancelled: %d of them were not decided within %s. What is cancelled stays so. "+
				"Cancel the task again", len(todo), cancelTime)}
		default:
			return err
		}
	}
}

// left reads the attempts that are not decided.
func (c *cancelling) left(ctx context.Context) ([]gozzard.Attempt, error) {
	list, err := c.p.o.Store.Attempts(ctx, c.task)
	return slices.DeleteFunc(list, func(a gozzard.Attempt) bool {
		session, sent := c.sent[a.Op]
		return !c.chosen[a.Ref.Index] || a.State.Final() || a.State == gozzard.AttemptUnknown ||
			sent && session == a.Session && a.State == gozzard.AttemptDispatched
	}), err
}

// step decides about attempts, as far as that is possible now.
func (c *cancelling) step(ctx context.Context, todo []gozzard.Attempt) error {
	r := c.p.delivery.Recall(ctx, todo)
	maps.Copy(c.sent, r.Sent)

	// What this server does not have: withdraw what waits, and ask the homes about what they may have sent.
	var rows []delivery.Settlement
	homes := map[string][]gozzard.Attempt{}
	for i := range r.Elsewhere {
		a := &r.Elsewhere[i]
		row := delivery.Settlement{Ref: a.Ref, Op: a.Op, Agent: a.Agent, Action: a.Action, Key: a.Key, From: a.State}
		home := c.p.peers.serverOf(a.Agent)
		switch {
		case a.State == gozzard.AttemptPending:
			row.To, row.Outcome = gozzard.AttemptNotExecuted, delivery.Cancelled
			rows = append(rows, row)
		case c.p.peers == nil || c.p.peers.isHere(a.Agent): // it changes now: look again
		case !c.asks:
			c.missing = append(c.missing, a.Ref.Index)
			delete(c.chosen, a.Ref.Index)
		case home != "":
			homes[home] = append(homes[home], *a)
		default: // it may have been sent, by a server that is gone; it is not sent again
			row.To, row.FromSession, row.Outcome = gozzard.AttemptUnknown, a.Session, delivery.AskedToCancel
			rows = append(rows, row)
		}
	}
	if len(rows) > 0 {
		if _, err := (recorder{c.p}).Settle(ctx, rows); err != nil {
			return err
		}
	}
	return c.askHomes(ctx, homes)
}

// askHomes asks other servers to cancel what they have not sent.
func (c *cancelling) askHomes(ctx context.Context, homes map[string][]gozzard.Attempt) error {
	for server, list := range homes {
		for part := range slices.Chunk(list, cancelMost) {
			missing, err := c.p.peers.askCancel(ctx, server, c.task, part)
			if err != nil {
				return err
			}
			for i := range part {
				if a := &part[i]; !slices.Contains(missing, a.Ref.Index) {
					c.sent[a.Op] = a.Session // if it has no verdict
				}
			}
		}
	}
	return nil
}
