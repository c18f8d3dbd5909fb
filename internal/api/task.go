package api

import (
	"net/http"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/taskname"
)

// maxPoll bounds one long poll, below what proxies on the way give up at.
const maxPoll = 30 * time.Second

// Verdicts as callers read them.
const (
	verdictDone    = "done"
	verdictNoted   = "noted" // nothing was to be done: it was so already
	verdictFailed  = "failed"
	verdictRunning = "running"
)

type taskBody struct {
	TaskID   string        `json:"task_id"`
	At       time.Time     `json:"at"`
	App      string        `json:"app"`
	User     string        `json:"user"`
	Final    bool          `json:"final"`
	Counts   taskCounts    `json:"counts"`
	Attempts []attemptBody `json:"attempts"`
}

// taskCounts always add up to the number of targets; those noted are among those done.
type taskCounts struct {
	Targets int `json:"targets"`
	Done    int `json:"done"`
	Noted   int `json:"noted"`
	Failed  int `json:"failed"`
	Running int `json:"running"`
}

type attemptBody struct {
	Host      hostRef         `json:"host"`
	Namespace string          `json:"namespace"`
	Name      string          `json:"name"`
	Action    string          `json:"action"`
	State     string          `json:"state"`
	Verdict   string          `json:"verdict"`
	Code      gozzard.Code    `json:"code,omitempty"`
	Message   string          `json:"message,omitempty"`
	Hosted    bool            `json:"hosted"`
	Forced    bool            `json:"forced,omitempty"`
	Detail    *gozzard.Detail `json:"detail,omitempty"`
}

type hostRef struct {
	Agent gozzard.AgentID `json:"agent,omitempty"`
	Cloud int             `json:"cloud"`
	IP    string          `json:"ip,omitempty"`
}

// getTask tells how far a task is. With wait=5s the answer comes when the task is final or that time has passed.
// show=all|failed|none says which attempts are listed; counts are always of all.
func (a *api) getTask(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	q, err := readQuery(r, "wait", "show")
	if err != nil {
		return err
	}

	wait := readPoll(q)
	show := q.one("show")
	switch show {
	case "", "all", "failed", "none":
	default:
		q.faults.Add("show", `must be "all", "failed" or "none", is %q`, clip(show))
	}

	if err := q.faults.Err(); err != nil {
		return err
	}

	id := taskname.Parse(r.PathValue("id"))
	var res record.TaskResults

	if wait > 0 {
		res, err = a.Plane.Await(r.Context(), caller, id, wait)
	} else {
		res, err = a.Plane.Results(r.Context(), caller, id)
	}

	if err != nil {
		return err
	}

	return answer(w, http.StatusOK, renderTask(&res, show))
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

func renderTask(res *record.TaskResults, show string) taskBody {
	b := taskBody{TaskID: taskname.Of(res.Task.ID), At: res.Task.At.UTC(), App: res.Task.Caller.App, User: res.Task.Caller.User,
		Attempts: []attemptBody{}}
	b.Counts.Targets = len(res.Attempts)
	for i := range res.Attempts {
		at := &res.Attempts[i]
		v := verdictOf(at)
		switch v {
		case verdictDone:
			b.Counts.Done++
		case verdictNoted:
			b.Counts.Done++
			b.Counts.Noted++
		case verdictFailed:
			b.Counts.Failed++
		case verdictRunning:
			b.Counts.Running++
		}
		if show == "none" || show == "failed" && v != verdictFailed {
			continue
		}
		b.Attempts = append(b.Attempts, renderAttempt(at, v))
	}

	b.Final = b.Counts.Running == 0
	return b
}

func renderAttempt(at *gozzard.Attempt, verdict string) attemptBody {
	b := attemptBody{
		Host: hostRef{Agent: at.Agent, Cloud: at.Addr.Cloud}, Namespace: at.Key.Namespace, Name: at.Key.Name,
		Action: at.Action.String(),
		State:  at.State.String(), Verdict: verdict,
	}

	if at.Addr.IP.IsValid() {
		b.Host.IP = at.Addr.IP.String()
	}
	if at.State.Final() {
		o := &at.Outcome
		b.Code, b.Message, b.Hosted, b.Forced, b.Detail = o.Code, o.Message, o.Hosted, o.Forced, o.Detail
	}

	return b
}

// verdictOf sums an attempt up. Who starts what runs, or stops what does not, has what was asked for.
func verdictOf(at *gozzard.Attempt) string {
	if !at.State.Final() {
		return verdictRunning
	}

	code := at.Outcome.Code
	switch {
	case at.State == gozzard.AttemptOK:
		return verdictDone
	case code == gozzard.CodeAlreadyRunning && at.Action == gozzard.ActionStart,
		code == gozzard.CodeNotRunning && (at.Action == gozzard.ActionStop || at.Action == gozzard.ActionKill),
		code == gozzard.CodeAlreadyRegistered && at.Action == gozzard.ActionRegister:
		return verdictNoted
	}

	return verdictFailed
}
