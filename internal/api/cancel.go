package api

import (
	"net/http"
	"reflect"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/strictjson"
	"github.com/gozzard/gozzard/internal/taskname"
)

// postCancel cancels the attempts of a task that were not sent. A second request for the same ones changes nothing.
func (a *api) postCancel(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	// Read the request.
	var only map[int32]bool
	body, err := readRequest(w, r, maxOperationBody, func(root *strictjson.Value) {
		root.Only(fieldNames(reflect.TypeFor[client.CancelRequest]())...)
		attempts := root.Get("attempts")
		if attempts.Given() {
			only = map[int32]bool{}
		}
		attempts.OptList(maxList, func(e *strictjson.Value) { only[int32(e.Int(0, maxList))] = true })
		if attempts.Given() && len(only) == 0 {
			attempts.Fault("give at least one position, or leave it out for all")
		}
	})
	if err != nil {
		return err
	}

	// Cancel.
	chosen := func(at *gozzard.Attempt) bool { return only == nil || only[at.Ref.Index] }
	res, err := a.Plane.CancelTask(r.Context(), &record.Cancel{Caller: caller, Task: taskname.Parse(r.PathValue("id")), Only: chosen,
		RequestHash: requestHash(r, body)})
	if err != nil {
		return err
	}

	// Say what became of them.
	out := client.Cancelled{TaskID: taskname.Of(res.Task.ID)}
	for i := range res.Attempts {
		switch at := &res.Attempts[i]; {
		case !chosen(at):
		case !at.State.Final():
			out.Running++
		case at.Outcome.Code == gozzard.CodeCancelled:
			out.Cancelled++
		default:
			out.Ended++
		}
	}
	return answer(w, http.StatusOK, out)
}
