package notify

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/suggest"
)

// Subscriptions lists those of a caller; those of all for an admin of everything. What they leave open has its default.
func (e *Engine) Subscriptions(ctx context.Context, caller gozzard.Caller) ([]record.Subscription, error) {
	list, err := e.ownSubscriptions(ctx, caller)
	for i := range list {
		s := &list[i].SubscriptionSpec
		if len(s.Kinds) == 0 {
			s.Kinds = Kinds()[:usualKinds]
		}
		if len(s.GroupBy) == 0 {
			s.GroupBy = usualGroup()
		}
		s.Wait, s.Interval, s.Repeat = timing(s)
	}
	return list, err
}

// ownSubscriptions are those of a caller as they are recorded.
func (e *Engine) ownSubscriptions(ctx context.Context, caller gozzard.Caller) ([]record.Subscription, error) {
	list, err := e.o.Store.Subscriptions(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(s record.Subscription) bool { return !owns(caller, &s) }), nil
}

func owns(caller gozzard.Caller, s *record.Subscription) bool {
	return isOwner(caller, s) || caller.Rights.All()
}

func isOwner(caller gozzard.Caller, s *record.Subscription) bool {
	return s.Owner.App == caller.App && s.Owner.User == caller.User
}

// Subscribe records a subscription of a caller that may see something.
func (e *Engine) Subscribe(ctx context.Context, caller gozzard.Caller, spec record.SubscriptionSpec) (s record.Subscription,
	err error) {
	if err := checkSubscriber(caller); err != nil {
		return s, err
	}
	if err := checkSpec(&spec); err != nil {
		return s, err
	}
	if err := e.useReceivers(ctx, caller, true, &spec); err != nil {
		return s, err
	}
	s = record.Subscription{ID: newID(), Owner: caller, Created: e.o.Now(), SubscriptionSpec: spec}
	return s, e.o.Store.AddSubscription(ctx, s, e.row(caller, auditSubscribe+s.ID))
}

// checkSubscriber rejects a caller that may see nothing.
func checkSubscriber(caller gozzard.Caller) error {
	if !caller.Rights.Has(gozzard.RoleViewer) && !caller.Rights.Has(gozzard.RoleOperator) {
		return gozzard.Errorf(gozzard.ErrUserForbidden, "this needs the role viewer, operator or admin")
	}
	return nil
}

// useReceivers replaces the names of receivers by their ids, if the owner of the subscription may use them. self means that the caller is the
// owner.
func (e *Engine) useReceivers(ctx context.Context, owner gozzard.Caller, self bool, s *record.SubscriptionSpec) error {
	receivers, err := e.Receivers(ctx, owner)
	if err != nil {
		return err
	}
	for i, name := range s.Receivers {
		at := find(receivers, name)
		if at < 0 {
			if !self {
				return fault("receivers", "there is no receiver %q that the owner of the subscription may use", clean(name, maxName))
			}
			if near := suggest.Nearest(name, receiverNames(receivers)); near != "" {
				return fault("receivers", "there is no receiver %q that you may use, did you mean %q?", clean(name, maxName), near)
			}
			return fault("receivers", "there is no receiver %q that you may use", clean(name, maxName))
		}
		s.Receivers[i] = receivers[at].ID
	}
	return nil
}

// receiverNames are the names that a caller may have meant.
func receiverNames(list []record.Receiver) (names []string) {
	for i := range list {
		names = append(names, list[i].Name)
	}
	return names
}

// checkSpec rejects a subscription that cannot work.
func checkSpec(s *record.SubscriptionSpec) error {
	if err := checkName(s.Name); err != nil {
		return err
	}
	if len(s.Receivers) == 0 || len(s.Receivers) > 20 {
		return fault("receivers", "use 1 to 20 of them")
	}

	// The scope.
	for _, f := range []struct {
		setting string
		list    []string
	}{{"namespaces", s.Namespaces}, {"names", s.Names}, {"hosts", s.Hosts}} {
		if len(f.list) > maxPatterns || slices.ContainsFunc(f.list, func(p string) bool { return p == "" || len(p) > maxPattern }) {
			return fault(f.setting, "a list has at most %d patterns of 1 to %d bytes", maxPatterns, maxPattern)
		}
	}
	for _, k := range s.Kinds {
		if !slices.Contains(Kinds(), k) {
			if near := suggest.Nearest(k, Kinds()); near != "" {
				return fault("kinds", "%q is not a kind of alerts, did you mean %q? Known are %s", clean(k, maxName), near, strings.Join(Kinds(), ", "))
			}
			return fault("kinds", "%q is not a kind of alerts: use %s", clean(k, maxName), strings.Join(Kinds(), ", "))
		}
	}
	if len(s.Kinds) > len(Kinds()) || len(s.Businesses) > maxPatterns || len(s.Labels) > 20 {
		return invalid("use at most %d businesses and 20 labels, and each kind once", maxPatterns)
	}
	for k, v := range s.Labels {
		if k == "" || len(k)+len(v) > maxPattern {
			return fault("labels", "a label has at most %d bytes", maxPattern)
		}
	}

	// The groups and the waits.
	for _, k := range s.GroupBy {
		if !slices.Contains(groupKeys(), k) {
			return fault("group_by", "%q: use %s", clean(k, maxName), strings.Join(groupKeys(), ", "))
		}
	}
	for _, f := range []struct {
		setting string
		d       time.Duration
	}{{"wait", s.Wait}, {"interval", s.Interval}, {"repeat", s.Repeat}} {
		if f.d < 0 || f.d > maxDuration || f.d > 0 && f.d < time.Second {
			return fault(f.setting, "must be from 1s to %s", maxDuration)
		}
	}
	if s.Repeat > 0 && s.Repeat < time.Minute {
		return fault("repeat", "must be at least 1m")
	}
	return nil
}

// Unsubscribe removes a subscription and what waits for it, and returns it. One of somebody else does not exist for the caller.
func (e *Engine) Unsubscribe(ctx context.Context, caller gozzard.Caller, id string) (record.Subscription, error) {
	s, err := e.ownSubscription(ctx, caller, id)
	if err != nil {
		return s, err
	}
	return s, e.o.Store.RemoveSubscription(ctx, s.ID, e.row(caller, auditUnsubscribe+s.ID))
}

// ownSubscription is the subscription of a caller with an id, or the only one with a name. Of several with a name, that of an
// admin itself counts before those of others.
func (e *Engine) ownSubscription(ctx context.Context, caller gozzard.Caller, given string) (s record.Subscription, err error) {
	list, err := e.ownSubscriptions(ctx, caller)
	if err != nil {
		return s, err
	}
	if i := slices.IndexFunc(list, func(s record.Subscription) bool { return s.ID == given }); i >= 0 {
		return list[i], nil
	}

	var names []string
	for i := range list {
		names = append(names, list[i].Name)
	}
	list = slices.DeleteFunc(list, func(s record.Subscription) bool { return s.Name != given })
	mine := slices.DeleteFunc(slices.Clone(list), func(s record.Subscription) bool { return !isOwner(caller, &s) })
	switch {
	case len(list) == 0 && suggest.Nearest(given, names) != "":
		return s, gozzard.Errorf(gozzard.ErrNotFound, "there is no subscription %.40q, did you mean %q?", given, suggest.Nearest(given, names))
	case len(list) == 0:
		return s, gozzard.Errorf(gozzard.ErrNotFound, "there is no subscription %.40q", given)
	case len(list) == 1:
		return list[0], nil
	case len(mine) == 1:
		return mine[0], nil
	}
	return s, gozzard.Errorf(gozzard.ErrConflict, "several subscriptions have the name %.80q: give the id of one", given)
}
