package api

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/taskname"
)

// maxTaskProcesses limits the processes that a list names for one task.
const maxTaskProcesses = 10

// getTasks lists the newest tasks that the caller may read.
func (a *api) getTasks(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	// Read the query.
	q, err := a.readQuery(r)
	if err != nil {
		return err
	}
	limit := q.number("limit", defaultPage, 1, maxPage)
	f := a.taskFilter(caller, q)
	if err := q.faults.Err(); err != nil {
		return err
	}

	// List them, with a link to the next page.
	found, err := a.Plane.Tasks(r.Context(), caller, f, limit)
	if err != nil {
		return err
	}
	page := client.TaskPage{Tasks: make([]client.TaskSummary, 0, len(found.Tasks)), Next: int64(found.Next)}
	for i := range found.Tasks {
		page.Tasks = append(page.Tasks, renderSummary(&found.Tasks[i]))
	}
	if page.Next > 0 {
		values := r.URL.Query()
		values.Set("before", strconv.FormatInt(page.Next, 10))
		w.Header().Set("Link", "</api/v1/tasks?"+values.Encode()+`>; rel="next"`)
	}

	return answer(w, http.StatusOK, page)
}

// taskFilter reads the parameters that select tasks.
func (a *api) taskFilter(caller gozzard.Caller, q *query) record.TaskFilter {
	f := record.TaskFilter{App: q.one("app"), User: q.one("user"), Mine: q.flag("mine"), Namespaces: q.patterns("namespace"),
		Names: q.patterns("name"), State: record.TaskState(q.one("state"))}

	q.each("action", func(s string) string {
		action, err := gozzard.ParseAction(s)
		if err != nil {
			return notAnAction(s, gozzard.ActionWords()).Error()
		}
		f.Actions = append(f.Actions, action)
		if actionWord(action) == gozzard.ActionRegister.String() {
			f.Actions = append(f.Actions, gozzard.ActionRegister, gozzard.ActionUpdate)
		}
		return ""
	})

	if s := q.one("since"); s != "" {
		var ok bool
		if f.Since, ok = parseSince(s); !ok {
			q.faults.Add("since", "must be a time such as 2026-01-02T15:04:05Z or Unix milliseconds, is %q", clip(s))
		}
	}

	switch f.State {
	case "", record.TaskRunning, record.TaskFailed, record.TaskDone:
	default:
		q.faults.Add("state", `must be "running", "failed" or "done", is %q`, clip(string(f.State)))
	}

	if s := q.one("before"); s != "" {
		var ok bool
		if f.Before, ok = parseTaskSeq(s); !ok {
			q.faults.Add("before", "must be a task id such as 20240102030405:17 or its number, is %q", clip(s))
		}
	}

	a.taskHosts(caller, q, &f)
	return f
}

// parseTaskSeq reads the number of a task, or the number in its id.
func parseTaskSeq(s string) (gozzard.TaskSeq, bool) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return gozzard.TaskSeq(n), n > 0
	}
	return taskname.Parse(s).Seq()
}

// taskHosts reads the hosts of a filter. They are looked for by what was recorded with the attempts, so a host that has
// left is found too. If the caller sees a host with such an address, its attempts under other addresses count as well.
func (a *api) taskHosts(caller gozzard.Caller, q *query, f *record.TaskFilter) {
	clouds := cloudFinder{plane: a.Plane, caller: caller}
	q.each("host", func(s string) string {
		// Read it.
		var h record.TaskHost
		if ip, err := gozzard.ParseIP(s); err == nil {
			h.Addr.IP, h.AnyCloud = ip, true
		} else if h.Addr, err = gozzard.ParseHostAddr(s); err != nil {
			h.Addr = gozzard.HostAddr{}
			if h.Agent, err = clouds.agent(s); err != nil {
				return err.Error()
			}
		}
		f.Hosts = append(f.Hosts, h)

		// Find the host that has it now. An address in several clouds means all of them.
		if t, err := parseHost(s, &clouds); err == nil {
			if host, ok := a.Plane.Resolve(caller, t); ok {
				f.Hosts = append(f.Hosts, record.TaskHost{Agent: host.Info.Agent})
			}
		}
		return ""
	})
}

func renderSummary(s *record.TaskSummary) client.TaskSummary {
	c := s.Counts
	out := client.TaskSummary{ID: taskname.Of(s.Task.ID), At: client.Time{Time: s.Task.At.UTC()}, App: s.Task.Caller.App,
		User: s.Task.Caller.User, Door: s.Task.Door, Final: c.Running == 0, Actions: []string{},
		Processes: []client.TaskProcess{},
		Counts: client.Counts{Targets: c.Done + c.Failed + c.Running, Done: c.Done, Noted: c.Noted, Failed: c.Failed,
			Running: c.Running}}

	seen := make(map[gozzard.Key]bool, len(s.Items))
	for i := range s.Items {
		it := &s.Items[i]
		if word := actionWord(it.Action); !slices.Contains(out.Actions, word) {
			out.Actions = append(out.Actions, word)
		}
		if seen[it.Key] {
			continue
		}
		seen[it.Key] = true
		if len(out.Processes) == maxTaskProcesses {
			out.More++
			continue
		}
		out.Processes = append(out.Processes, client.TaskProcess{Namespace: it.Key.Namespace, Name: it.Key.Name})
	}

	return out
}

// actionWord is the word for an action. Our API has one word for the two actions that record a definition; BlueKing's
// API has two, and rights keep them apart.
func actionWord(a gozzard.Action) string {
	if a == gozzard.ActionUpdate {
		a = gozzard.ActionRegister
	}
	return a.String()
}
