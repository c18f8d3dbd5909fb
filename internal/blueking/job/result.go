package job

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/strictjson"
	"github.com/gozzard/gozzard/internal/taskname"
)

// result answers a poll of a task. The answer is the same for an unknown id, a task of another app or business, and
// any other text.
func (s *server) result(ctx context.Context, c *blueking.Call) (any, error) {
	r := request{s: s, c: c}
	biz, id := r.business(), r.get(&c.Body, "bk_gse_taskid", "gse_task_id")
	task := ""

	if r.required(id) {
		task = id.AnyStr()
	}
	if err := r.err(); err != nil {
		return nil, err
	}

	res, err := s.plane.Results(ctx, c.Caller, taskname.Parse(task))
	if err == nil && !ours(&res, biz.namespace()) || err != nil && gozzard.KindOf(err) == gozzard.ErrNotFound {
		return nil, gozzard.Errorf(gozzard.ErrNotFound, "no such task")
	}
	if err != nil {
		return nil, err
	}

	out := render(c.Words, &res)
	out.oldest = r.oldest
	return out, nil
}

// ours reports whether a task was accepted by this door for the business of a namespace.
func ours(res *record.TaskResults, namespace string) bool {
	if !strings.HasPrefix(res.Task.Door, family+".") {
		return false
	}
	return !slices.ContainsFunc(res.Attempts, func(a gozzard.Attempt) bool { return a.Key.Namespace != namespace })
}

// procResult is the answer to a poll: the status of the task and an entry for each process on each host.
type procResult struct {
	status  int
	entries map[string]entry
	oldest  bool // the request has the names before version 2, and the answer has them too
}

// entry is the result of one process on one host. Its content is a JSON object.
type entry struct {
	code    int
	text    string
	content []byte // JSON; nil while the attempt is in work
}

func render(w blueking.Words, res *record.TaskResults) procResult {
	out := procResult{status: blueking.EntryOK, entries: make(map[string]entry, len(res.Attempts))}
	var specs blueking.Identities
	for i := range res.Attempts {
		a := &res.Attempts[i]
		id := specs.Of(a)
		if id.ProcName == "" {
			id.ProcName = a.Key.Name
		}
		number, text := w.Verdict(a, id.ProcName)
		e := entry{code: number, text: text}
		if number == blueking.EntryInWork {
			out.status = blueking.EntryInWork
		} else {
			e.content = content(a, id, text)
		}
		out.entries[a.ResultKey] = e
	}

	return out
}

func content(a *gozzard.Attempt, id gozzard.Identity, text string) []byte {
	if a.Action == gozzard.ActionQuery {
		return blueking.EncodeContent(blueking.NewQueryContent(a, id.ProcName, id.ProcName))
	}
	v := blueking.ControlValue{
		ProcName: id.ProcName, SetupPath: id.SetupPath, FuncID: a.Labels["func_id"],
		InstanceID: a.Labels["instance_id"], Result: text,
	}
	return blueking.EncodeContent(blueking.ControlContent{Value: [1]blueking.ControlValue{v}})
}

// appendOld appends the number and the text of an entry under the names that old clients read.
func (p *procResult) appendOld(b []byte, e *entry) []byte {
	b = strconv.AppendInt(append(b, `,"errcode":`...), int64(e.code), 10)
	b = strictjson.AppendString(append(b, `,"errmsg":`...), e.text)
	if p.oldest {
		b = strconv.AppendInt(append(b, `,"m_errcode":`...), int64(e.code), 10)
		b = strictjson.AppendString(append(b, `,"m_rsp":`...), e.text)
	}
	return b
}

// AppendJSON implements strictjson.Appender.
func (p procResult) AppendJSON(b []byte) []byte {
	b = strconv.AppendInt(append(b, `{"status":`...), int64(p.status), 10)
	b = append(b, `,"result":{`...)
	for i, key := range slices.Sorted(maps.Keys(p.entries)) {
		if i > 0 {
			b = append(b, ',')
		}
		e := p.entries[key]
		b = append(strictjson.AppendString(b, key), `:{"error_code":`...)
		b = strconv.AppendInt(b, int64(e.code), 10)
		b = strictjson.AppendString(append(b, `,"error_msg":`...), e.text)
		b = append(b, `,"content":`...)
		if e.content == nil {
			b = append(b, `""`...)
		} else {
			b = append(b, e.content...)
		}
		b = p.appendOld(b, &e)
		b = append(b, '}')
	}

	return append(b, `}}`...)
}
