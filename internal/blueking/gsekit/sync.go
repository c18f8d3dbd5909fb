package gsekit

import (
	"context"
	"slices"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

// The record has these names with the operations of this door: those of jobs, and those that ask agents for the state
// of their processes.
const (
	Door     = "gsekit"
	doorSync = "gsekit.sync"
)

// flushProcess updates the topology from its source. That may change what the next operation does, so the caller
// needs the right to change the definitions of the business.
func (s *server) flushProcess(ctx context.Context, r *request) (any, error) {
	if err := r.err(); err != nil {
		return nil, err
	}
	if !r.Caller.Rights.MayBusinessHosts(gozzard.ActionUpdate, r.biz) {
		return nil, gozzard.Errorf(gozzard.ErrAppForbidden, "app %s may not change business %d", r.Caller.App, r.biz)
	}
	left, err := s.flush(ctx, r.Caller, r.biz)
	if err != nil || len(left) == 0 {
		return nil, err
	}
	return flushed{Left: left}, nil
}

// flushed is what a flush could not take over. Without any the answer has no data, as callers know it.
type flushed struct {
	Left []string `json:"left"`
}

type synced struct {
	CostTime float64 `json:"cost_time"` // seconds
}

// syncProcessStatus asks the agents of a business for all its processes. Other answers are live without it; it is for
// callers that want an answer from the agents themselves. It waits a limited time for agents that are slow or offline.
func (s *server) syncProcessStatus(ctx context.Context, r *request) (any, error) {
	if err := r.err(); err != nil {
		return nil, err
	}

	// Find the processes.
	began := time.Now()
	_, rows := s.plane.FindProcesses(r.Caller, topology.Query{Biz: r.biz, Limit: -1})
	if len(rows) == 0 {
		return synced{}, nil
	}

	found, err := s.plane.TopologyItems(ctx, r.biz, rows, gozzard.ActionQuery)
	if err != nil {
		return nil, err
	}

	// Ask their agents.
	var asked []gozzard.TaskID
	for some := range slices.Chunk(questions(found), record.MaxTargets) {
		task, err := s.plane.Operate(ctx, &gozzard.Operation{Caller: r.Caller, Door: doorSync, Items: some,
			RequestHash: r.Hash})
		if err != nil {
			return nil, err
		}
		asked = append(asked, task.ID)
	}

	// Wait for the answers, for a limited time.
	for _, id := range asked {
		if _, err := s.plane.Await(ctx, r.Caller, id, max(s.syncWait-time.Since(began), 0)); err != nil {
			return nil, err
		}
	}

	return synced{CostTime: time.Since(began).Round(time.Millisecond).Seconds()}, nil
}

// questions are the queries for the agents, without definitions: each agent uses the definition that it has.
func questions(found []record.TopologyItem) []gozzard.Item {
	items := make([]gozzard.Item, len(found))
	for i := range found {
		items[i] = found[i].Item
		items[i].Spec = nil
	}
	return items
}
