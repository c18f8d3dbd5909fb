package notify

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// ChangeSubscription changes what a subscription chooses, and returns it as it is then. Its owner stays, and so do its bounds:
// whatever it chooses, it gets only what its owner may see, at receivers that its owner may use. A change by an admin gives the
// owner no more.
func (e *Engine) ChangeSubscription(ctx context.Context, caller gozzard.Caller, id string, change record.SubscriptionChange) (
	s record.Subscription, err error) {
	if err := checkSubscriber(caller); err != nil {
		return s, err
	}
	was, err := e.ownSubscription(ctx, caller, id)
	if err != nil {
		return s, err
	}

	// Find what it is then.
	s = was
	named := changeSpec(&s.SubscriptionSpec, &change)
	if len(named) == 0 {
		return s, invalid("nothing to change: name at least one setting")
	}
	if err := checkSpec(&s.SubscriptionSpec); err != nil {
		return s, err
	}
	if change.Receivers != nil {
		owner, self := caller, isOwner(caller, &was)
		if !self {
			owner = was.Owner
			owner.Rights = e.o.Rights(owner)
		}
		if err := e.useReceivers(ctx, owner, self, &s.SubscriptionSpec); err != nil {
			return s, err
		}
	}

	row := e.row(caller, auditChangeSubscription+was.ID)
	row.Outcome = strings.Join(named, ",")
	return s, e.o.Store.ChangeSubscription(ctx, was, s, row)
}

// changeSpec changes a subscription, and returns the names of the settings that the change has.
func changeSpec(s *record.SubscriptionSpec, c *record.SubscriptionChange) (named []string) {
	if c.Name != nil {
		s.Name = *c.Name
		named = append(named, "name")
	}
	for _, f := range []struct {
		name     string
		from, to *[]string
	}{{"receivers", &c.Receivers, &s.Receivers}, {"kinds", &c.Kinds, &s.Kinds}, {"namespaces", &c.Namespaces, &s.Namespaces},
		{"names", &c.Names, &s.Names}, {"hosts", &c.Hosts, &s.Hosts}, {"group_by", &c.GroupBy, &s.GroupBy}} {
		if *f.from != nil {
			*f.to = slices.Clone(*f.from)
			named = append(named, f.name)
		}
	}
	if c.Businesses != nil {
		s.Businesses = slices.Clone(c.Businesses)
		named = append(named, "businesses")
	}
	if c.Labels != nil {
		s.Labels = c.Labels
		named = append(named, "labels")
	}
	for _, f := range []struct {
		name     string
		from, to *time.Duration
	}{{"wait", c.Wait, &s.Wait}, {"interval", c.Interval, &s.Interval}, {"repeat", c.Repeat, &s.Repeat}} {
		if f.from != nil {
			*f.to = *f.from
			named = append(named, f.name)
		}
	}
	return named
}

// dropUnfit forgets the alerts that a subscription does not choose any more after a change. Their ends are not sent either.
func (e *Engine) dropUnfit(s *subState) {
	for print, a := range s.alerts {
		if fits(&s.sub.SubscriptionSpec, a) {
			continue
		}
		delete(s.alerts, print)
		e.total--
		e.change.Gone = append(e.change.Gone, record.AlertKey{Subscription: s.sub.ID, Fingerprint: print})
	}
}
