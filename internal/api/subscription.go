package api

import (
	"net/http"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// getSubscriptions lists subscriptions.
func (a *api) getSubscriptions(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	engine, err := a.notify()
	if err != nil {
		return err
	}
	list, err := engine.Subscriptions(r.Context(), caller)
	if err != nil {
		return err
	}
	out := client.SubscriptionList{Subscriptions: make([]client.Subscription, 0, len(list))}
	for i := range list {
		s := &list[i]
		out.Subscriptions = append(out.Subscriptions, client.Subscription{ID: s.ID, Owner: ownerText(s.Owner),
			Created: client.At(s.Created), SubscriptionRequest: client.SubscriptionRequest{Name: s.Name, Receivers: s.Receivers,
				Kinds: s.Kinds, Businesses: s.Businesses, Namespaces: s.Namespaces, Names: s.Names, Hosts: s.Hosts, Labels: s.Labels,
				GroupBy: s.GroupBy, Wait: durationText(s.Wait), Interval: durationText(s.Interval), Repeat: durationText(s.Repeat)}})
	}
	return answer(w, http.StatusOK, out)
}

func durationText(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

// postSubscription makes a subscription.
func (a *api) postSubscription(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	engine, err := a.notify()
	if err != nil {
		return err
	}
	var s record.SubscriptionSpec
	err = readFields[client.SubscriptionRequest](w, r, maxNotifyBody, func(root *strictjson.Value) {
		name := root.Get("name")
		c := subscriptionChange(root)
		s = record.SubscriptionSpec{Name: name.Str(), Receivers: c.Receivers, Kinds: c.Kinds, Businesses: c.Businesses,
			Namespaces: c.Namespaces, Names: c.Names, Hosts: c.Hosts, Labels: c.Labels, GroupBy: c.GroupBy, Wait: durationOf(c.Wait),
			Interval: durationOf(c.Interval), Repeat: durationOf(c.Repeat)}
	})
	if err != nil {
		return err
	}
	made, err := engine.Subscribe(r.Context(), caller, s)
	if err != nil {
		return err
	}
	return answer(w, http.StatusCreated, client.CreatedID{ID: made.ID})
}

// putSubscription changes settings of a subscription.
func (a *api) putSubscription(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	engine, err := a.notify()
	if err != nil {
		return err
	}
	var c record.SubscriptionChange
	err = readFields[client.SubscriptionChange](w, r, maxNotifyBody, func(root *strictjson.Value) {
		c = subscriptionChange(root)
		if v := root.Get("name"); v.Given() {
			name := v.AnyStr()
			c.Name = &name
		}
	})
	if err != nil {
		return err
	}
	s, err := engine.ChangeSubscription(r.Context(), caller, r.PathValue("subscription"), c)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, client.NamedID{ID: s.ID, Name: s.Name})
}

// subscriptionChange reads what a body says about a subscription, besides its name. What is missing is nil.
func subscriptionChange(root *strictjson.Value) (c record.SubscriptionChange) {
	texts := func(name string) []string {
		v := root.Get(name)
		if !v.Given() {
			return nil
		}
		return append([]string{}, readTexts(&v)...)
	}
	c = record.SubscriptionChange{Receivers: texts("receivers"), Kinds: texts("kinds"), Namespaces: texts("namespaces"),
		Names: texts("names"), Hosts: texts("hosts"), GroupBy: texts("group_by"), Wait: readDuration(root, "wait"),
		Interval: readDuration(root, "interval"), Repeat: readDuration(root, "repeat")}
	if v := root.Get("businesses"); v.Given() {
		c.Businesses = []int{}
		v.OptList(maxNotifyList, func(e *strictjson.Value) { c.Businesses = append(c.Businesses, int(e.Int(1, 1<<31-1))) })
	}
	if v := root.Get("labels"); v.OptObject() {
		c.Labels = map[string]string{}
		v.Members(func(name string, m strictjson.Value) { c.Labels[name] = m.Str() })
	}
	return c
}

// readDuration reads a time; nil if there is none, 0 if it is empty.
func readDuration(root *strictjson.Value, name string) *time.Duration {
	v := root.Get(name)
	if !v.Given() {
		return nil
	}
	var d time.Duration
	if text := v.AnyStr(); text != "" {
		var err error
		if d, err = time.ParseDuration(text); err != nil {
			v.Fault("must be a duration such as 30s")
		}
	}
	return &d
}

func durationOf(d *time.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return *d
}

func (a *api) deleteSubscription(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	engine, err := a.notify()
	if err != nil {
		return err
	}
	s, err := engine.Unsubscribe(r.Context(), caller, r.PathValue("subscription"))
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, client.NamedID{ID: s.ID, Name: s.Name})
}
