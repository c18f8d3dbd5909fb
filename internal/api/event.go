package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/record"
)

// maxKind is the longest word for a kind of event.
const maxKind = 64

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

	events := a.Plane.Events(caller, f, limit)
	page := client.EventPage{Events: []client.Event{}, Next: events.Next}
	for i := range events.Events {
		page.Events = append(page.Events, renderEvent(&events.Events[i]))
	}

	return answer(w, http.StatusOK, page)
}

// eventFilter reads the parameters that select events. none is true if the query names hosts and all are unknown.
func (a *api) eventFilter(caller gozzard.Caller, q *query) (f record.EventFilter, none bool) {
	f.Namespaces, f.Names = q.patterns("namespace"), q.patterns("name")
	q.each("kind", func(s string) string {
		f.Kinds = append(f.Kinds, gozzard.EventKind(s))
		if s == "" || len(s) > maxKind {
			return "must be the word for a kind of event, such as " + string(gozzard.EventExited)
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

func parseSince(s string) (time.Time, bool) {
	if ms, err := strconv.ParseInt(s, 10, 64); err == nil {
		return time.UnixMilli(ms), ms > 0
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	return t, err == nil
}

func renderEvent(e *record.Event) client.Event {
	return client.Event{ID: e.ID, Host: hostRef(e.Agent, e.Addr),
		Namespace: e.Key.Namespace, Name: e.Key.Name, Kind: e.Kind, At: client.MilliTime(e.At), PID: e.PID, Code: e.Code,
		Signal: e.Signal, Core: e.Core, Message: e.Message}
}
