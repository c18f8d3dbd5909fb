package gse

import (
	"context"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/blueking"
)

// register stores a definition unless the host has one. It starts nothing.
func (s *server) register(ctx context.Context, c *blueking.Call) (any, error) {
	return s.define(ctx, c, doorRegister, gozzard.ActionRegister)
}

// update stores a definition, also if the host has none: one client registers with it.
func (s *server) update(ctx context.Context, c *blueking.Call) (any, error) {
	return s.define(ctx, c, doorUpdate, gozzard.ActionUpdate)
}

func (s *server) unregister(ctx context.Context, c *blueking.Call) (any, error) {
	return s.define(ctx, c, doorUnregister, gozzard.ActionUnregister)
}

// define changes definitions and waits for the agents. It ignores the op_type that one client sends. An attempt that
// an agent has not confirmed in time is answered as in work, and the caller repeats the call.
func (s *server) define(ctx context.Context, c *blueking.Call, door string, action gozzard.Action) (any, error) {
	v := &c.Body
	m := readMeta(v.Get("meta"), true)
	it := gozzard.Item{Action: action, Key: m.key, Labels: m.labels, Targets: targets(s.readPlaces(v), formV1, m.key)}

	if action != gozzard.ActionUnregister {
		it.Spec = namedSpec(v.Get("spec"), m.key.Name)
	}
	if err := c.Faults.Err(); err != nil {
		return nil, err
	}

	task, err := s.plane.Operate(ctx, s.operation(c, door, it))
	if err != nil {
		return nil, err
	}

	res, err := s.plane.Await(ctx, c.Caller, task.ID, s.syncWait)
	if err != nil {
		return nil, err
	}

	return render(c.Words, &res), nil
}
