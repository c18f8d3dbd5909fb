package client

import (
	"context"
	"net/http"
	"net/url"
)

// CancelRequest is the body of POST /api/v1/tasks/{id}/cancel.
type CancelRequest struct {
	Attempts []int `json:"attempts,omitempty"` // positions in the attempts of the task, from 0; all when missing
}

// Cancelled says what became of the attempts that were to be cancelled.
type Cancelled struct {
	TaskID    string `json:"task_id"`
	Cancelled int    `json:"cancelled"` // not sent, and never will be
	Running   int    `json:"running"`   // sent before: they run on, and get their true verdict
	Ended     int    `json:"ended"`     // had another verdict before
}

// Cancel cancels the attempts of a task that were not sent to their hosts: those at the given positions, or all.
func (c *Client) Cancel(ctx context.Context, id string, attempts ...int) (out Cancelled, err error) {
	err = c.write(ctx, http.MethodPost, "/api/v1/tasks/"+url.PathEscape(id)+"/cancel", CancelRequest{Attempts: attempts}, &out)
	return out, err
}
