package api

import (
	"net/http"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/rendered"
	"github.com/gozzard/gozzard/internal/taskname"
)

// maxPoll is the longest time of one long poll. It is below the time-outs that proxies usually have.
const maxPoll = 30 * time.Second

// getTask reads the progress of a task. With the parameter wait it answers when the task is final or that time has
// passed.
func (a *api) getTask(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	// Read the query.
	q, err := a.readQuery(r)
	if err != nil {
		return err
	}
	id := taskname.Parse(r.PathValue("id"))
	wait := readPoll(q)
	show, page := readTaskPage(q, id)
	if err := q.faults.Err(); err != nil {
		return err
	}

	// Read the task.
	var res record.TaskResults
	if wait > 0 {
		res, err = a.Plane.Await(r.Context(), caller, id, wait)
	} else {
		res, err = a.Plane.Results(r.Context(), caller, id)
	}
	if err != nil {
		return err
	}

	// Answer with it.
	if page == nil && len(res.Attempts) >= rendered.From && (show == "" || show == client.ShowAll) {
		k, err := a.keptTask(&res, languageOf(r), func() *client.Waiting { return a.waiting(caller, &res) })
		if err != nil {
			return err
		}
		return k.send(w, r)
	}

	return a.sendTask(w, r, caller, &res, show, page)
}

// sendTask renders a task, or a page of it, and sends it.
func (a *api) sendTask(w http.ResponseWriter, r *http.Request, caller gozzard.Caller, res *record.TaskResults, show client.Show,
	page *taskPage) (err error) {
	if page != nil {
		show = client.ShowNone // the page has them
	}
	t := renderTask(res, show)
	if page != nil {
		if t.Attempts, t.Next, err = page.cut(res); err != nil {
			return err
		}
	}
	t.Waiting = a.waiting(caller, res)
	say := said(r)
	for i := range t.Attempts {
		t.Attempts[i].Message = say(t.Attempts[i].Message)
	}
	body, err := encode(t)
	if err != nil {
		return err
	}
	return sendTagged(w, r, body)
}

// maxWaiting limits the hosts that a task names.
const maxWaiting = 5

// waiting finds the hosts that have attempts of a task and are offline. Those that the caller may not see are left out.
func (a *api) waiting(caller gozzard.Caller, res *record.TaskResults) *client.Waiting {
	var w client.Waiting
	var newest time.Time
	offline := map[gozzard.AgentID]bool{}
	for i := range res.Attempts {
		// An attempt that was not sent yet expires soon, or waits as long as its caller asked for.
		at := &res.Attempts[i]
		if at.State.Final() || at.State == gozzard.AttemptPending {
			continue
		}

		off, seen := offline[at.Agent]
		if !seen {
			host, known := a.Plane.Resolve(caller, gozzard.Target{Agent: at.Agent})
			off = known && !host.Online
			offline[at.Agent] = off
			if off {
				w.Hosts++
				if host.LastSeen.After(newest) {
					newest = host.LastSeen
				}
				if w.Hosts <= maxWaiting {
					w.Named = append(w.Named, client.OfflineHost{Host: hostRef(at.Agent, at.Addr), Since: client.At(host.LastSeen)})
				}
			}
		}
		if off {
			w.Attempts++
		}
	}

	if w.Attempts == 0 {
		return nil
	}
	w.Seconds = max(0, int(time.Since(newest).Seconds()))
	return &w
}

func readPoll(q *query) time.Duration {
	s := q.one("wait")
	if s == "" {
		return 0
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || d > maxPoll {
		q.faults.Add("wait", "must be a time from 0s to %s such as 5s, is %q", maxPoll, clip(s))
		return 0
	}
	return d
}

func renderTask(res *record.TaskResults, show client.Show) client.Task {
	t := client.Task{ID: taskname.Of(res.Task.ID), At: client.At(res.Task.At), App: res.Task.Caller.App, User: res.Task.Caller.User,
		Door: res.Task.Door, Attempts: []client.Attempt{}}
	t.Counts.Targets = len(res.Attempts)

	for i := range res.Attempts {
		at := &res.Attempts[i]
		v := verdictOf(at)
		switch v {
		case client.Done:
			t.Counts.Done++
		case client.Noted:
			t.Counts.Done++
			t.Counts.Noted++
		case client.Failed:
			t.Counts.Failed++
		case client.Running:
			t.Counts.Running++
		}
		if show == client.ShowNone || show == client.ShowFailed && v != client.Failed {
			continue
		}
		t.Attempts = append(t.Attempts, renderAttempt(at, v))
	}

	t.Final = t.Counts.Running == 0
	return t
}

func renderAttempt(at *gozzard.Attempt, verdict client.Verdict) client.Attempt {
	out := client.Attempt{
		Host:      hostRef(at.Agent, at.Addr),
		Namespace: at.Key.Namespace, Name: at.Key.Name, Action: actionWord(at.Action), State: stateText(at.Action, at.State, at.Outcome.Code),
		Verdict: verdict,
	}
	if at.State.Final() {
		o := &at.Outcome
		out.Code, out.Message, out.Managed, out.Forced = o.Code, o.Message, o.Hosted, o.Forced
		out.Detail = client.NewDetail(o.Detail)
	}
	return out
}

// stateText is the state of an attempt. One that found nothing to do has not failed.
func stateText(action gozzard.Action, state gozzard.AttemptState, code gozzard.Code) string {
	if state.Final() && state != gozzard.AttemptOK && gozzard.NothingToDo(action, code) {
		return string(client.Noted)
	}
	return state.String()
}

// verdictOf is the verdict of an attempt. To start a running process or to stop a stopped one is not a failure.
func verdictOf(at *gozzard.Attempt) client.Verdict {
	if !at.State.Final() {
		return client.Running
	}

	switch {
	case at.State == gozzard.AttemptOK:
		return client.Done
	case gozzard.NothingToDo(at.Action, at.Outcome.Code):
		return client.Noted
	}

	return client.Failed
}
