package client

import (
	"context"
	"net/url"
	"strconv"
	"time"
)

// TaskSummary is a task in a list.
type TaskSummary struct {
	ID        string        `json:"task_id"`
	At        Time          `json:"at"`
	App       string        `json:"app"`
	User      string        `json:"user"`
	Door      string        `json:"door"` // by which API the request came
	Actions   []string      `json:"actions"`
	Final     bool          `json:"final"` // every attempt has its verdict
	Counts    Counts        `json:"counts"`
	Processes []TaskProcess `json:"processes"`      // the first few, each once
	More      int           `json:"more,omitempty"` // how many processes are not listed
}

// TaskProcess is a process that a task is about.
type TaskProcess struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// TaskPage is one page of the tasks, the newest first. A page may have fewer tasks than asked for, or none, although
// there are more: the server looks at a limited number of tasks for one page.
type TaskPage struct {
	Tasks []TaskSummary `json:"tasks"`
	Next  int64         `json:"next,omitempty"` // the value of before for the next page; 0 at the end
}

// TaskQuery chooses tasks; every field that is not empty must fit, and a list fits when one of its values does.
type TaskQuery struct {
	Since      time.Time
	Actions    []string
	App        string
	User       string
	Mine       bool     // only tasks of the caller
	Namespaces []string // or patterns with * and ?
	Names      []string // or patterns with * and ?
	Hosts      []string // cloud:ip, an IP address, a host name or an agent id
	State      string   // running, failed or done
	Before     string   // a task id or Next of a page: only older tasks
}

// Tasks lists the newest tasks that match and that the caller may read, at most limit.
func (c *Client) Tasks(ctx context.Context, q TaskQuery, limit int) (TaskPage, error) {
	v := url.Values{"action": q.Actions, "namespace": q.Namespaces, "name": q.Names, "host": q.Hosts,
		"limit": {strconv.Itoa(limit)}}
	if !q.Since.IsZero() {
		v.Set("since", q.Since.UTC().Format(time.RFC3339Nano))
	}
	if q.Mine {
		v.Set("mine", "true")
	}
	for name, value := range map[string]string{"app": q.App, "user": q.User, "state": q.State, "before": q.Before} {
		if value != "" {
			v.Set(name, value)
		}
	}

	var page TaskPage
	err := c.get(ctx, "/api/v1/tasks", v, &page)
	return page, err
}
