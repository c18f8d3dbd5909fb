package job

import (
	"bytes"
	"context"
	"fmt"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/strictjson"
	"github.com/gozzard/gozzard/internal/taskname"
)

type taskData struct {
	TaskID string `json:"bk_gse_taskid"`
	Oldest string `json:"gse_task_id,omitempty"` // for a request with the names before version 2
}

// handler serves one of the calls that operate processes.
func (s *server) handler(f form) func(ctx context.Context, c *blueking.Call) (any, error) {
	return func(ctx context.Context, c *blueking.Call) (any, error) {
		r := &reader{request: request{s: s, c: c, form: f}, seen: map[procOnHost]*gozzard.Spec{}}
		items, err := r.read()
		if err != nil {
			return nil, err
		}
		task, err := s.plane.Operate(ctx, &gozzard.Operation{
			Caller: c.Caller, Door: f.door, Items: items, IdempotencyKey: c.IdempotencyKey, RequestHash: c.Hash,
		})
		if err != nil {
			return nil, err
		}

		out := taskData{TaskID: taskname.Of(task.ID)}
		if r.oldest {
			out.Oldest = out.TaskID
		}
		return out, nil
	}
}

// reader reads the processes of one request.
type reader struct {
	request
	items []gozzard.Item
	seen  map[procOnHost]*gozzard.Spec
	total int
}

type procOnHost struct {
	key  gozzard.Key
	addr gozzard.HostAddr
}

func (r *reader) read() ([]gozzard.Item, error) {
	biz, action := r.business(), r.action()
	list := r.get(&r.c.Body, "process_infos", "proc_list")
	if !list.Given() || list.IsList() && list.Len() == 0 {
		r.violate(&list, "at least one process is required")
	} else {
		list.List(r.s.maxHosts, func(v *strictjson.Value) { r.process(v, biz.namespace(), action) })
	}
	if r.total > r.s.maxHosts {
		list.Fault("name %d hosts together, at most %d are allowed", r.total, r.s.maxHosts)
	}
	return r.items, r.err()
}

// process reads one process and its hosts.
func (r *reader) process(v *strictjson.Value, namespace string, action gozzard.Action) {
	if !v.Object() {
		return
	}

	// Read the process and its hosts.
	before := r.c.Faults.Len()
	p := r.definitionOf(v)
	hosts := r.hosts(v.Get("ip_list"))

	if r.c.Faults.Len() > before {
		return
	}

	// Make a target of each host, once.
	it := gozzard.Item{Action: action, Key: p.key(namespace), Labels: p.labels, Spec: p.spec}
	for _, h := range hosts {
		if r.again(v, it.Key, h, p.spec) {
			continue
		}
		t := gozzard.Target{Addr: h.addr, ResultKey: p.valueKey + ":" + h.name()}
		if action.RunsCommand() {
			t.Refused = r.s.refuse(r.c.Caller, t, p.spec.Control.Shell)
		}
		it.Targets = append(it.Targets, t)
	}

	// Count the hosts.
	if r.total += len(it.Targets); r.total > r.s.maxHosts || len(it.Targets) == 0 {
		return // the caller of read reports too many hosts
	}

	r.items = append(r.items, it)
}

// again reports whether the request has the same process on the same host before: one attempt is enough. The same
// process with another definition is rejected.
func (r *reader) again(v *strictjson.Value, key gozzard.Key, h host, spec *gozzard.Spec) bool {
	id := procOnHost{key, h.addr}
	first, known := r.seen[id]
	if !known {
		r.seen[id] = spec
		return false
	}
	if first != spec && !bytes.Equal(gozzard.EncodeSpec(first), gozzard.EncodeSpec(spec)) {
		v.Fault("is defined in another way for %s by an earlier process of the same path and name", h.name())
	}
	return true
}

// refuse rejects a script that cannot run on the system of a known host. An unknown host gets its verdict elsewhere.
func (s *server) refuse(caller gozzard.Caller, t gozzard.Target, shell gozzard.Shell) *gozzard.Outcome {
	if shell != gozzard.ShellBat && shell != gozzard.ShellPS1 {
		return nil
	}
	host, known := s.plane.Resolve(caller, t)
	if !known || host.Info.OS == "" || shell.RunsOn(host.Info.OS) {
		return nil
	}
	return &gozzard.Outcome{Code: gozzard.CodeRefused,
		Message: fmt.Sprintf("cmd_shell_ext %s is for windows, this host has %s", shell, host.Info.OS)}
}
