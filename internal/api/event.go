package api

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/taskname"
)

// getEvents lists the newest events that match, oldest first.
func (a *api) getEvents(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	q, err := a.readQuery(r)
	if err != nil {
		return err
	}
	limit := q.number("limit", defaultPage, 1, maxPage)
	f, none := a.eventFilter(caller, q)
	if err := q.faults.Err(); err != nil {
		return err
	}
	if none {
		limit = 0
	}

	events, err := a.Plane.Events(r.Context(), caller, f, limit)
	if err != nil {
		return err
	}
	say := said(r)
	page := client.EventPage{Events: []client.Event{}, Next: events.Next}
	for i := range events.Events {
		page.Events = append(page.Events, renderEvent(&events.Events[i], say))
	}

	return answer(w, http.StatusOK, page)
}

// eventFilter reads the parameters that select events. none is true if the query names hosts and all are unknown.
func (a *api) eventFilter(caller gozzard.Caller, q *query) (f record.EventFilter, none bool) {
	f.Namespaces, f.Names = q.patterns("namespace"), q.patterns("name")
	q.each("kind", func(s string) string {
		f.Kinds = append(f.Kinds, gozzard.EventKind(s))
		if !slices.ContainsFunc(gozzard.EventKinds(), func(k gozzard.EventKindInfo) bool { return string(k.Kind) == s }) {
			return "must be one of " + strings.Join(eventKinds(), ", ") + ", is " + strconv.Quote(clip(s))
		}
		return ""
	})

	if s := q.one("since"); s != "" {
		var ok bool
		if f.Since, ok = parseSince(s); !ok {
			q.faults.Add("since", "must be a time such as 2026-01-02T15:04:05Z or Unix milliseconds, is %q", clip(s))
		}
	}

	f.Agents, none = a.hostAgents(caller, q)
	return f, none
}

// eventKinds are the words for the kinds of events.
func eventKinds() (words []string) {
	for _, k := range gozzard.EventKinds() {
		words = append(words, string(k.Kind))
	}
	return words
}

func parseSince(s string) (time.Time, bool) {
	if ms, err := strconv.ParseInt(s, 10, 64); err == nil {
		return time.UnixMilli(ms), ms > 0
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	return t, err == nil
}

func renderEvent(e *record.Event, say func(string) string) client.Event {
	var code *int
	if n, known := e.ExitCode(); known && (e.Kind == gozzard.EventExited || e.Kind == gozzard.EventRan) {
		code = &n
	}
	out := client.Event{ID: e.ID, Host: hostRef(e.Agent, e.Addr),
		Namespace: e.Key.Namespace, Name: e.Key.Name, Kind: e.Kind, At: client.MilliTime(e.At), PID: e.PID,
		Code: code, Signal: e.Signal, Core: e.Core, Message: say(e.Message), App: e.App, User: e.User}
	if e.Task != "" {
		out.Task = taskname.Of(e.Task)
	}
	return out
}
