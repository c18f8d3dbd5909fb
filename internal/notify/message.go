package notify

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gozzard/gozzard/internal/record"
)

// The bounds of a message.
const (
	maxAlerts  = 50  // that a message has in full; it counts the others
	maxText    = 500 // bytes of the text of an alert
	maxGroups  = 10  // of a subscription that become messages of their own at one time; more become one message
	maxMinutes = 30  // messages of a subscription in a minute; what is more waits, and becomes fewer messages
)

// Message is what a receiver gets at one time: alerts of one group. It is stored as JSON until it is delivered.
type Message struct {
	ID           string            `json:"id"` // the same when it is sent again
	Subscription string            `json:"subscription"`
	Name         string            `json:"name"` // of the subscription
	Group        map[string]string `json:"group"`
	Alerts       []record.Alert    `json:"alerts"`
	Firing       int               `json:"firing"` // with those that are left out of Alerts
	Resolved     int               `json:"resolved"`
	Repeated     bool              `json:"repeated,omitempty"`
	Test         bool              `json:"test,omitempty"`
	At           time.Time         `json:"at"`
}

// Status is firing as long as an alert fires.
func (m *Message) Status() string {
	if m.Firing > 0 {
		return "firing"
	}
	return "resolved"
}

// Total is the number of alerts, with those that are left out.
func (m *Message) Total() int { return m.Firing + m.Resolved }

// LeftOut is how many alerts are only counted.
func (m *Message) LeftOut() int { return max(0, m.Total()-len(m.Alerts)) }

// only leaves the alerts that fit. What is only counted is left out then: nobody knows which of it fit.
func (m *Message) only(fits func(*record.Alert) bool) {
	list := slices.DeleteFunc(slices.Clone(m.Alerts), func(a record.Alert) bool { return !fits(&a) })
	if len(list) == len(m.Alerts) {
		return
	}
	m.Alerts, m.Firing, m.Resolved = list, 0, 0
	for i := range list {
		m.count(&list[i])
	}
}

func (m *Message) count(a *record.Alert) {
	if a.Firing() {
		m.Firing++
	} else {
		m.Resolved++
	}
}

// newMessage makes a message of alerts. The firing ones come first, then the oldest.
func newMessage(s *record.Subscription, id string, group map[string]string, list []*record.Alert, now time.Time) *Message {
	slices.SortFunc(list, func(a, b *record.Alert) int {
		if a.Firing() != b.Firing() {
			if a.Firing() {
				return -1
			}
			return 1
		}
		if c := a.Starts.Compare(b.Starts); c != 0 {
			return c
		}
		return compareText(a.Fingerprint, b.Fingerprint)
	})

	m := &Message{ID: id, Subscription: s.ID, Name: s.Name, Group: group, At: now, Repeated: true, Alerts: []record.Alert{}}
	for _, a := range list {
		m.count(a)
		m.Repeated = m.Repeated && !a.News
		if len(m.Alerts) < maxAlerts {
			m.Alerts = append(m.Alerts, *a)
		}
	}
	return m
}

func compareText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// labelsOf are the labels of an alert as receivers see them. Labels of the process have a prefix, so that none of them
// replaces one of ours.
func labelsOf(a *record.Alert, subscription string) map[string]string {
	l := map[string]string{"alertname": alertName(a.Kind), "kind": a.Kind, "severity": severity(a.Kind), "source": "gozzard"}
	put := func(k, v string) {
		if v != "" {
			l[k] = clean(v, maxText)
		}
	}
	put("subscription", subscription)
	put("namespace", a.Key.Namespace)
	put("name", a.Key.Name)
	put("agent", string(a.Agent))
	put("hostname", a.Hostname)
	if a.Addr.IP.IsValid() {
		put("host", a.Addr.IP.String())
		put("cloud", fmt.Sprint(a.Addr.Cloud))
	}
	put("task", a.Task)
	for i, k := range slices.Sorted(maps.Keys(a.Labels)) {
		if i == maxLabels {
			break
		}
		put("label_"+labelName(k), a.Labels[k])
	}
	return l
}

// maxLabels bounds the labels of a process that an alert shows.
const maxLabels = 20

// labelName makes a text a name of a label: letters, digits and underscores.
func labelName(s string) string {
	b := []byte(s)
	for i, c := range b {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			b[i] = '_'
		}
	}
	return string(b[:min(len(b), 64)])
}

// alertName is the kind in the form that people use in Alertmanager, such as GozzardCrashLoop.
func alertName(kind string) string {
	out, upper := []byte("Gozzard"), true
	for i := range len(kind) {
		c := kind[i]
		switch {
		case c == '_':
			upper = true
			continue
		case upper && c >= 'a' && c <= 'z':
			c -= 'a' - 'A'
		}
		upper = false
		out = append(out, c)
	}
	return string(out)
}

// severity is critical for what takes a service away.
func severity(kind string) string {
	switch kind {
	case kindCrashLoop, kindHostLost, kindGaveUp, kindStartFailed:
		return "critical"
	}
	return "warning"
}
