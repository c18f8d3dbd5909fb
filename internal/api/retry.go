package api

import (
	"net/http"
	"reflect"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/strictjson"
	"github.com/gozzard/gozzard/internal/taskname"
)

// postRetry repeats the failed attempts of a task as a new task, with the rights and the guards of a new operation.
func (a *api) postRetry(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	// Read the request.
	key, err := idempotencyKey(r.Header)
	if err != nil {
		return err
	}
	op := &gozzard.Operation{Caller: caller, Door: Door, IdempotencyKey: key, Adopt: true}
	var only []int
	dry := false
	body, err := readRequest(w, r, maxOperationBody, func(root *strictjson.Value) {
		root.Only(fieldNames(reflect.TypeFor[client.RetryRequest]())...)
		confirm, dryRun, attempts := root.Get("confirm"), root.Get("dry_run"), root.Get("attempts")
		op.WaitOffline = readWait(root)
		attempts.OptList(maxList, func(e *strictjson.Value) { only = append(only, int(e.Int(0, maxList))) })
		if attempts.Given() && len(only) == 0 {
			attempts.Fault("give at least one position, or leave it out for all that failed")
		}
		op.Confirm, dry = int(confirm.OptInt(0, 1, maxList)), dryRun.OptBool(false)
	})
	if err != nil {
		return err
	}
	op.RequestHash = requestHash(r, body)

	// Find what failed.
	op.Items, err = a.Plane.FailedItems(r.Context(), caller, taskname.Parse(r.PathValue("id")), only)
	if err != nil {
		return err
	}
	if len(op.Items) == 0 {
		return answer(w, http.StatusOK, client.Preview{Processes: []client.PreviewRow{}})
	}
	if dry {
		return a.preview(w, r, op)
	}
	return a.accept(w, r, op)
}

// accept creates the task of an operation.
func (a *api) accept(w http.ResponseWriter, r *http.Request, op *gozzard.Operation) error {
	task, err := a.Plane.Operate(r.Context(), op)
	if err != nil {
		return err
	}

	w.Header().Set("Location", "/api/v1/tasks/"+taskname.Of(task.ID))
	return answer(w, http.StatusAccepted, client.Accepted{TaskID: taskname.Of(task.ID), Targets: task.Targets})
}
