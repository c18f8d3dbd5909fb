package gse

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/rendered"
	"github.com/gozzard/gozzard/internal/taskname"
)

// entry is the result of one process on one host. Content is JSON in a string, which clients parse again.
type entry struct {
	ErrorCode int    `json:"error_code"`
	ErrorMsg  string `json:"error_msg"`
	Content   string `json:"content"`

	old bool // the answer also has the names that old clients read: errcode and errmsg
}

// result answers a poll of a task. The answer is the same for an unknown id, an id of another app's task and any other
// text.
func (s *server) result(ctx context.Context, c *blueking.Call) (any, error) {
	id := c.Body.Get("task_id")
	task := taskname.Parse(id.Str())

	if err := c.Faults.Err(); err != nil {
		return nil, err
	}

	res, err := s.plane.Results(ctx, c.Caller, task)
	if err != nil {
		if gozzard.KindOf(err) == gozzard.ErrNotFound {
			return nil, gozzard.Errorf(gozzard.ErrNotFound, "no such task")
		}
		return nil, err
	}

	if len(res.Attempts) >= rendered.From {
		return s.kept(c.Words, &res)
	}
	return render(c.Words, &res), nil
}

// keptEntries are the entries of a large task, as package rendered keeps them.
type keptEntries []byte

// AppendJSON implements strictjson.Appender.
func (k keptEntries) AppendJSON(b []byte) []byte {
	b = append(slices.Grow(b, len(k)+rowBytes), '{') // with the end of the answer
	return append(append(b, k...), '}')
}

// kept is render for a task whose entries are kept for the next poll.
func (s *server) kept(w blueking.Words, res *record.TaskResults) (any, error) {
	var specs blueking.Identities
	text, err := s.rendered.Text(rendered.Key{Task: res.Task.ID, Language: w.Language.String()}, res.Attempts, res.Version, rendered.Form{
		Order: byResultKey,
		Append: func(b []byte, a *gozzard.Attempt) ([]byte, error) {
			return newEntry(w, res.Task.Door, a, &specs).append(b, a.ResultKey), nil
		},
	}, time.Now())
	if err != nil {
		return nil, err
	}
	return keptEntries(text.Bytes), nil
}

// byResultKey is the order of the entries of a task. When several attempts have the same key, the last one counts.
func byResultKey(list []gozzard.Attempt) []int32 {
	last := make(map[string]int32, len(list))
	for i := range list {
		last[list[i].ResultKey] = int32(i)
	}
	order := make([]int32, 0, len(last))
	for _, key := range slices.Sorted(maps.Keys(last)) {
		order = append(order, last[key])
	}
	return order
}

// render makes the entries of all attempts. They are all there from the first poll on.
func render(w blueking.Words, res *record.TaskResults) entries {
	out := make(entries, len(res.Attempts))
	var specs blueking.Identities
	for i := range res.Attempts {
		a := &res.Attempts[i]
		out[a.ResultKey] = newEntry(w, res.Task.Door, a, &specs)
	}

	return out
}

// newEntry makes the entry of an attempt.
func newEntry(w blueking.Words, door string, a *gozzard.Attempt, specs *blueking.Identities) entry {
	id := specs.Of(a)
	if id.ProcName == "" {
		id.ProcName = a.Key.Name
	}
	number, text := w.Verdict(a, id.ProcName)
	e := entry{ErrorCode: number, ErrorMsg: text, old: isV1(door)}
	if number != blueking.EntryInWork {
		e.Content = content(door, a, id, text)
	}
	return e
}

// isV1 reports whether a task came by a call that GSE 1.0 had. Its clients know the names of that time: bk-cmdb 3.2
// reads only errcode, and took every operation for a success without it.
func isV1(door string) bool {
	switch door {
	case doorV1, doorRegister, doorUpdate, doorUnregister:
		return true
	}
	return false
}

// content is the JSON in the string of a finished entry.
func content(door string, a *gozzard.Attempt, id gozzard.Identity, text string) string {
	switch a.Action {
	case gozzard.ActionRegister, gozzard.ActionUpdate, gozzard.ActionUnregister:
		return ""
	case gozzard.ActionQuery:
		name := a.Key.Name
		if door == doorV1 {
			name = id.ProcName
		}
		return string(blueking.EncodeContent(blueking.NewQueryContent(a, id.ProcName, name)))
	}

	v := blueking.ControlValue{ProcName: id.ProcName, SetupPath: id.SetupPath, Result: text}

	if door != doorV1 {
		v.IsAuto = &a.Outcome.Hosted
		v.AgentID = string(a.Agent)
	}

	return string(blueking.EncodeContent(blueking.ControlContent{Value: [1]blueking.ControlValue{v}}))
}
