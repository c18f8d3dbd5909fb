//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/gozzard/gozzard/bench/sheet"
)

// taskSpaces are the namespaces on which the large task works: a tenth of all processes.
func taskSpaces() []string { return []string{spaceOf(0), spaceOf(1)} }

// measureTask reloads a tenth of all processes, and looks at the page of this task while it runs.
func (f *bigFleet) measureTask(ctx context.Context, o options, s *sheet.Sheet, t *sheet.Table) error {
	// Start the task.
	text, err := f.call(ctx, http.MethodPost, "/api/v1/operations",
		map[string]any{"action": "reload", "namespaces": taskSpaces(), "names": []string{"*"}, "all": true})
	if err != nil {
		return err
	}
	var started struct {
		ID      string `json:"task_id"`
		Targets int    `json:"targets"`
	}
	if err := json.Unmarshal(text, &started); err != nil {
		return err
	}

	// Open its page, and scroll through its processes.
	first, err := f.opened(ctx, "/console/tasks/"+started.ID, "bench.table")
	if err != nil {
		return err
	}
	moved, err := scroll(ctx, ".task-rows", o.scroll)
	if err != nil {
		return fmt.Errorf("scrolling: %w", err)
	}
	what := fmt.Sprintf("page of a task with %d targets", started.Targets)
	add(t, what+", from the address to the screen", first, "ms", firstTableLimit)
	add(t, fmt.Sprintf("95 of 100 frames of this page while scrolling (%.0f frames)", moved.Count), moved.P95, "ms", frameLimit)

	// Say how far the task was, and wait for its end: what is measured next must not include it.
	now, err := f.task(ctx, started.ID, "")
	if err != nil {
		return err
	}
	s.Note("The task of %d targets: %d were done and %d still ran when its page was measured.", started.Targets, now.Counts.Done,
		now.Counts.Running)
	for !now.Final {
		if now, err = f.task(ctx, started.ID, "&wait=30s"); err != nil {
			return err
		}
	}
	time.Sleep(o.settle) // the simulated hosts still report what the task did
	if now.Counts.Failed > 0 {
		s.AddFault("%d targets of the task failed", now.Counts.Failed)
	}
	return nil
}

// taskState is what is read of a task.
type taskState struct {
	Final  bool `json:"final"`
	Counts struct {
		Done, Failed, Running int
	} `json:"counts"`
}

// task asks how far a task is.
func (f *bigFleet) task(ctx context.Context, id, query string) (now taskState, err error) {
	text, err := f.call(ctx, http.MethodGet, "/api/v1/tasks/"+id+"?show=none"+query, nil)
	if err != nil {
		return now, err
	}
	return now, json.Unmarshal(text, &now)
}
