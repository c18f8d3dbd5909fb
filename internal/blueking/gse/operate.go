package gse

import (
	"context"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/strictjson"
	"github.com/gozzard/gozzard/internal/taskname"
)

// The forms of request, kept with the task: a poll has only the task's id, and what it renders depends on the form.
const (
	doorV1         = "gse.v1"
	doorV2         = "gse.v2"
	doorMulti      = "gse.multi"
	doorRegister   = "gse.register"
	doorUpdate     = "gse.update"
	doorUnregister = "gse.unregister"
)

type taskData struct {
	TaskID string `json:"task_id"`
}

func (s *server) operation(c *blueking.Call, door string, items ...gozzard.Item) *gozzard.Operation {
	return &gozzard.Operation{Caller: c.Caller, Door: door, Items: items, IdempotencyKey: c.IdempotencyKey,
		RequestHash: c.Hash}
}

// submit hands an operation without faults to the plane.
func (s *server) submit(ctx context.Context, c *blueking.Call, door string, items ...gozzard.Item) (any, error) {
	if err := c.Faults.Err(); err != nil {
		return nil, err
	}
	task, err := s.plane.Operate(ctx, s.operation(c, door, items...))
	if err != nil {
		return nil, err
	}
	return taskData{TaskID: taskname.Of(task.ID)}, nil
}

// operateV1 is operate_proc: its definition is what was registered, unless one is sent along.
func (s *server) operateV1(ctx context.Context, c *blueking.Call) (any, error) {
	return s.submit(ctx, c, doorV1, s.readSingle(c, formV1, optSpec))
}

// operateV2 is operate_proc_v2: it brings its definition.
func (s *server) operateV2(ctx context.Context, c *blueking.Call) (any, error) {
	return s.submit(ctx, c, doorV2, s.readSingle(c, formV2, mustSpec))
}

func (s *server) readSingle(c *blueking.Call, f form,
	readSpec func(strictjson.Value, bool) *gozzard.Spec) gozzard.Item {
	v := &c.Body
	m := readMeta(v.Get("meta"), true)
	n, action, ok := readOpType(v, c.App)
	if !ok {
		op := v.Get("op_type")
		op.Fault("%s", unknownOpType(n))
	}
	places := s.readPlaces(v)
	return gozzard.Item{
		Action: action, Key: m.key, Labels: m.labels, Spec: readSpec(v.Get("spec"), action.RunsCommand()),
		Targets: targets(places, f, m.key),
	}
}

// operateMulti is operate_proc_multi: many items, each an operation of its own on its own hosts.
func (s *server) operateMulti(ctx context.Context, c *blueking.Call) (any, error) {
	list := c.Body.Get("proc_operate_req")
	m := multi{s: s, c: c, seen: make(map[procOnHost]int64)}
	before := c.Faults.Len()
	if n := list.List(s.maxHosts, m.read); n == 0 && c.Faults.Len() == before {
		list.Fault("at least one operation is required")
	}
	if m.total > s.maxHosts {
		list.Fault("name %d hosts together, at most %d are allowed", m.total, s.maxHosts)
	}
	return s.submit(ctx, c, doorMulti, m.items...)
}

// multi reads the items of one request.
type multi struct {
	s     *server
	c     *blueking.Call
	items []gozzard.Item
	seen  map[procOnHost]int64 // op_type by what it is for
	total int
}

type procOnHost struct {
	host hostID
	key  gozzard.Key
}

func (m *multi) read(v *strictjson.Value) {
	if !v.Object() {
		return
	}

	before := m.c.Faults.Len()
	who := readMeta(v.Get("meta"), true)
	n, action, ok := readOpType(v, m.c.App)
	places := m.s.readPlaces(v)
	it := gozzard.Item{Action: action, Key: who.key, Labels: who.labels}

	if ok {
		it.Spec = mustSpec(v.Get("spec"), action.RunsCommand())
	} else {
		it.Refused = &gozzard.Outcome{Code: gozzard.CodeUnknownAction, Message: "op_type " + unknownOpType(n)}
	}

	if m.c.Faults.Len() > before {
		return
	}

	places = m.once(v, places, who.key, n)
	if m.total += len(places); m.total > m.s.maxHosts || len(places) == 0 {
		return // too many is told when all is read
	}

	it.Targets = targets(places, formV2, who.key)
	m.items = append(m.items, it)
}

// once leaves out what an earlier item named already: one client repeats itself, and there is one result for both.
// Asking for two different things of one process at once has no order, so it is refused.
func (m *multi) once(v *strictjson.Value, places []place, key gozzard.Key, opType int64) []place {
	fresh := places[:0]
	for _, p := range places {
		id := procOnHost{p.hostID(), key}
		first, known := m.seen[id]
		switch {
		case !known:
			m.seen[id] = opType
			fresh = append(fresh, p)
		case first != opType:
			v.Fault("asks for op_type %d of %s on %s, an earlier item for op_type %d", opType, key, p.name(formV2),
				first)
		}
	}

	return fresh
}
