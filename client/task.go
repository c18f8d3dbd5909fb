package client

import (
	"context"
	"net/url"
	"time"

	"github.com/gozzard/gozzard"
)

// Verdict is the result of an attempt in one word.
type Verdict string

// The verdicts.
const (
	Done    Verdict = "done"
	Noted   Verdict = "noted" // nothing had to be done: the process was already in that state
	Failed  Verdict = "failed"
	Running Verdict = "running"
)

// Task is the progress of a task.
type Task struct {
	ID       string    `json:"task_id"`
	At       Time      `json:"at"`
	App      string    `json:"app"`
	User     string    `json:"user"`
	Door     string    `json:"door"`  // by which API the request came
	Final    bool      `json:"final"` // every attempt has its verdict
	Counts   Counts    `json:"counts"`
	Waiting  *Waiting  `json:"waiting,omitempty"` // missing unless it waits for hosts that are offline
	Next     string    `json:"next,omitempty"`    // the cursor of the next page; missing at the end, and without pages
	Attempts []Attempt `json:"attempts"`
}

// Waiting says for which hosts a task waits that went offline after they got its operations. Those attempts get their
// verdicts when the hosts are back.
type Waiting struct {
	Attempts int           `json:"attempts"` // on those hosts
	Hosts    int           `json:"hosts"`
	Seconds  int           `json:"seconds"` // how long all of them are offline
	Named    []OfflineHost `json:"named"`   // the first few
}

// OfflineHost is a host that is offline.
type OfflineHost struct {
	Host  HostRef `json:"host"`
	Since Time    `json:"since"` // when its agent was heard last
}

// Counts are the numbers of attempts by verdict. Done, failed and running add up to targets; noted ones are among
// those done.
type Counts struct {
	Targets int `json:"targets"`
	Done    int `json:"done"`
	Noted   int `json:"noted"`
	Failed  int `json:"failed"`
	Running int `json:"running"`
}

// Attempt is one action on one process on one host.
type Attempt struct {
	Host      HostRef      `json:"host"`
	Namespace string       `json:"namespace"`
	Name      string       `json:"name"`
	Action    string       `json:"action"`
	State     string       `json:"state"`
	Verdict   Verdict      `json:"verdict"` // done, noted, failed or running
	Code      gozzard.Code `json:"code,omitempty"`
	Message   string       `json:"message,omitempty"`
	Managed   bool         `json:"managed"`          // the agent supervises the process
	Forced    bool         `json:"forced,omitempty"` // the agent killed the process, because it did not stop in time
	Detail    *Detail      `json:"detail,omitempty"` // only of the action query
}

// Show says which attempts of a task are listed. Counts always cover all attempts.
type Show string

// The values of Show.
const (
	ShowAll    Show = "all"
	ShowFailed Show = "failed"
	ShowNone   Show = "none"
)

// Task reads a task. With a wait of up to 30 s the server answers when the task is final or that time has passed.
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

// The intervals of Wait.
const (
	pollFor     = time.Second     // one poll: how often progress is called
	pollPause   = time.Second     // after a poll without an answer
	pollPatient = 2 * time.Minute // how long a server may be unreachable before Wait returns an error
)

// Wait polls a task until it is final, and returns it with all its attempts. progress may be nil; it is called after
// every poll. If the server is unreachable for a while, for example during a restart, Wait keeps polling: the task is
// recorded and continues.
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
				return c.WholeTask(ctx, id)
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
