package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/live"
	"github.com/gozzard/gozzard/internal/record"
)

// The pace of live streams.
const (
	livePace  = 250 * time.Millisecond // between two looks at what is new
	liveTasks = 500 * time.Millisecond // between two lists of tasks
	liveCheck = time.Second            // between looks at the rights of a viewer while nothing happens
)

// streamLive sends the changes of a snapshot, and new events and tasks. A viewer has no buffer: it reads the common
// batches at its own speed, and needs a new snapshot when the next one is not there any more.
func (a *api) streamLive(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	// Read the query, and where the stream starts.
	q, err := a.readQuery(r)
	if err != nil {
		return err
	}
	v := liveViewer{a: a, r: r, caller: caller, epoch: q.one("epoch"), after: q.serial("after"), say: said(r)}
	if tag := q.one("lang"); tag != "" {
		if v.say = saidIn(tag); v.say == nil {
			q.faults.Add("lang", "must be en or zh, is %q", clip(tag))
		}
	}
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		if v.after, err = strconv.ParseUint(last, 10, 64); err != nil {
			q.faults.Add("Last-Event-ID", "must be the number of a batch, is %q", clip(last))
		}
	}
	if v.events = q.serial("events"); v.events == 0 {
		v.events = a.Plane.LastEvent()
	}
	v.tasks = a.Plane.LastTaskChange()
	if err := q.faults.Err(); err != nil {
		return err
	}

	// Join the audience, and follow it.
	if v.view, err = a.joinLive(caller); err != nil {
		return err
	}
	defer v.view.Close()
	return a.serveStream(w, r, caller, func(s *stream) error {
		v.s = s
		return v.follow()
	})
}

// serial reads a number that only grows, 0 if it is missing.
func (q *query) serial(name string) uint64 {
	s := q.one(name)
	if s == "" {
		return 0
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		q.faults.Add(name, "must be a number of 0 or more, is %q", clip(s))
	}
	return n
}

// liveViewer is one open live stream.
type liveViewer struct {
	a      *api
	r      *http.Request
	caller gozzard.Caller
	say    func(string) string // texts of agents in the language of the viewer
	view   *live.View
	s      *stream
	epoch  string
	after  uint64          // the last batch that was sent
	events uint64          // the last event that was looked at
	tasks  uint64          // the last change of a task that was looked at
	tasked time.Time       // when tasks were looked at
	worked <-chan struct{} // is closed when a task has changed since
	going  bool            // a batch was found: from now on a gap means that the viewer is slow
}

// follow sends what is new until the client disconnects, the server stops, or the viewer may not go on.
func (v *liveViewer) follow() error {
	beat := time.NewTicker(streamBeat)
	defer beat.Stop()
	look := time.NewTicker(liveCheck)
	defer look.Stop()

	check := readerCheck{a: v.a, r: v.r, caller: v.caller, last: time.Now()}
	for {
		// Look the rights up: they may have changed.
		rights, err := check.rights()
		if err != nil {
			return errors.Join(err, check.bye(v.s))
		}
		if v.caller.Rights = rights; !v.view.Fits(rights) {
			return v.resnapshot(live.ReasonRights)
		}

		// Send what there is.
		changed, ok, err := v.sendChanges()
		if err != nil {
			return err
		}
		if !ok {
			return v.resnapshot(v.gapReason())
		}
		happened, err := v.sendEvents()
		if err != nil {
			return err
		}

		worked, err := v.sendTasks()
		if err != nil {
			return err
		}

		// Wait for more, and then until the next look is due.
		if changed == nil {
			continue
		}
		due := time.After(livePace)
		select {
		case <-v.r.Context().Done():
			return nil
		case <-v.a.Stopping:
			return nil
		case <-changed:
		case <-happened:
		case <-worked:
		case <-check.wake:
			continue
		case <-look.C:
		case <-beat.C:
			v.s.buf.WriteString("event: beat\ndata: {}\n\n") // code in a browser does not see comments
		}
		select {
		case <-v.r.Context().Done():
			return nil
		case <-v.a.Stopping:
			return nil
		case <-check.wake:
		case <-due:
		}
	}
}

func (v *liveViewer) gapReason() string {
	if v.going {
		return live.ReasonSlow
	}
	return live.ReasonGap
}

// resnapshot is the last event of a stream that cannot go on.
func (v *liveViewer) resnapshot(reason string) error {
	fmt.Fprintf(&v.s.buf, "event: resnapshot\ndata: {\"reason\":%q}\n\n", reason)
	return v.s.flush()
}

// sendChanges sends the batches that the viewer does not have, at most about a megabyte. ok is false if it needs a new
// snapshot. changed is nil if there is more at once.
func (v *liveViewer) sendChanges() (changed <-chan struct{}, ok bool, err error) {
	frames, next, changed, ok := v.view.After(v.epoch, v.after)
	if !ok {
		return nil, false, nil
	}
	v.after, v.going = next, true
	for _, f := range frames {
		v.a.Live.Sent(len(f))
	}
	return changed, true, v.s.flush(frames...)
}

// sendEvents sends the events that are new.
func (v *liveViewer) sendEvents() (<-chan struct{}, error) {
	page, happened, err := v.a.Plane.EventsAfter(v.r.Context(), v.caller, record.EventFilter{}, v.events, streamPage)
	if err != nil { // of the record; the changes of processes go on
		v.a.Log.DebugContext(v.r.Context(), "cannot read the events of a live stream, trying again", "err", err)
		return nil, v.r.Context().Err()
	}
	v.events = page.Next
	if len(page.Events) == 0 {
		return happened, nil
	}
	list := make([]client.Event, len(page.Events))
	for i := range page.Events {
		list[i] = renderEvent(&page.Events[i], v.say)
	}
	return happened, v.sendList("events", list)
}

// sendTasks sends the tasks that changed, unless it is too early for the next list.
func (v *liveViewer) sendTasks() (<-chan struct{}, error) {
	if time.Since(v.tasked) < liveTasks {
		return v.worked, nil
	}
	tasks, next, worked, err := v.a.Plane.TasksAfter(v.r.Context(), v.caller, v.tasks)
	if err != nil { // of the record; the changes of processes go on
		v.a.Log.DebugContext(v.r.Context(), "cannot read the tasks of a live stream, trying again", "err", err)
		v.worked, v.tasked = nil, time.Now()
		return nil, v.r.Context().Err()
	}
	v.tasks, v.worked, v.tasked = next, worked, time.Now()
	if len(tasks) == 0 {
		return worked, nil
	}

	list := make([]client.TaskSummary, len(tasks))
	for i := range tasks {
		list[i] = renderSummary(&tasks[i])
	}
	return worked, v.sendList("tasks", list)
}

// sendList sends a list in JSON as one event.
func (v *liveViewer) sendList(kind string, list any) error {
	data, err := json.Marshal(list)
	if err != nil {
		return fmt.Errorf("cannot encode %s: %w", kind, err)
	}
	fmt.Fprintf(&v.s.buf, "event: %s\ndata: %s\n\n", kind, data)
	return v.s.flush()
}
