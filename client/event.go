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

// Event is something that happened to a process.
type Event struct {
	ID        uint64            `json:"id"`
	Agent     gozzard.AgentID   `json:"agent"`
	Cloud     int               `json:"cloud"`
	IP        string            `json:"ip"`
	Namespace string            `json:"namespace"`
	Name      string            `json:"name"`
	Kind      gozzard.EventKind `json:"kind"`
	At        int64             `json:"at"` // Unix milliseconds
	PID       int               `json:"pid"`
	Code      int               `json:"code"` // exit code, -1 when it was ended by a signal
	Signal    string            `json:"signal,omitempty"`
	Core      bool              `json:"core,omitempty"`
	Message   string            `json:"message,omitempty"`
}

// EventQuery chooses events. Every field that is not empty must fit, and a field fits when one of its values does.
type EventQuery struct {
	Namespaces []string // patterns with * and ?
	Names      []string // patterns with * and ?
	Hosts      []string // cloud:ip, an IP address, or an agent id
	Kinds      []string
	Since      time.Time
}

// EventPage has the newest events that fit, oldest first. Next is where FollowEvents goes on without a gap.
type EventPage struct {
	Events []Event `json:"events"`
	Next   uint64  `json:"next"`
}

// ErrEventsLost is met by FollowEvents when it was away for longer than the server keeps events.
var ErrEventsLost = errors.New("some events may be missing: they are not kept any more")

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

// Events lists the newest events that fit, at most MaxPage.
func (c *Client) Events(ctx context.Context, q EventQuery, limit int) (EventPage, error) {
	var p EventPage
	v := q.values()
	v.Set("limit", strconv.Itoa(limit))
	err := c.get(ctx, "/api/v1/events", v, &p)
	return p, err
}

// FollowEvents gives events behind a number as they come, until ctx ends. A connection that breaks is made again
// and goes on where it was. Errors that can pass (ErrUnavailable, ErrEventsLost) are told and it goes on when the
// caller does; others end it.
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

// followOnce is one connection. on is false when the caller has enough.
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
		answer, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20)) // the status says enough without it
		return true, errorOf(res.StatusCode, answer)
	}

	return c.readStream(ctx, res.Body, after, yield)
}

func (c *Client) readStream(ctx context.Context, body io.Reader, after *uint64,
	yield func(Event, error) bool) (on bool, err error) {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, 64<<10), 1<<20)
	lost := false
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch {
		case field == "event" && value == "lost":
			lost = true
			if !yield(Event{}, ErrEventsLost) {
				return false, nil
			}
		case field == "data" && lost:
			lost = false
		case field == "data":
			var e Event
			if err := json.Unmarshal([]byte(value), &e); err != nil {
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

// LogChunk is a part of what a process printed.
type LogChunk struct {
	Text   string `json:"text"`
	Offset int64  `json:"offset"` // of Text, in bytes since the log began
	Next   int64  `json:"next"`   // where to go on
}

// Log reads what a process on one host printed: its last lines with an offset below 0, else what follows the offset.
func (c *Client) Log(ctx context.Context, key gozzard.Key, host string, lines int, offset int64) (LogChunk, error) {
	v := url.Values{"namespace": {key.Namespace}, "name": {key.Name}, "host": {host}}
	if lines > 0 {
		v.Set("lines", strconv.Itoa(lines))
	}
	if offset >= 0 {
		v.Set("offset", strconv.FormatInt(offset, 10))
	}
	var out LogChunk
	err := c.get(ctx, "/api/v1/logs", v, &out)
	return out, err
}
