package notify

import (
	"context"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// Test sends a message to a receiver at once, and returns why it did not arrive. If it arrived, the messages that wait for
// the receiver are due at once, too: the server that sends alerts sees that in the record.
func (e *Engine) Test(ctx context.Context, caller gozzard.Caller, id string) (to record.Receiver, waiting int, err error) {
	if err := checkAdmin(caller); err != nil {
		return to, 0, err
	}
	list, err := e.Receivers(ctx, caller)
	if err != nil {
		return to, 0, err
	}
	i := find(list, id)
	if i < 0 {
		return to, 0, noReceiver(id)
	}
	to = list[i]

	// The audit says so before anything leaves the server.
	if err := e.o.Store.AddAudit(ctx, []gozzard.AuditRow{e.row(caller, auditTest+clean(to.ID, 80))}); err != nil {
		return to, 0, err
	}
	if err := e.sendTest(ctx, &to); err != nil {
		return to, 0, err
	}

	// What waits follows.
	backlogs, err := e.o.Store.Backlogs(ctx)
	if err != nil {
		return to, 0, err
	}
	if waiting = backlogs[to.ID].Waiting; waiting == 0 {
		return to, 0, nil
	}
	return to, waiting, e.o.Store.RetryWaiting(ctx, to.ID, e.o.Now())
}

func (e *Engine) sendTest(ctx context.Context, r *record.Receiver) error {
	to, err := e.open(r)
	if err != nil {
		return gozzard.Errorf(gozzard.ErrConflict, "the receiver cannot be used: %s", clean(err.Error(), maxText))
	}
	defer to.Close()

	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	now := e.o.Now().UTC()
	err = to.Send(ctx, &Message{ID: newID(), Name: "test", Test: true, At: now, Group: map[string]string{}, Resolved: 1,
		Alerts: []record.Alert{{Fingerprint: "0", Kind: kindTest, Starts: now, Ends: now}}})
	if err != nil {
		e.count(r, "failed")
		return gozzard.Errorf(gozzard.ErrConflict, "the test message did not arrive: %s", clean(err.Error(), maxText))
	}
	e.count(r, "sent")
	return nil
}

func noReceiver(id string) error {
	return gozzard.Errorf(gozzard.ErrNotFound, "there is no receiver %.40q", id)
}

// Backlogs are what was not delivered to the receivers, by their ids. The errors can have addresses and answers of
// receivers, so they are for admins of everything.
func (e *Engine) Backlogs(ctx context.Context, caller gozzard.Caller) (map[string]record.Backlog, error) {
	if err := checkAdmin(caller); err != nil {
		return nil, err
	}
	return e.o.Store.Backlogs(ctx)
}
