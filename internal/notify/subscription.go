package notify

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// Subscriptions lists those of a caller; those of all for an admin of everything.
func (e *Engine) Subscriptions(ctx context.Context, caller gozzard.Caller) ([]record.Subscription, error) {
	list, err := e.o.Store.Subscriptions(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(s record.Subscription) bool { return !owns(caller, &s) }), nil
}

func owns(caller gozzard.Caller, s *record.Subscription) bool {
	return s.Owner.App == caller.App && s.Owner.User == caller.User || caller.Rights.All()
}

// Subscribe records a subscription of a caller that may see something.
func (e *Engine) Subscribe(ctx context.Context, caller gozzard.Caller, spec record.SubscriptionSpec) (s record.Subscription,
	err error) {
	if !caller.Rights.Has(gozzard.RoleViewer) && !caller.Rights.Has(gozzard.RoleOperator) {
		return s, gozzard.Errorf(gozzard.ErrUserForbidden, "this needs the role viewer, operator or admin")
	}
	receivers, err := e.Receivers(ctx, caller)
	if err != nil {
		return s, err
	}
	if err := checkSpec(&spec, receivers); err != nil {
		return s, err
	}
	s = record.Subscription{ID: newID(), Owner: caller, Created: e.o.Now(), SubscriptionSpec: spec}
	return s, e.o.Store.AddSubscription(ctx, s, e.row(caller, auditSubscribe+s.ID))
}

// checkSpec rejects a subscription that cannot work.
func checkSpec(s *record.SubscriptionSpec, receivers []record.Receiver) error {
	if err := checkName(s.Name); err != nil {
		return err
	}

	// The receivers, by their ids or names.
	if len(s.Receivers) == 0 || len(s.Receivers) > 20 {
		return invalid("receivers: use 1 to 20 of them")
	}
	for i, name := range s.Receivers {
		at := find(receivers, name)
		if at < 0 {
			return invalid("receivers: there is no receiver %q that you may use", clean(name, maxName))
		}
		s.Receivers[i] = receivers[at].ID
	}

	// The scope.
	for _, list := range [][]string{s.Namespaces, s.Names, s.Hosts} {
		if len(list) > maxPatterns || slices.ContainsFunc(list, func(p string) bool { return p == "" || len(p) > maxPattern }) {
			return invalid("a list has at most %d patterns of 1 to %d bytes", maxPatterns, maxPattern)
		}
	}
	for _, k := range s.Kinds {
		if !slices.Contains(Kinds(), k) {
			return invalid("kinds: %q is not a kind of alerts: use %s", clean(k, maxName), strings.Join(Kinds(), ", "))
		}
	}
	if len(s.Kinds) > len(Kinds()) || len(s.Businesses) > maxPatterns || len(s.Labels) > 20 {
		return invalid("use at most %d businesses and 20 labels, and each kind once", maxPatterns)
	}
	for k, v := range s.Labels {
		if k == "" || len(k)+len(v) > maxPattern {
			return invalid("labels: a label has at most %d bytes", maxPattern)
		}
	}

	// The groups and the waits.
	for _, k := range s.GroupBy {
		if !slices.Contains(groupKeys(), k) {
			return invalid("group_by: use %s", strings.Join(groupKeys(), ", "))
		}
	}
	for _, d := range []time.Duration{s.Wait, s.Interval, s.Repeat} {
		if d < 0 || d > maxDuration || d > 0 && d < time.Second {
			return invalid("wait, interval and repeat are from 1s to %s", maxDuration)
		}
	}
	if s.Repeat > 0 && s.Repeat < time.Minute {
		return invalid("repeat is at least 1m")
	}
	return nil
}

// Unsubscribe removes a subscription and what waits for it. One of somebody else does not exist for the caller.
func (e *Engine) Unsubscribe(ctx context.Context, caller gozzard.Caller, id string) error {
	list, err := e.Subscriptions(ctx, caller)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(list, func(s record.Subscription) bool { return s.ID == id }) {
		if id, err = named(list, id); err != nil {
			return err
		}
	}
	return e.o.Store.RemoveSubscription(ctx, id, e.row(caller, auditUnsubscribe+id))
}

// named is the id of the only subscription with a name.
func named(list []record.Subscription, name string) (id string, err error) {
	for i := range list {
		switch {
		case list[i].Name != name:
		case id != "":
			return "", gozzard.Errorf(gozzard.ErrConflict, "several subscriptions have the name %.80q: give the id of one", name)
		default:
			id = list[i].ID
		}
	}
	if id == "" {
		return "", gozzard.Errorf(gozzard.ErrNotFound, "there is no subscription %.40q", name)
	}
	return id, nil
}
