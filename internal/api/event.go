package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/record"
)

// Bounds of event streams.
const (
	maxStreams  = 1000
	streamPage  = 500
	streamType  = "text/event-stream"
	streamBatch = 20 * time.Millisecond // events come in flocks; a thousand readers are not woken for each
	streamBeat  = 15 * time.Second      // a comment, so that proxies and clients know that the stream lives
	// a client that takes nothing for that long is cut off; it can go on where it was
	streamStall = 10 * time.Second
)

type eventsBody struct {
	Events []eventBody `json:"events"`
	Next   uint64      `json:"next"` // where a stream goes on without a gap
}

type eventBody struct {
	ID        uint64            `json:"id"`
	Agent     gozzard.AgentID   `json:"agent"`
	Cloud     int               `json:"cloud"`
	IP        string            `json:"ip"`
	Namespace string            `json:"namespace"`
	Name      string            `json:"name"`
	Kind      gozzard.EventKind `json:"kind"`
	At        int64             `json:"at"` // Unix milliseconds
	PID       int               `json:"pid"`
	Code      int               `json:"code"`
	Signal    string            `json:"signal,omitempty"`
	Core      bool              `json:"core,omitempty"`
	Message   string            `json:"message,omitempty"`
}

// getEvents lists the newest events that fit, oldest first.
func (a *api) getEvents(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	q, err := readQuery(r, "since", "namespace", "name", "host", "kind", "limit")
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

	page := a.Plane.Events(caller, f, limit)
	body := eventsBody{Events: []eventBody{}, Next: page.Next}
	for i := range page.Events {
		body.Events = append(body.Events, renderEvent(&page.Events[i]))
	}

	return answer(w, http.StatusOK, body)
}

// eventFilter reads what both event routes have in common. none: hosts are named and not one of them is known.
func (a *api) eventFilter(caller gozzard.Caller, q *query) (f record.EventFilter, none bool) {
	pattern := func(list *[]string) func(string) string {
		return func(s string) string {
			*list = append(*list, s)
			return checkGlob(s)
		}
	}

	q.each("namespace", pattern(&f.Namespaces))
	q.each("name", pattern(&f.Names))

	q.each("kind", func(s string) string {
		f.Kinds = append(f.Kinds, gozzard.EventKind(s))
		if s == "" || len(s) > 64 {
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

	var hosts fleet.Filter
	none = a.hostFilter(caller, q, &hosts)
	f.Agents = hosts.Agents
	return f, none
}

func parseSince(s string) (time.Time, bool) {
	if ms, err := strconv.ParseInt(s, 10, 64); err == nil {
		return time.UnixMilli(ms), ms > 0
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	return t, err == nil
}

func renderEvent(e *record.Event) eventBody {
	b := eventBody{ID: e.ID, Agent: e.Agent, Cloud: e.Addr.Cloud, Namespace: e.Key.Namespace, Name: e.Key.Name,
		Kind: e.Kind, At: e.At, PID: e.PID, Code: e.Code,
		Signal: e.Signal, Core: e.Core, Message: e.Message}
	if e.Addr.IP.IsValid() {
		b.IP = e.Addr.IP.String()
	}
	return b
}

// streamEvents sends events as they come, as server-sent events. A client that was away goes on behind
// Last-Event-ID; it is told when something may be missing. There is no buffer per client: each reads from the
// common ring at its own pace.
func (a *api) streamEvents(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	q, err := readQuery(r, "since", "namespace", "name", "host", "kind")
	if err != nil {
		return err
	}

	f, none := a.eventFilter(caller, q)
	at := a.Plane.Events(caller, f, 0).Next

	if !f.Since.IsZero() {
		at = 0
	}
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		if at, err = strconv.ParseUint(last, 10, 64); err != nil {
			q.faults.Add("Last-Event-ID", "must be the id of an event, is %q", clip(last))
		}
	}

	if none {
		q.faults.Add("host", "no such host is known")
	}
	if err := q.faults.Err(); err != nil {
		return err
	}
	if a.streams.Add(1) > maxStreams {
		a.streams.Add(-1)
		return gozzard.Errorf(gozzard.ErrRateLimited, "%d event streams are open already", maxStreams)
	}

	defer a.streams.Add(-1)
	s := &stream{w: w, control: http.NewResponseController(w)}
	if err := s.open(); err != nil {
		a.Log.DebugContext(r.Context(), "event stream did not open", "err", err)
		return nil
	}

	if r.Method == http.MethodHead {
		return nil
	}
	// the client has gone or takes nothing; the answer is under way, so nobody can be told
	if err := a.follow(r, caller, s, f, at); err != nil {
		a.Log.DebugContext(r.Context(), "event stream ended", "err", err)
	}

	return nil
}

func (a *api) follow(r *http.Request, caller gozzard.Caller, s *stream, f record.EventFilter, at uint64) error {
	beat := time.NewTicker(streamBeat)
	defer beat.Stop()

	for {
		page, changed := a.Plane.EventsAfter(caller, f, at, streamPage)
		at = page.Next
		if page.Lost {
			s.buf.WriteString("event: lost\ndata: {}\n\n")
		}
		for i := range page.Events {
			if err := s.add(renderEvent(&page.Events[i])); err != nil {
				return err
			}
		}
		if err := s.flush(); err != nil {
			return err
		}
		if len(page.Events) == streamPage {
			continue
		}
		select {
		case <-r.Context().Done():
			return nil
		case <-a.Stopping:
			return nil
		case <-changed:
			time.Sleep(streamBatch)
		case <-beat.C:
			s.buf.WriteString(": \n\n")
		}
	}
}

// stream writes server-sent events.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	buf     bytes.Buffer
}

func (s *stream) open() error {
	// The server's bound on reading a request would end the stream.
	if err := s.control.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	h := s.w.Header()
	h.Set("Content-Type", streamType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Accel-Buffering", "no")
	s.w.WriteHeader(http.StatusOK)
	s.buf.WriteString(": \n\n")
	return s.flush()
}

func (s *stream) add(e eventBody) error {
	data, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("cannot encode an event: %w", err)
	}
	fmt.Fprintf(&s.buf, "id: %d\ndata: %s\n\n", e.ID, strings.ReplaceAll(string(data), "\n", " "))
	return nil
}

func (s *stream) flush() error {
	if s.buf.Len() == 0 {
		return nil
	}
	if err := s.control.SetWriteDeadline(time.Now().Add(streamStall)); err != nil &&
		!errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := s.w.Write(s.buf.Bytes()); err != nil {
		return err
	}
	s.buf.Reset()
	return s.control.Flush()
}
