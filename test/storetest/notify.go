package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/notify"
	"github.com/gozzard/gozzard/internal/record"
)

// NotifyRecord is a store of alerts, receivers and messages.
type NotifyRecord interface{ notify.Store }

// RunNotify runs the contract of notify.Store. open returns a new, empty store and closes it at the end of the test.
func RunNotify(t *testing.T, open func(*testing.T) NotifyRecord) {
	for name, f := range map[string]func(*testing.T, NotifyRecord){
		"receivers": notifyReceivers, "subscriptions": notifySubscriptions, "state": notifyState, "messages": notifyMessages,
		"bounds": notifyBounds, "changed receivers": notifyChanges,
	} {
		t.Run(name, func(t *testing.T) { f(t, open(t)) })
	}
}

func notifyRow(act string) gozzard.AuditRow {
	return gozzard.AuditRow{At: start, Caller: gozzard.Caller{App: "admin", User: "me"}, Act: act, Targets: 1}
}

// notifyActs are the acts of the audit, the oldest first.
func notifyActs(t *testing.T, s NotifyRecord) (acts []string) {
	t.Helper()
	rows, err := s.Audit(t.Context(), 100)
	must(t, err)
	for i := range rows {
		acts = append(acts, rows[i].Act)
	}
	slices.Reverse(acts)
	return acts
}

// notifyReceivers: receivers are added and removed with their rows; a name and an id mean one of them.
func notifyReceivers(t *testing.T, s NotifyRecord) {
	r := record.Receiver{ID: "a", Name: "pager", Kind: record.ReceiverMail, Shared: true, Created: start,
		Creator:  gozzard.Caller{App: "admin", User: "me"},
		Settings: record.ReceiverSettings{Server: "mail:25", To: []string{"a@example.com"}, Password: "\x00密"}}
	must(t, s.AddReceiver(t.Context(), r, notifyRow("add")))
	again := r
	again.ID = "b"
	wantKind(t, s.AddReceiver(t.Context(), again, notifyRow("again")), gozzard.ErrConflict)
	must(t, s.SaveNotify(t.Context(), &record.NotifyChange{Messages: []record.Notification{{Receiver: "a", Body: []byte("{}")}}}))

	list, err := s.Receivers(t.Context())
	must(t, err)
	if len(list) != 1 || list[0].Name != "pager" || list[0].Kind != r.Kind || !list[0].Shared || !list[0].Created.Equal(start) ||
		list[0].Creator.App != "admin" || list[0].Settings.Server != "mail:25" || !slices.Equal(list[0].Settings.To, r.Settings.To) ||
		list[0].Settings.Password != r.Settings.Password {
		t.Errorf("got %+v", list)
	}

	must(t, s.RemoveReceiver(t.Context(), "a", notifyRow("remove")))
	wantKind(t, s.RemoveReceiver(t.Context(), "a", notifyRow("none")), gozzard.ErrNotFound)
	if n, err := s.Backlogs(t.Context()); err != nil || len(n) != 0 {
		t.Errorf("messages of a receiver that is gone: %v, %v", n, err)
	}
	if acts := notifyActs(t, s); !slices.Equal(acts, []string{"add", "remove"}) {
		t.Errorf("the audit has %v", acts)
	}
}

// notifyChanges: a receiver is changed if it is still as it was, and keeps its id, kind and creator.
func notifyChanges(t *testing.T, s NotifyRecord) {
	r := record.Receiver{ID: "a", Name: "pager", Kind: record.ReceiverWebhook, Created: start, Creator: gozzard.Caller{App: "admin"},
		Settings: record.ReceiverSettings{URL: "https://one.example.com/", Secret: "\x00密"}}
	other := r
	other.ID, other.Name = "b", "other"
	must(t, s.AddReceiver(t.Context(), r, notifyRow("add")))
	must(t, s.AddReceiver(t.Context(), other, notifyRow("other")))
	read := func() record.Receiver {
		t.Helper()
		list, err := s.Receivers(t.Context())
		must(t, err)
		i := slices.IndexFunc(list, func(r record.Receiver) bool { return r.ID == "a" })
		return list[i]
	}

	was := read()
	is := was
	is.Name, is.Shared, is.Settings.URL = "renamed", true, "https://two.example.com/"
	must(t, s.SaveNotify(t.Context(), &record.NotifyChange{
		Messages: []record.Notification{{Receiver: "a", Body: []byte("{}"), Tries: 3, Error: "of the former place"}}}))
	must(t, s.ChangeReceiver(t.Context(), was, is, notifyRow("change")))
	if got := read(); !got.Same(&is) || got.Creator.App != "admin" || !got.Created.Equal(start) {
		t.Errorf("got %+v", got)
	}

	if n, err := s.Backlogs(t.Context()); err != nil || n["a"].Waiting != 1 || n["a"].Tries != 0 || n["a"].Error != "" {
		t.Errorf("what waits for the new place: %+v, %v", n["a"], err)
	}

	wantKind(t, s.ChangeReceiver(t.Context(), was, is, notifyRow("late")), gozzard.ErrConflict)
	same := is
	same.Name = "other"
	wantKind(t, s.ChangeReceiver(t.Context(), is, same, notifyRow("name")), gozzard.ErrConflict)
	must(t, s.RemoveReceiver(t.Context(), "a", notifyRow("remove")))
	wantKind(t, s.ChangeReceiver(t.Context(), is, was, notifyRow("gone")), gozzard.ErrNotFound)
	if acts := notifyActs(t, s); !slices.Equal(acts, []string{"add", "other", "change", "remove"}) {
		t.Errorf("the audit has %v", acts)
	}
}

// notifySubscriptions: a subscription takes its alerts and messages along.
func notifySubscriptions(t *testing.T, s NotifyRecord) {
	v := record.Subscription{ID: "s", Owner: gozzard.Caller{App: "app", User: "me"}, Created: start,
		SubscriptionSpec: record.SubscriptionSpec{Name: "night", Receivers: []string{"a"}, Businesses: []int{2},
			Labels: map[string]string{"k": "v"}, Wait: time.Second}}
	must(t, s.AddSubscription(t.Context(), v, notifyRow("add")))
	must(t, s.SaveNotify(t.Context(), &record.NotifyChange{
		Alerts:   []record.SubscribedAlert{{Subscription: "s", Alert: record.Alert{Fingerprint: "f"}}},
		Messages: []record.Notification{{Receiver: "a", Subscription: "s", Body: []byte("{}")}}}))

	list, err := s.Subscriptions(t.Context())
	must(t, err)
	if len(list) != 1 || list[0].ID != "s" || list[0].Owner.App != "app" || list[0].Owner.User != "me" || !list[0].Created.Equal(start) ||
		list[0].Name != "night" || list[0].Labels["k"] != "v" || list[0].Wait != time.Second || !slices.Equal(list[0].Businesses, []int{2}) {
		t.Errorf("got %+v", list)
	}

	// It is changed if it is still as it was. A name means one of an owner, and receivers that it leaves get nothing more.
	is := list[0]
	is.Name, is.Receivers, is.Businesses = "day", []string{"b"}, nil
	must(t, s.ChangeSubscription(t.Context(), list[0], is, notifyRow("change")))
	wantKind(t, s.ChangeSubscription(t.Context(), list[0], is, notifyRow("late")), gozzard.ErrConflict)
	again := is
	again.ID = "again"
	wantKind(t, s.AddSubscription(t.Context(), again, notifyRow("same")), gozzard.ErrConflict)
	again.Name = "other"
	must(t, s.AddSubscription(t.Context(), again, notifyRow("other")))
	list, err = s.Subscriptions(t.Context())
	must(t, err)
	if len(list) != 2 || list[0].ID != "again" && list[0].Name != "day" {
		t.Errorf("got %+v", list)
	}
	other := again
	other.Name = "day"
	wantKind(t, s.ChangeSubscription(t.Context(), again, other, notifyRow("name")), gozzard.ErrConflict)
	must(t, s.RemoveSubscription(t.Context(), "again", notifyRow("gone")))
	wantKind(t, s.ChangeSubscription(t.Context(), again, other, notifyRow("none")), gozzard.ErrNotFound)
	stranger := other
	stranger.ID, stranger.Owner.User = "stranger", "somebody"
	must(t, s.AddSubscription(t.Context(), stranger, notifyRow("stranger")))
	must(t, s.RemoveSubscription(t.Context(), "stranger", notifyRow("left")))
	if n, err := s.Backlogs(t.Context()); err != nil || len(n) != 0 {
		t.Errorf("messages for a receiver that it left: %v, %v", n, err)
	}

	must(t, s.SaveNotify(t.Context(), &record.NotifyChange{
		Messages: []record.Notification{{Receiver: "b", Subscription: "s", Body: []byte("{}")}}}))
	must(t, s.RemoveSubscription(t.Context(), "s", notifyRow("remove")))
	wantKind(t, s.RemoveSubscription(t.Context(), "s", notifyRow("none")), gozzard.ErrNotFound)
	st, err := s.NotifyState(t.Context())
	must(t, err)
	n, err := s.Backlogs(t.Context())
	must(t, err)
	if len(st.Alerts)+len(n) != 0 {
		t.Errorf("left: %+v, %v", st.Alerts, n)
	}
	if acts := notifyActs(t, s); !slices.Equal(acts, []string{"add", "change", "other", "gone", "stranger", "left", "remove"}) {
		t.Errorf("the audit has %v", acts)
	}
}

// notifyState: a step is recorded as a whole, and read back as it was.
func notifyState(t *testing.T, s NotifyRecord) {
	st, err := s.NotifyState(t.Context())
	must(t, err)
	if st.Known || st.Event != 0 || len(st.Lost) != 0 {
		t.Errorf("a new record has %+v", st)
	}

	a := record.Alert{Fingerprint: "f", Kind: "crash_loop", Agent: "agent", Key: gozzard.Key{Namespace: "shop", Name: "web"},
		Message: "x\x00\xff", Starts: start, Labels: map[string]string{"k": "v"}, News: true}
	b := a
	b.Fingerprint = "g"
	must(t, s.SaveNotify(t.Context(), &record.NotifyChange{Event: 7, Audit: 8, Alerts: []record.SubscribedAlert{
		{Subscription: "s", Alert: a}, {Subscription: "s", Alert: b}}}))
	a.News, a.Ends = false, start.Add(time.Minute)
	must(t, s.SaveNotify(t.Context(), &record.NotifyChange{Event: 9, Audit: 10, Alerts: []record.SubscribedAlert{
		{Subscription: "s", Alert: a}}, Gone: []record.AlertKey{{Subscription: "s", Fingerprint: "g"}}}))
	must(t, s.SaveLost(t.Context(), map[gozzard.AgentID]time.Time{"x": start, "y": start}, nil))
	must(t, s.SaveLost(t.Context(), map[gozzard.AgentID]time.Time{"x": start.Add(time.Hour)}, []gozzard.AgentID{"y"}))

	st, err = s.NotifyState(t.Context())
	must(t, err)
	if !st.Known || st.Event != 9 || st.Audit != 10 || len(st.Lost) != 1 || !st.Lost["x"].Equal(start.Add(time.Hour)) || len(st.Alerts) != 1 {
		t.Fatalf("got %+v", st)
	}
	if got := st.Alerts[0]; got.Subscription != "s" || got.Fingerprint != "f" || got.News || !got.Ends.Equal(a.Ends) || got.Key != a.Key ||
		got.Labels["k"] != "v" {
		t.Errorf("got %+v", got)
	}
}

// notifyMessages: messages wait in their order, are delivered, fail, die and come back.
func notifyMessages(t *testing.T, s NotifyRecord) {
	ctx := t.Context()
	must(t, s.SaveNotify(ctx, &record.NotifyChange{Messages: []record.Notification{
		{Receiver: "a", Subscription: "s", Body: []byte(`{"n":1}`), Created: start}, {Receiver: "b", Body: []byte("{}")},
		{Receiver: "a", Body: []byte(`{"n":2}`)}, {Receiver: "a", Body: []byte(`{"n":3}`)}}}))
	waiting := func() (bodies string, list []record.Notification) {
		t.Helper()
		list, err := s.Waiting(ctx, "a", 10)
		must(t, err)
		for i := range list {
			bodies += string(list[i].Body)
		}
		return bodies, list
	}
	bodies, list := waiting()
	if bodies != `{"n":1}{"n":2}{"n":3}` || list[0].Subscription != "s" || !list[0].Created.Equal(start) {
		t.Fatalf("got %+v", list)
	}

	must(t, s.Delivered(ctx, list[0].ID))
	list[1].Tries, list[1].Error, list[1].Next = 2, "no answer", start.Add(time.Hour)
	must(t, s.Undelivered(ctx, &list[1]))
	list[2].Dead, list[2].Error = true, "rejected"
	must(t, s.Undelivered(ctx, &list[2]))
	if bodies, list = waiting(); bodies != `{"n":2}` || list[0].Tries != 2 || list[0].Error != "no answer" ||
		!list[0].Next.Equal(start.Add(time.Hour)) {
		t.Errorf("got %+v", list)
	}

	backlogs := func() map[string]record.Backlog {
		t.Helper()
		n, err := s.Backlogs(ctx)
		must(t, err)
		return n
	}
	if n := backlogs(); len(n) != 2 || n["b"].Waiting != 1 || n["a"].Waiting != 1 || n["a"].Dead != 1 || n["a"].Tries != 2 ||
		n["a"].Error != "no answer" || !n["a"].Next.Equal(start.Add(time.Hour)) {
		t.Errorf("got %+v", n)
	}
	must(t, s.RetryWaiting(ctx, "a", start.Add(time.Minute)))
	must(t, s.RetryWaiting(ctx, "a", start.Add(time.Hour))) // never later
	if n := backlogs(); !n["a"].Next.Equal(start.Add(time.Minute)) {
		t.Errorf("got %+v", n)
	}

	dead, err := s.Dead(ctx, 10)
	must(t, err)
	if len(dead) != 1 || string(dead[0].Body) != `{"n":3}` || dead[0].Error != "rejected" {
		t.Fatalf("got %+v", dead)
	}
	must(t, s.RetryDead(ctx, dead[0].ID, start, notifyRow("retry")))
	wantKind(t, s.RetryDead(ctx, dead[0].ID, start, notifyRow("none")), gozzard.ErrNotFound)
	wantKind(t, s.RemoveDead(ctx, dead[0].ID, notifyRow("none")), gozzard.ErrNotFound)
	if bodies, _ = waiting(); bodies != `{"n":2}{"n":3}` {
		t.Errorf("got %s", bodies)
	}
	if acts := notifyActs(t, s); !slices.Equal(acts, []string{"retry"}) {
		t.Errorf("the audit has %v", acts)
	}
}

// notifyBounds: of too many messages of a receiver the oldest die, and of too many dead ones the oldest go.
func notifyBounds(t *testing.T, s NotifyRecord) {
	const more = 5
	add := func(ctx context.Context, n int) {
		var list []record.Notification
		for i := range n {
			list = append(list, record.Notification{Receiver: "a", Body: fmt.Appendf(nil, "%d", i)})
		}
		must(t, s.SaveNotify(ctx, &record.NotifyChange{Messages: list}))
	}
	add(t.Context(), record.MaxWaiting+more)
	n, err := s.Backlogs(t.Context())
	must(t, err)
	dead, err := s.Dead(t.Context(), 10*record.MaxDead)
	must(t, err)
	if n["a"].Waiting != record.MaxWaiting || n["a"].Dead != more || len(dead) != more || string(dead[more-1].Body) != "0" || dead[0].Error == "" {
		t.Fatalf("%+v, %d are dead", n["a"], len(dead))
	}

	add(t.Context(), record.MaxDead+more)
	dead, err = s.Dead(t.Context(), 10*record.MaxDead)
	must(t, err)
	if n, err = s.Backlogs(t.Context()); err != nil || n["a"].Waiting != record.MaxWaiting || n["a"].Dead != record.MaxDead ||
		len(dead) != record.MaxDead {
		t.Errorf("%+v, %d are dead, %v", n["a"], len(dead), err)
	}
}
