package notify

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gozzard/gozzard/internal/record"
)

// The defaults of a subscription.
const (
	defaultWait     = 5 * time.Second
	defaultInterval = time.Minute
	defaultRepeat   = 4 * time.Hour
)

// groupKeys are the labels by which alerts can be grouped.
func groupKeys() []string { return []string{"kind", "namespace", "name", "host"} }

// usualGroup are those of a subscription that names none.
func usualGroup() []string { return []string{"kind", "namespace"} }

// subState is what the engine knows of a subscription.
type subState struct {
	sub    record.Subscription
	alerts map[string]*record.Alert
	sent   map[string]time.Time // of each group, the last message
	recent []time.Time          // messages of the last minute
}

// timing are the waits of a subscription, with the defaults.
func timing(s *record.SubscriptionSpec) (wait, interval, repeat time.Duration) {
	wait, interval, repeat = s.Wait, s.Interval, s.Repeat
	if wait <= 0 {
		wait = defaultWait
	}
	if interval <= 0 {
		interval = defaultInterval
	}
	if repeat <= 0 {
		repeat = defaultRepeat
	}
	return wait, interval, repeat
}

// groupOf is the group of an alert.
func groupOf(s *record.SubscriptionSpec, a *record.Alert) (key string, labels map[string]string) {
	by := s.GroupBy
	if len(by) == 0 {
		by = usualGroup()
	}
	labels = map[string]string{}
	for _, k := range by {
		v := ""
		switch k {
		case "kind":
			v = a.Kind
		case "namespace":
			v = a.Key.Namespace
		case "name":
			v = a.Key.Name
		case "host":
			v = string(a.Agent)
			if a.Addr.IP.IsValid() {
				v = a.Addr.String()
			}
		}
		if v != "" {
			labels[k] = clean(v, maxText)
		}
	}
	var b strings.Builder
	for _, k := range by {
		b.WriteString(labels[k])
		b.WriteByte(0)
	}
	return b.String(), labels
}

// dueGroup is a group that gets a message now.
type dueGroup struct {
	keys   []string
	labels map[string]string
	alerts []*record.Alert
}

// due chooses the groups that get a message now. A group has news after its wait, and after its interval since the last
// message. A group without news gets one when an alert that still fires is due again. If many groups are due, they become
// one.
func (st *subState) due(now time.Time) []dueGroup {
	// Keep to the most messages in a minute.
	st.recent = slices.DeleteFunc(st.recent, func(t time.Time) bool { return now.Sub(t) >= time.Minute })
	room := maxMinutes - len(st.recent)
	if room <= 0 {
		return nil
	}

	// Put the alerts into groups.
	type group struct {
		dueGroup
		oldest time.Time // the news that wait the longest
		news   []*record.Alert
		again  []*record.Alert
	}
	wait, interval, repeat := timing(&st.sub.SubscriptionSpec)
	groups := map[string]*group{}
	for _, a := range st.alerts {
		key, labels := groupOf(&st.sub.SubscriptionSpec, a)
		g := groups[key]
		if g == nil {
			g = &group{dueGroup: dueGroup{keys: []string{key}, labels: labels}}
			groups[key] = g
		}
		switch {
		case a.News:
			g.news = append(g.news, a)
			if g.oldest.IsZero() || a.NewsAt.Before(g.oldest) {
				g.oldest = a.NewsAt
			}
		case a.Firing() && !a.Moment && now.Sub(a.Sent) >= repeat:
			g.again = append(g.again, a)
		}
	}

	// Choose those that are due.
	var list []dueGroup
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		g := groups[key]
		switch {
		case len(g.news) > 0 && now.Sub(g.oldest) >= wait && now.Sub(st.sent[key]) >= interval:
			g.alerts = slices.Concat(g.news, g.again)
			list = append(list, g.dueGroup)
		case len(g.news) == 0 && len(g.again) > 0:
			g.alerts = g.again
			list = append(list, g.dueGroup)
		}
	}
	if len(list) <= min(maxGroups, room) {
		return list
	}
	return []dueGroup{merged(list)}
}

// merged puts groups together. It has the labels that they have in common.
func merged(list []dueGroup) dueGroup {
	all := dueGroup{labels: maps.Clone(list[0].labels)}
	for _, g := range list {
		all.keys = append(all.keys, g.keys...)
		all.alerts = append(all.alerts, g.alerts...)
		maps.DeleteFunc(all.labels, func(k, v string) bool { return g.labels[k] != v })
	}
	return all
}

// wasSent notes that a group got its message. It returns the alerts that are over.
func (st *subState) wasSent(g *dueGroup, now time.Time) (gone []string) {
	st.recent = append(st.recent, now)
	for _, key := range g.keys {
		st.sent[key] = now
	}
	for _, a := range g.alerts {
		a.News, a.NewsAt, a.Sent = false, time.Time{}, now
		if !a.Firing() || a.Moment {
			delete(st.alerts, a.Fingerprint)
			gone = append(gone, a.Fingerprint)
		}
	}

	// Forget groups that may send at once.
	_, interval, _ := timing(&st.sub.SubscriptionSpec)
	maps.DeleteFunc(st.sent, func(_ string, at time.Time) bool { return now.Sub(at) > interval })
	return gone
}
