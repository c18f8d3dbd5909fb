package client

import (
	"context"
	"net/url"
	"time"

	"github.com/gozzard/gozzard"
)

// Verdict sums an attempt up.
type Verdict string

// The verdicts.
const (
	Done    Verdict = "done"
	Noted   Verdict = "noted" // nothing was to be done: it was so already
	Failed  Verdict = "failed"
	Running Verdict = "running"
)

// Task is how far a task is.
type Task struct {
	ID       string    `json:"task_id"`
	At       time.Time `json:"at"`
	App      string    `json:"app"`
	User     string    `json:"user"`
	Final    bool      `json:"final"`
	Counts   Counts    `json:"counts"`
	Attempts []Attempt `json:"attempts"`
}

// Counts add up: done, failed and running are all targets; those noted are among those done.
type Counts struct {
	Targets int `json:"targets"`
	Done    int `json:"done"`
	Noted   int `json:"noted"`
	Failed  int `json:"failed"`
	Running int `json:"running"`
}

// Attempt is one action on one process on one host.
type Attempt struct {
	Host      HostRef         `json:"host"`
	Namespace string          `json:"namespace"`
	Name      string          `json:"name"`
	Action    string          `json:"action"`
	State     string          `json:"state"`
	Verdict   Verdict         `json:"verdict"`
	Code      gozzard.Code    `json:"code,omitempty"`
	Message   string          `json:"message,omitempty"`
	Hosted    bool            `json:"hosted"`
	Forced    bool            `json:"forced,omitempty"`
	Detail    *gozzard.Detail `json:"detail,omitempty"`
}

// HostRef is a host in an answer.
type HostRef struct {
	Agent gozzard.AgentID `json:"agent,omitempty"`
	Cloud int             `json:"cloud"`
	IP    string          `json:"ip,omitempty"`
}

// Show says which attempts of a task are listed. Counts are always of all.
type Show string

// What can be shown.
const (
	ShowAll    Show = "all"
	ShowFailed Show = "failed"
	ShowNone   Show = "none"
)

// Task reads a task. With a wait of up to 30 s the answer comes when the task is final or that time has passed.
func (c *Client) Task(ctx context.Context, id string, wait time.Duration, show Show) (Task, error) {
	q := url.Values{}
	if wait > 0 {
		q.Set("wait", wait.String())
	}
	if show != "" {
		q.Set("show", string(show))
	}
	var t Task
	err := c.get(ctx, "/api/v1/tasks/"+url.PathEscape(id), q, &t)
	return t, err
}

// The rhythm of Wait.
const (
	pollFor     = time.Second     // one poll: how often progress is told
	pollPause   = time.Second     // after a poll without an answer
	pollPatient = 2 * time.Minute // how long a server may be away before Wait gives up
)

// Wait polls a task until it is final, and returns it with all its attempts. progress, which may be nil, is called
// after every poll. A server that is away for a while, as in a restart, is waited for: the task is recorded and
// goes on.
func (c *Client) Wait(ctx context.Context, id string, progress func(Task)) (Task, error) {
	heard := time.Now()
	for {
		t, err := c.Task(ctx, id, pollFor, ShowNone)
		switch {
		case err == nil:
			heard = time.Now()
			if progress != nil {
				progress(t)
			}
			if t.Final {
				return c.Task(ctx, id, 0, ShowAll)
			}
		case gozzard.KindOf(err) != gozzard.ErrUnavailable || time.Since(heard) > pollPatient:
			return Task{}, err
		default:
			select {
			case <-ctx.Done():
				return Task{}, ctx.Err()
			case <-time.After(pollPause):
			}
		}
	}
}
