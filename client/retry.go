package client

import (
	"context"
	"net/http"
	"net/url"
)

// Retry asks to repeat the failed attempts of a task.
type Retry struct {
	TaskID         string
	Attempts       []int // positions in Task.Attempts, from 0; all that failed when empty
	Offline        Offline
	Confirm        int    // how many processes will stop; the server requires it for large operations
	IdempotencyKey string // drawn when empty
}

// RetryRequest is the body of POST /api/v1/tasks/{id}/retry.
type RetryRequest struct {
	OfflineRequest
	Attempts []int `json:"attempts,omitempty"` // positions in the attempts of the task, from 0; all that failed when missing
	Confirm  int   `json:"confirm,omitempty"`  // how many processes will stop
	DryRun   bool  `json:"dry_run,omitempty"`  // answer with a Preview, and do nothing
}

// Retry repeats the failed attempts of a task as a new task. If nothing failed there is no new task, and the answer has
// no id.
func (c *Client) Retry(ctx context.Context, r Retry) (Accepted, error) {
	return c.change(ctx, http.MethodPost, retryPath(r.TaskID), r.IdempotencyKey, RetryRequest{
		OfflineRequest: r.Offline.request(), Attempts: r.Attempts, Confirm: r.Confirm})
}

// PreviewRetry asks what Retry would do, and does nothing.
func (c *Client) PreviewRetry(ctx context.Context, r Retry) (Preview, error) {
	return c.preview(ctx, http.MethodPost, retryPath(r.TaskID), RetryRequest{OfflineRequest: r.Offline.request(),
		Attempts: r.Attempts, DryRun: true})
}

func retryPath(id string) string { return "/api/v1/tasks/" + url.PathEscape(id) + "/retry" }
