package gse

import (
	"context"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/blueking"
)

// register stores a definition that is not there yet; it runs nothing.
func (s *server) register(ctx context.Context, c *blueking.Call) (any, error) {
	return s.define(ctx, c, doorRegister, gozzard.ActionRegister)
}

// update stores a definition whether it is there or not: one client registers with it.
func (s *server) update(ctx context.Context, c *blueking.Call) (any, error) {
	return s.define(ctx, c, doorUpdate, gozzard.ActionUpdate)
}

func (s *server) unregister(ctx context.Context, c *blueking.Call) (any, error) {
	return s.define(ctx, c, doorUnregister, gozzard.ActionUnregister)
}

// define carries a change of definitions out and waits for it. An op_type that one client sends along means nothing
// here. What an agent has not confirmed in time is answered as in work; the caller repeats.
func (s *server) define(ctx context.Context, c *blueking.Call, door string, action gozzard.Action) (any, error) {
	v := &c.Body
	m := readMeta(v.Get("meta"), true)
	it := gozzard.Item{Action: action, Key: m.key, Labels: m.labels, Targets: targets(s.readPlaces(v), formV1, m.key)}

	if action != gozzard.ActionUnregister {
		it.Spec = mustSpec(v.Get("spec"), true)
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

	return render(&res), nil
}
