package client

import (
	"context"
	"net/http"
	"time"
)

// Operation asks for an action: start, stop, restart, reload, kill, manage, unmanage or query.
type Operation struct {
	Action string
	Selection
	Offline        Offline
	Confirm        int    // how many processes will stop; the server requires it for large operations
	IdempotencyKey string // drawn when empty
}

// Offline says what happens with hosts that are offline. By default their attempts fail at once. With Wait the
// operation waits that long for them.
type Offline struct {
	Wait time.Duration
}

// OfflineRequest is Offline as the API has it.
type OfflineRequest struct {
	WhenOffline string `json:"when_offline,omitempty"` // fail (the default) or wait
	WaitSeconds int    `json:"wait_seconds,omitempty"` // only with wait; 3600 when missing
}

func (o Offline) request() OfflineRequest {
	if o.Wait <= 0 {
		return OfflineRequest{}
	}
	return OfflineRequest{WhenOffline: "wait", WaitSeconds: int((o.Wait + time.Second - 1) / time.Second)}
}

// OperationRequest is the body of POST /api/v1/operations.
type OperationRequest struct {
	Action string `json:"action"` // start, stop, restart, reload, kill, manage, unmanage or query
	Selection
	OfflineRequest
	Confirm int               `json:"confirm,omitempty"` // how many processes will stop
	Spec    *Spec             `json:"spec,omitempty"`    // registered first, if namespace, names and hosts are written out
	Labels  map[string]string `json:"labels,omitempty"`
	DryRun  bool              `json:"dry_run,omitempty"` // answer with a Preview, and do nothing
}

// UnregisterRequest is the body of DELETE /api/v1/processes.
type UnregisterRequest struct {
	Selection
	OfflineRequest
	Confirm int  `json:"confirm,omitempty"` // how many processes lose their definition
	DryRun  bool `json:"dry_run,omitempty"` // answer with a Preview, and do nothing
}

// Accepted is a recorded task. Every one of its targets will reach a verdict.
type Accepted struct {
	TaskID  string `json:"task_id"`
	Targets int    `json:"targets"`
}

// Operate performs an action on processes.
func (c *Client) Operate(ctx context.Context, op Operation) (Accepted, error) {
	return c.change(ctx, http.MethodPost, "/api/v1/operations", op.IdempotencyKey, OperationRequest{
		Action: op.Action, Selection: op.Selection, OfflineRequest: op.Offline.request(), Confirm: op.Confirm})
}

// Unregister removes the definitions of processes from hosts. Running processes keep running.
func (c *Client) Unregister(ctx context.Context, s Selection) (Accepted, error) {
	return c.UnregisterConfirmed(ctx, s, 0)
}

// UnregisterConfirmed is Unregister with the number of processes, which the server requires for large operations.
func (c *Client) UnregisterConfirmed(ctx context.Context, s Selection, confirm int) (Accepted, error) {
	return c.change(ctx, http.MethodDelete, "/api/v1/processes", "", UnregisterRequest{Selection: s, Confirm: confirm})
}
