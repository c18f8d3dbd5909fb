package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
)

// Event is a change of a process, such as a start or an exit.
type Event struct {
	ID        uint64            `json:"id"`
	Host      HostRef           `json:"host"`
	Namespace string            `json:"namespace"`
	Name      string            `json:"name"`
	Kind      gozzard.EventKind `json:"kind"`
	At        Time              `json:"at"`
	PID       int               `json:"pid"`
	// exit code of kinds exited and ran; null if it is not known, or if a signal ended the process
	Code    *int   `json:"code"`
	Signal  string `json:"signal,omitempty"`
	Core    bool   `json:"core,omitempty"` // the process left a core dump
	Message string `json:"message,omitempty"`
	// the task that caused it, and the app and user that asked for it; missing: none did, or the caller may not read
	// that task
	Task string `json:"task_id,omitempty"`
	App  string `json:"app,omitempty"`
	User string `json:"user,omitempty"`
}

// EventQuery selects events. Every field that is not empty must match, and a field matches if one of its values does.
type EventQuery struct {
	Namespaces []string // patterns with * and ?
	Names      []string // patterns with * and ?
	Hosts      []string // cloud:ip, an IP address, a host name or an agent id
	Kinds      []string
	Since      time.Time
}

// EventPage is the newest events that match, oldest first.
type EventPage struct {
	Events []Event `json:"events"`
	Next   uint64  `json:"next"` // where a stream continues without a gap
}

// ErrEventsLost is an error of FollowEvents: the connection was broken for longer than the server keeps events.
var ErrEventsLost = errors.New("some events may be missing: the server has removed them")

func (q *EventQuery) values() url.Values {
	v := url.Values{}
	for name, list := range map[string][]string{"namespace": q.Namespaces, "name": q.Names, "host": q.Hosts,
		"kind": q.Kinds} {
		for _, s := range list {
			v.Add(name, s)
		}
	}
	if !q.Since.IsZero() {
		v.Set("since", strconv.FormatInt(q.Since.UnixMilli(), 10))
	}
	return v
}

// Events lists the newest events that match, at most MaxPage.
func (c *Client) Events(ctx context.Context, q EventQuery, limit int) (EventPage, error) {
	var p EventPage
	v := q.values()
	v.Set("limit", strconv.Itoa(limit))
	err := c.get(ctx, "/api/v1/events", v, &p)
	return p, err
}

// FollowEvents iterates over the events that follow the number after, as they happen, until ctx ends. If the
// connection breaks, it connects again and continues where it was. After an error that can pass (ErrUnavailable,
// ErrEventsLost) it continues if the caller does; other errors end it.
func (c *Client) FollowEvents(ctx context.Context, q EventQuery, after uint64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for {
			on, err := c.followOnce(ctx, q, &after, yield)
			if !on || ctx.Err() != nil {
				return
			}
			if !yield(Event{}, err) || gozzard.KindOf(err) != gozzard.ErrUnavailable {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Second):
			}
		}
	}
}

// followOnce reads events from one connection. on is false if the caller stops the iteration.
func (c *Client) followOnce(ctx context.Context, q EventQuery, after *uint64, yield func(Event, error) bool) (on bool,
	err error) {
	path := "/api/v1/events/stream?" + q.values().Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base.String()+path, nil)
	if err != nil {
		return true, err
	}

	c.authorize(req)
	req.Header.Set("Accept", "text/event-stream")
	if *after > 0 {
		req.Header.Set("Last-Event-ID", strconv.FormatUint(*after, 10))
	}

	res, err := c.http.Do(req)
	if err != nil {
		return true, c.transportError(ctx, err)
	}

	defer res.Body.Close()
	if res.StatusCode >= 300 {
		answer, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20)) // an error without a body has the kind of its status
		return true, errorOf(res.StatusCode, answer)
	}

	return c.readStream(ctx, res.Body, after, yield)
}

// readStream reads server-sent events until the stream ends. An event ends with an empty line: without it the server was
// killed while it sent the event.
func (c *Client) readStream(ctx context.Context, body io.Reader, after *uint64,
	yield func(Event, error) bool) (on bool, err error) {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, 64<<10), 1<<20)
	kind, data := "", ""
	for lines.Scan() {
		switch field, value, _ := strings.Cut(lines.Text(), ": "); field {
		case "event":
			kind = value
			continue
		case "data":
			data = value
			continue
		case "":
		default:
			continue
		}

		is, text := kind, data
		kind, data = "", ""
		switch {
		case is == "lost":
			if !yield(Event{}, ErrEventsLost) {
				return false, nil
			}
		case is == "" && text != "":
			var e Event
			if err := json.Unmarshal([]byte(text), &e); err != nil {
				return true, &gozzard.Error{Kind: gozzard.ErrInternal,
					Message: c.base.Host + " does not send events like a gozzard server", Cause: err}
			}
			*after = e.ID
			if !yield(e, nil) {
				return false, nil
			}
		}
	}

	err = lines.Err()
	if err == nil {
		err = io.ErrUnexpectedEOF
	}

	return true, c.transportError(ctx, err)
}
