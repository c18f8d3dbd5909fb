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
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/record"
)

// The limits of event streams.
const (
	maxStreams  = 1000 // of all callers
	appStreams  = 200  // of one app
	userStreams = 20   // of one user of an app
	streamPage  = 500
	streamType  = "text/event-stream"
	streamBatch = 20 * time.Millisecond // events come in groups, and a thousand readers should not wake for each event
	streamBeat  = 15 * time.Second      // between comments that show proxies and clients that the stream is open
	streamCheck = 5 * time.Second       // between looks at the rights of a reader while nothing happens
	streamStall = 10 * time.Second      // a client that reads nothing for so long is disconnected
	streamKeep  = 64 << 10              // bytes of its buffer that a stream keeps for what comes next
)

// streamEvents sends events as they happen, as server-sent events. A client that was disconnected continues after
// Last-Event-ID, and gets an event "lost" if something may be missing. There is no buffer per client: each client
// reads from the common ring, or what is older from the record, at its own speed.
func (a *api) streamEvents(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	// Read the query, and where the stream starts.
	q, err := a.readQuery(r)
	if err != nil {
		return err
	}
	f, none := a.eventFilter(caller, q)
	if none {
		q.faults.Add("host", "no such host is known")
	}
	after := a.streamStart(r, q, f)
	if err := q.faults.Err(); err != nil {
		return err
	}

	return a.serveStream(w, r, caller, func(s *stream) error { return a.follow(r, caller, s, f, after) })
}

// serveStream opens a stream for a caller that has not too many, and follows it until its end.
func (a *api) serveStream(w http.ResponseWriter, r *http.Request, caller gozzard.Caller,
	follow func(*stream) error) error {
	// Limit the number of streams.
	end, err := a.streams.begin(caller)
	if err != nil {
		return err
	}
	defer end()
	defer a.watchers.begin(caller.User)()

	// Open the stream. From here on errors are only logged: the answer has begun.
	s := &stream{w: w, control: http.NewResponseController(w)}
	if err := s.open(); err != nil {
		a.Log.DebugContext(r.Context(), "cannot open a stream", "path", r.URL.Path, "err", err)
		return nil
	}
	if r.Method == http.MethodHead {
		return nil
	}
	if err := follow(s); err != nil {
		a.Log.DebugContext(r.Context(), "stream ended", "path", r.URL.Path, "err", err)
	}
	return nil
}

// streamStart is the id of the event after which a stream starts: now, unless the client asks for older events.
func (a *api) streamStart(r *http.Request, q *query, f record.EventFilter) uint64 {
	last := r.Header.Get("Last-Event-ID")
	switch {
	case last != "":
		id, err := strconv.ParseUint(last, 10, 64)
		if err != nil {
			q.faults.Add("Last-Event-ID", "must be the id of an event, is %q", clip(last))
		}
		return id
	case !f.Since.IsZero():
		return 0
	}
	return a.Plane.LastEvent()
}

// follow sends events until the client disconnects, the server stops, or the caller has no rights any more.
func (a *api) follow(r *http.Request, caller gozzard.Caller, s *stream, f record.EventFilter,
	after uint64) (err error) {
	beat := time.NewTicker(streamBeat)
	defer beat.Stop()
	look := time.NewTicker(streamCheck)
	defer look.Stop()

	say := said(r)
	check := readerCheck{a: a, r: r, caller: caller, last: time.Now()}
	for {
		// Look the rights up: they may have changed.
		if caller.Rights, err = check.rights(); err != nil {
			return errors.Join(err, check.bye(s))
		}

		// Send what there is.
		page, changed, err := a.Plane.EventsAfter(r.Context(), caller, f, after, streamPage)
		if err != nil {
			return err
		}
		after = page.Next
		if page.Lost {
			s.buf.WriteString("event: lost\ndata: {}\n\n")
		}
		for i := range page.Events {
			if err := s.add(renderEvent(&page.Events[i], say)); err != nil {
				return err
			}
		}
		if err := s.flush(); err != nil {
			return err
		}
		if len(page.Events) == streamPage {
			continue
		}

		// Wait for more.
		select {
		case <-r.Context().Done():
			return nil
		case <-a.Stopping:
			return nil
		case <-changed:
			time.Sleep(streamBatch)
		case <-check.wake:
		case <-look.C:
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
	// The server's time-out for reading a request would end the stream.
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

func (s *stream) add(e client.Event) error {
	data, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("cannot encode an event: %w", err)
	}
	fmt.Fprintf(&s.buf, "id: %d\ndata: %s\n\n", e.ID, strings.ReplaceAll(string(data), "\n", " "))
	return nil
}

// bye sends the last event of a stream whose session ended.
func (s *stream) bye() error {
	s.buf.WriteString("event: bye\ndata: {\"reason\":\"session\"}\n\n")
	return s.flush()
}

// flush sends what is in the buffer, and then parts that other streams send, too: these are not copied.
func (s *stream) flush(shared ...[]byte) error {
	if s.buf.Len() > 0 {
		if err := s.write(s.buf.Bytes()); err != nil {
			return err
		}
	} else if len(shared) == 0 {
		return nil
	}
	for _, part := range shared {
		if err := s.write(part); err != nil {
			return err
		}
	}

	if s.buf.Reset(); s.buf.Cap() > streamKeep {
		s.buf = bytes.Buffer{}
	}
	return s.control.Flush()
}

// write writes one part, with a time limit of its own.
func (s *stream) write(part []byte) error {
	err := s.control.SetWriteDeadline(time.Now().Add(streamStall))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	_, err = s.w.Write(part)
	return err
}
