package api

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// getReceivers lists receivers. Only an admin of everything sees their settings.
func (a *api) getReceivers(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	engine, err := a.notify()
	if err != nil {
		return err
	}
	list, err := engine.Receivers(r.Context(), caller)
	if err != nil {
		return err
	}
	var backlogs map[string]record.Backlog
	if caller.Rights.All() {
		if backlogs, err = engine.Backlogs(r.Context(), caller); err != nil {
			return err
		}
	}

	out := client.ReceiverList{Receivers: make([]client.Receiver, 0, len(list))}
	for i := range list {
		v := &list[i]
		shown := client.Receiver{ID: v.ID, Name: v.Name, Kind: string(v.Kind), Shared: v.Shared, Created: client.At(v.Created)}
		if caller.Rights.All() {
			s := &v.Settings
			shown.Backlog = shownBacklog(backlogs[v.ID])
			shown.CreatedBy = ownerText(v.Creator)
			shown.Settings = &client.ReceiverSettings{URL: shownURL(s.URL), Signed: s.Secret != "", Language: s.Language, Server: s.Server,
				TLS: s.TLS, User: s.User, From: s.From, To: s.To}
		}
		out.Receivers = append(out.Receivers, shown)
	}
	return answer(w, http.StatusOK, out)
}

// shownURL is an address without its path and query: those of robots are secrets.
func shownURL(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host + "/..."
}

func shownBacklog(b record.Backlog) *client.ReceiverBacklog {
	shown := &client.ReceiverBacklog{Waiting: b.Waiting, Oldest: client.At(b.Oldest), DeadLetters: b.Dead}
	if b.Tries > 0 {
		shown.Tries, shown.LastError, shown.NextTry = b.Tries, b.Error, client.At(b.Next)
	}
	return shown
}

// receiverPlace is where messages go, without secrets.
func receiverPlace(r *record.Receiver) string {
	switch r.Kind {
	case record.ReceiverCommand:
		return r.ID
	case record.ReceiverMail:
		return strings.Join(r.Settings.To, ",")
	}
	return shownURL(r.Settings.URL)
}

func ownerText(c gozzard.Caller) string {
	if c.App == "" {
		return ""
	}
	return c.App + "/" + c.User
}

// postReceiver makes a receiver.
func (a *api) postReceiver(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	engine, err := a.notify()
	if err != nil {
		return err
	}
	var v record.Receiver
	err = readFields[client.ReceiverRequest](w, r, maxNotifyBody, func(root *strictjson.Value) {
		text := func(name string) string { m := root.Get(name); return m.OptStr() }
		name, kind, shared, to := root.Get("name"), root.Get("kind"), root.Get("shared"), root.Get("to")
		v.Name, v.Kind, v.Shared = name.Str(), record.ReceiverKind(kind.Str()), shared.OptBool(false)
		v.Settings = record.ReceiverSettings{URL: text("url"), Secret: text("secret"), Authorization: text("authorization"),
			CA: text("ca"), Language: text("language"), Server: text("server"), TLS: text("tls"), User: text("user"),
			Password: text("password"), From: text("from"), To: readTexts(&to)}
	})
	if err != nil {
		return err
	}
	v, err = engine.AddReceiver(r.Context(), caller, v)
	if err != nil {
		return err
	}
	return answer(w, http.StatusCreated, client.CreatedID{ID: v.ID})
}

func readTexts(v *strictjson.Value) (list []string) {
	v.OptList(maxNotifyList, func(e *strictjson.Value) { list = append(list, e.Str()) })
	return list
}

// putReceiver changes settings of a receiver.
func (a *api) putReceiver(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	engine, err := a.notify()
	if err != nil {
		return err
	}
	var c record.ReceiverChange
	err = readFields[client.ReceiverChange](w, r, maxNotifyBody, func(root *strictjson.Value) {
		text := func(name string) *string {
			v := root.Get(name)
			if !v.Given() {
				return nil
			}
			s := v.AnyStr()
			return &s
		}
		c = record.ReceiverChange{Name: text("name"), URL: text("url"), Secret: text("secret"), Authorization: text("authorization"),
			CA: text("ca"), Language: text("language"), Server: text("server"), TLS: text("tls"), User: text("user"),
			Password: text("password"), From: text("from")}
		if shared := root.Get("shared"); shared.Given() {
			b := shared.Bool()
			c.Shared = &b
		}
		if to := root.Get("to"); to.Given() {
			c.To = append([]string{}, readTexts(&to)...)
		}
	})
	if err != nil {
		return err
	}
	v, err := engine.ChangeReceiver(r.Context(), caller, r.PathValue("receiver"), c)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, client.NamedID{ID: v.ID, Name: v.Name})
}

func (a *api) deleteReceiver(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	engine, err := a.notify()
	if err != nil {
		return err
	}
	v, err := engine.RemoveReceiver(r.Context(), caller, r.PathValue("receiver"))
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, client.NamedID{ID: v.ID, Name: v.Name})
}

func (a *api) postReceiverTest(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	engine, err := a.notify()
	if err != nil {
		return err
	}
	if err := readFields[struct{}](w, r, maxShortBody, func(*strictjson.Value) {}); err != nil {
		return err
	}
	to, waiting, err := engine.Test(r.Context(), caller, r.PathValue("receiver"))
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, client.ReceiverTested{ID: to.ID, Name: to.Name, Kind: string(to.Kind), To: receiverPlace(&to),
		Waiting: waiting})
}
