package gsekit

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/gozzard/gozzard/internal/record"
)

// option is one of the values that a page offers.
type option struct {
	ID   any    `json:"id"`
	Name string `json:"name"`
}

type jobChoices struct {
	Objects []option `json:"job_object_choices"`
	Actions []option `json:"job_action_choices"`
	States  []option `json:"status_choices"`
}

// jobFilterChoices are the values that jobs can be filtered by.
func (s *server) jobFilterChoices(_ context.Context, r *request) (any, error) {
	if err := r.err(); err != nil {
		return nil, err
	}
	l := r.lang
	out := jobChoices{Objects: []option{{objectConfig, l.say(sayConfigFile)}, {objectProcess, l.say(sayProcess)}}, States: l.stateOptions()}
	for _, a := range []struct {
		word string
		name phrase
	}{
		{"generate", sayGenerate}, {"release", sayRelease}, {"diff", sayDiff}, {"start", sayStart}, {"stop", sayStop},
		{"restart", sayRestart}, {"reload", sayReload}, {"force_stop", sayForceStop}, {"set_auto", saySetAuto},
		{"unset_auto", sayUnsetAuto},
	} {
		out.Actions = append(out.Actions, option{a.word, l.say(a.name)})
	}
	return out, nil
}

func (l speech) stateOptions() []option {
	return []option{{record.JobPending, l.say(sayPending)}, {record.JobRunning, l.say(sayRunning)},
		{record.JobSucceeded, l.say(saySucceeded)}, {record.JobFailed, l.say(sayFailed)}, {record.JobIgnored, l.say(sayIgnored)}}
}

type processChoices struct {
	Clouds  []option `json:"bk_cloud_id_choices"`
	States  []option `json:"process_status_choices"`
	Managed []option `json:"is_auto_choices"`
}

// processFilterChoices are the values that processes can be filtered by.
func (s *server) processFilterChoices(ctx context.Context, r *request) (any, error) {
	if err := r.err(); err != nil {
		return nil, err
	}
	rec, err := s.business(ctx, r)
	if err != nil {
		return nil, err
	}
	l := r.lang
	out := processChoices{Clouds: []option{}, States: []option{{1, l.say(sayIsRunning)}, {2, l.say(sayIsStopped)}},
		Managed: []option{{false, l.say(sayNotManaged)}, {true, l.say(sayManaged)}}}
	for _, c := range rec.Business.Clouds {
		out.Clouds = append(out.Clouds, option{c.ID, c.Name})
	}
	return out, nil
}

type taskChoices struct {
	Sets      []option `json:"set"`
	Modules   []option `json:"module"`
	Processes []option `json:"process"`
	States    []option `json:"status_choices"`
}

// jobTaskFilterChoices are the values that the tasks of a job can be filtered by.
func (s *server) jobTaskFilterChoices(ctx context.Context, r *request) (any, error) {
	job, err := s.find(ctx, r)
	if err != nil {
		return nil, err
	}
	sets, modules, processes := map[int]string{}, map[int]string{}, map[string]string{}
	err = s.eachTask(ctx, r, record.JobTaskFilter{Job: job.ID}, func(t *record.JobTask) {
		var info processInfo
		if json.Unmarshal(t.Info, &info) != nil { // another door created the job: there are no names
			info = processInfo{}
		}
		sets[t.Set], modules[t.Module], processes[t.Name] = info.Set.Name, info.Module.Name, t.Name // pages filter by aliases
	})
	if err != nil {
		return nil, err
	}
	return taskChoices{Sets: options(sets), Modules: options(modules), Processes: options(processes), States: r.lang.stateOptions()}, nil
}

// options are ids with their names, by id.
func options[K cmp.Ordered](names map[K]string) []option {
	out := []option{}
	for _, id := range slices.Sorted(maps.Keys(names)) {
		out = append(out, option{id, names[id]})
	}
	return out
}

type userInfo struct {
	ID        string  `json:"id"`
	Name      string  `json:"username"`
	Time      float64 `json:"timestamp"`
	Superuser bool    `json:"is_superuser"`
}

// userInfo is the user of the request.
func (s *server) userInfo(_ context.Context, r *request) (any, error) {
	if err := r.err(); err != nil {
		return nil, err
	}
	return userInfo{r.Caller.User, r.Caller.User, float64(time.Now().UnixMilli()) / 1000, r.Caller.Rights.All()}, nil
}
