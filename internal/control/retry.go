package control

import (
	"context"
	"maps"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// FailedItems makes the items of an operation that repeats the failed attempts of a task. The caller must
// be allowed to read the task; whether it may repeat them is decided when the items are operated. An attempt without a
// verdict is not repeated, nor one that a newer operation replaced. only limits them to attempts by their positions in
// the results of the task; nil means all.
//
// An attempt that defined its process brings the same definition again. Any other attempt uses the definition that is
// registered now. If there is none, it brings the one that it had: an attempt that was rejected at once has registered
// nothing.
func (p *Plane) FailedItems(ctx context.Context, caller gozzard.Caller, id gozzard.TaskID,
	only []int) ([]gozzard.Item, error) {
	// Find the attempts.
	res, err := p.Results(ctx, caller, id)
	if err != nil {
		return nil, err
	}
	chosen := make(map[int]bool, len(only))
	for _, i := range only {
		chosen[i] = true
	}
	var failed []*gozzard.Attempt
	var ids []gozzard.ProcID
	for i := range res.Attempts {
		if a := &res.Attempts[i]; repeats(a) && (only == nil || chosen[i]) {
			failed = append(failed, a)
			ids = append(ids, gozzard.ProcID{Agent: a.Agent, Key: a.Key})
		}
	}

	recs, err := recorded(ctx, p.o.Store, ids)
	if err != nil {
		return nil, err
	}

	// Make their items. Attempts that share a definition share what is decoded of it.
	known := map[string]*gozzard.Spec{}
	var items []gozzard.Item
	for i, a := range failed {
		it := gozzard.Item{Action: a.Action, Key: a.Key, Targets: []gozzard.Target{targetOf(a)}}
		if a.Action == gozzard.ActionNone { // the door did not know the action
			it.Refused = &gozzard.Outcome{Code: a.Outcome.Code, Message: a.Outcome.Message}
		}
		if rec, ok := recs[ids[i]]; bringsDefinition(a, rec, ok) {
			if it.Labels = a.Labels; known[string(a.Spec)] == nil {
				s, err := gozzard.DecodeSpec(a.Spec)
				if err != nil {
					return nil, err
				}
				known[string(a.Spec)] = s
			}
			it.Spec = known[string(a.Spec)]
		}
		if n := len(items); n > 0 && sameItem(&items[n-1], &it) {
			items[n-1].Targets = append(items[n-1].Targets, it.Targets...)
			continue
		}
		items = append(items, it)
	}

	return items, nil
}

// sameItem reports whether two items differ in their targets only.
func sameItem(a, b *gozzard.Item) bool {
	return a.Action == b.Action && a.Key == b.Key && a.Spec == b.Spec && a.Refused == nil && b.Refused == nil &&
		maps.Equal(a.Labels, b.Labels)
}

// repeats reports whether an attempt failed and may be repeated.
func repeats(a *gozzard.Attempt) bool {
	return a.State.Final() && a.State != gozzard.AttemptOK && !gozzard.NothingToDo(a.Action, a.Outcome.Code) &&
		a.Outcome.Code != gozzard.CodeSuperseded
}

func bringsDefinition(a *gozzard.Attempt, rec record.Process, recorded bool) bool {
	switch {
	case len(a.Spec) == 0 || a.Action == gozzard.ActionUnregister:
		return false
	case a.Action == gozzard.ActionRegister || a.Action == gozzard.ActionUpdate:
		return true
	}
	return !recorded || len(rec.Spec) == 0
}

// targetOf names the host of an attempt as the record knows it.
func targetOf(a *gozzard.Attempt) gozzard.Target {
	t := gozzard.Target{Agent: a.Agent, ResultKey: a.ResultKey}
	if a.Agent == "" {
		t.Addr = a.Addr
	}
	return t
}
