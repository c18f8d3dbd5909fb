package approval

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/gozzard/gozzard"
)

const (
	maxAct     = 4 << 20 // bytes
	maxWaiting = 20      // requests of one person
	maxListed  = 1000
	maxWords   = 500
	maxResult  = 300
)

// Do carries out an act of one kind for the person that asked for it.
type Do func(ctx context.Context, asker gozzard.Caller, act []byte) (result string, err error)

// Options are the parts of a Desk. All but Log and Now are required.
type Options struct {
	Store  Store
	Do     map[Kind]Do
	Rights func(gozzard.Caller) *gozzard.Rights // the present rights of a caller
	Wait   time.Duration                        // how long a request waits
	Log    *slog.Logger
	Now    func() time.Time
}

// Desk takes requests and decisions. It is safe for concurrent use.
type Desk struct{ o Options }

// NewDesk makes a Desk. Requests that were approved before the server ended, without a result, are not carried out
// again: whether they were is not known.
func NewDesk(ctx context.Context, o Options) (*Desk, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}

	d := &Desk{o: o}
	list, err := o.Store.Requests(ctx, maxListed)
	if err != nil {
		return nil, err
	}
	for _, r := range list {
		if r.State == Approved && r.Result == "" {
			err := o.Store.RequestResult(ctx, r.ID, "failed: the server ended while it was carried out; look, then ask again")
			if err != nil {
				return nil, err
			}
		}
	}
	return d, nil
}

// CanAsk reports whether a caller can ask a second person: an app cannot.
func CanAsk(c gozzard.Caller) bool { return hasLogin(c) }

// hasLogin reports whether a caller is a user with a login. A user that an app only names has none.
func hasLogin(c gozzard.Caller) bool { return c.User != "" && !c.Asserted }

// Ask records a request and returns it as a *Held error, or another error if it cannot be recorded.
func (d *Desk) Ask(ctx context.Context, caller gozzard.Caller, kind Kind, what string, act any) error {
	if !hasLogin(caller) {
		return gozzard.Errorf(gozzard.ErrUserForbidden, "this needs a second person, and an app cannot ask one: "+
			"use a login of your own (gozzard user login NAME): %s", what)
	}
	b, err := json.Marshal(act)
	if err != nil {
		return fmt.Errorf("cannot encode a request: %w", err)
	}
	if len(b) > maxAct {
		return gozzard.Errorf(gozzard.ErrInvalid, "this needs a second person and is too large to wait: use fewer targets")
	}

	// The record has milliseconds.
	now := d.o.Now().UTC().Truncate(time.Millisecond)
	r := Request{Kind: kind, What: gozzard.Clip(what, maxWords), Act: b, App: caller.App, Person: caller.User,
		Created: now, Expires: now.Add(d.o.Wait), State: Waiting}
	r.Digest = r.digest()
	err = d.o.Store.AddRequest(ctx, &r, maxWaiting, now, func(id int64) AuditEntry {
		return AuditEntry{At: now, Caller: caller, What: "request:ask:" + strconv.FormatInt(id, 10) + " " + string(kind) +
			" " + r.Digest + " " + r.What}
	})
	if err != nil {
		return err
	}
	return &Held{Request: r}
}

// List lists the newest requests that a caller may see: its own, and all of them for an admin of everything.
func (d *Desk) List(ctx context.Context, caller gozzard.Caller) (list []Request, err error) {
	all, err := d.o.Store.Requests(ctx, maxListed)
	if err != nil {
		return nil, err
	}
	for _, r := range all {
		if caller.Rights.All() || hasLogin(caller) && r.Person == caller.User {
			list = append(list, r.At(d.o.Now()))
		}
	}
	return list, nil
}

// Decide approves or rejects a request. alone says that the caller came without an app: an app could bring the tokens of
// two people. The asker can reject its own request, and nothing else.
func (d *Desk) Decide(ctx context.Context, caller gozzard.Caller, alone bool, id int64, digest string,
	approve bool) (Request, error) {
	// Find the request. What a caller may not see does not exist for it.
	r, err := d.o.Store.Request(ctx, id)
	if err != nil {
		return Request{}, err
	}
	own := hasLogin(caller) && caller.User == r.Person
	if !caller.Rights.All() && !own {
		return Request{}, gozzard.Errorf(gozzard.ErrNotFound, "there is no request %d", id)
	}

	// Check it and the second person.
	now := d.o.Now().UTC().Truncate(time.Millisecond)
	if r = r.At(now); r.State != Waiting {
		return r, gozzard.Errorf(gozzard.ErrConflict, "request %d is %s: ask again", id, r.State)
	}
	switch {
	case approve && own:
		return r, gozzard.Errorf(gozzard.ErrUserForbidden,
			"request %d was made by %s: another person must approve it", id, r.Person)
	case approve && !(hasLogin(caller) && alone):
		return r, gozzard.Errorf(gozzard.ErrUserForbidden, "an app cannot approve request %d, also not for a user: "+
			"use a login of your own (gozzard user login NAME)", id)
	case approve && !caller.Rights.All():
		return r, gozzard.Errorf(gozzard.ErrUserForbidden, "approving request %d needs the role admin on everything", id)
	case r.digest() != r.Digest:
		return r, gozzard.Errorf(gozzard.ErrConflict, "request %d was changed in the record: it is not carried out", id)
	case approve && subtle.ConstantTimeCompare([]byte(digest), []byte(r.Digest)) != 1:
		return r, gozzard.Errorf(gozzard.ErrConflict, "request %d has the digest %s, not the given one: look at it again",
			id, r.Digest)
	}

	// Record the decision, then carry it out.
	r.State, r.Decided, r.Decider = Rejected, now, caller.User
	word := "request:reject:"
	if r.Decider == "" {
		r.Decider = "app " + caller.App
	}
	if approve {
		r.State, word = Approved, "request:approve:"
	}
	act := AuditEntry{At: now, Caller: caller, What: word + strconv.FormatInt(id, 10) + " " + string(r.Kind) + " " + r.Digest}
	if err := d.o.Store.DecideRequest(ctx, &r, act); err != nil {
		return r, err
	}
	if approve {
		return d.carryOut(context.WithoutCancel(ctx), r)
	}
	return r, nil
}

// carryOut carries out an approved request with the present rights of its asker.
func (d *Desk) carryOut(ctx context.Context, r Request) (Request, error) {
	asker := gozzard.Caller{App: r.App, User: r.Person}
	asker.Rights = d.o.Rights(asker)

	do, known := d.o.Do[r.Kind]
	var err error
	if !known {
		err = fmt.Errorf("this server does not carry out %s", r.Kind)
	} else {
		r.Result, err = do(gozzard.WithApproval(ctx), asker, r.Act)
		r.Result = "done" + r.Result
	}
	if err != nil {
		r.Result = gozzard.Clip("failed: "+err.Error(), maxResult)
		d.o.Log.Warn("an approved request failed", "request", r.ID, "err", err)
	}
	return r, d.o.Store.RequestResult(ctx, r.ID, r.Result)
}
