package gse

import (
	"context"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/strictjson"
	"github.com/gozzard/gozzard/internal/taskname"
)

// The forms of a request. The task has its form, because the answer to a poll depends on it.
const (
	doorV1         = "gse.v1"
	doorV2         = "gse.v2"
	doorMulti      = "gse.multi"
	doorRegister   = "gse.register"
	doorUpdate     = "gse.update"
	doorUnregister = "gse.unregister"
)

// maxVerdict bounds the text about what is wrong with one item of many.
const maxVerdict = 2048

type taskData struct {
	TaskID string `json:"task_id"`
}

func (s *server) operation(c *blueking.Call, door string, items ...gozzard.Item) *gozzard.Operation {
	return &gozzard.Operation{Caller: c.Caller, Door: door, Items: items, IdempotencyKey: c.IdempotencyKey,
		RequestHash: c.Hash}
}

// submit passes an operation to the control plane, unless the request has faults.
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

// operateV1 is operate_proc. It uses the registered definition if the request has none.
func (s *server) operateV1(ctx context.Context, c *blueking.Call) (any, error) {
	return s.submit(ctx, c, doorV1, s.readSingle(c, formV1, optSpec))
}

// operateV2 is operate_proc_v2. The request has a definition.
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

// operateMulti is operate_proc_multi: several items, each with an action, a process and hosts. An item that cannot be
// accepted gets its own verdict, and the others run.
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
	seen  map[procOnHost]int64 // op_type of each process on each host
	total int
}

type procOnHost struct {
	host hostID
	key  gozzard.Key
}

// read reads one item. What the answer needs must be there: the process, its hosts, the action and a definition. A fault
// in them is one of the whole request. Any other fault is the verdict on this item alone: clients send a thousand
// processes of a business at once, and one odd name must not keep the others from being operated.
func (m *multi) read(v *strictjson.Value) {
	if !v.Object() {
		return
	}

	// Read what the answer needs.
	before := m.c.Faults.Len()
	key := readNamed(v.Get("meta"))
	n, action, ok := readOpType(v, m.c.App)
	places, spec := m.s.readPlaces(v), v.Get("spec")
	if ok && (!spec.IsObject() || spec.Hollow()) {
		mustSpec(spec, false) // adds the fault
	}
	if m.c.Faults.Len() > before {
		return
	}

	// Leave out repetitions, and count the hosts.
	places = m.once(v, places, key, n)
	if m.total += len(places); m.total > m.s.maxHosts || len(places) == 0 {
		return // the caller of read reports too many hosts
	}

	// Read the rest of the item.
	it := m.readItem(v, action, n, ok)
	it.Key, it.Targets = key, targets(places, formV2, key)
	m.items = append(m.items, it)
}

// readItem reads an item without its hosts. A fault becomes its verdict.
func (m *multi) readItem(v *strictjson.Value, action gozzard.Action, opType int64, known bool) gozzard.Item {
	before := m.c.Faults.Len()
	it := gozzard.Item{Action: action, Labels: readMeta(v.Get("meta"), true).labels}
	if known {
		it.Spec = mustSpec(v.Get("spec"), action.RunsCommand())
	} else {
		it.Refused = &gozzard.Outcome{Code: gozzard.CodeUnknownAction, Message: "op_type " + unknownOpType(opType)}
	}

	if err := m.c.Faults.Cut(before); err != nil {
		it.Labels, it.Spec = nil, nil
		it.Refused = &gozzard.Outcome{Code: gozzard.CodeRefused, Message: gozzard.Clip(blueking.Text(err), maxVerdict)}
	}
	return it
}

// once leaves out the places that an earlier item has for the same process and action: one client repeats itself. Two
// different actions on one process in one request have no order, so they are rejected.
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
