package api

import (
	"crypto/sha256"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/specjson"
	"github.com/gozzard/gozzard/internal/strictjson"
	"github.com/gozzard/gozzard/internal/suggest"
	"github.com/gozzard/gozzard/internal/taskname"
)

// maxWait bounds how long an operation may wait for hosts that are offline.
const maxWait = 7 * 24 * time.Hour

// accepted is the answer to everything that makes a task.
type accepted struct {
	TaskID  string `json:"task_id"` // as taskname writes it
	Targets int    `json:"targets"`
}

// actions are those that POST /api/v1/operations takes; definitions come and go by PUT and DELETE of processes.
var actions = []string{"start", "stop", "restart", "reload", "kill", "host", "unhost", "query"}

// postOperation starts, stops or otherwise drives processes.
func (a *api) postOperation(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	return a.operate(w, r, caller, func(root *strictjson.Value) (gozzard.Item, *selector) {
		root.Only("action", "namespace", "names", "hosts", "all", "biz", "env", "sets", "modules", "expression",
			"spec", "labels", "when_offline", "wait_seconds", "confirm")
		item := gozzard.Item{Action: readAction(root)}
		s := a.readSelector(caller, root)
		if s.scope != nil {
			return item, s
		}

		spec, labels := root.Get("spec"), root.Get("labels")
		item.Labels = specjson.ReadLabels(labels)

		if spec.Given() {
			item.Spec = readSpec(spec)
			if !s.literal() || s.all {
				spec.Fault("needs a namespace, names and hosts that are written out")
			}
		}

		return item, s
	})
}

// putProcess registers a process on hosts, or replaces its definition.
func (a *api) putProcess(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	return a.operate(w, r, caller, func(root *strictjson.Value) (gozzard.Item, *selector) {
		root.Only("namespace", "name", "labels", "hosts", "all", "spec", "when_offline", "wait_seconds")
		namespace, name, labels, spec := root.Get("namespace"), root.Get("name"), root.Get("labels"), root.Get("spec")
		s := &selector{namespace: requireName(&namespace), names: []string{requireName(&name)}}
		a.readHosts(caller, root, s)
		return gozzard.Item{Action: gozzard.ActionUpdate, Labels: specjson.ReadLabels(labels), Spec: readSpec(spec)}, s
	})
}

// deleteProcesses makes hosts forget processes. What runs goes on running.
func (a *api) deleteProcesses(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	return a.operate(w, r, caller, func(root *strictjson.Value) (gozzard.Item, *selector) {
		root.Only("namespace", "names", "hosts", "all", "biz", "env", "sets", "modules", "expression", "when_offline",
			"wait_seconds")
		return gozzard.Item{Action: gozzard.ActionUnregister}, a.readSelector(caller, root)
	})
}

// operate reads a request with a reader of its own and makes the task it asks for. Nothing is done unless all of it
// is right.
func (a *api) operate(w http.ResponseWriter, r *http.Request, caller gozzard.Caller,
	read func(root *strictjson.Value) (gozzard.Item, *selector)) error {
	key, err := idempotencyKey(r.Header)
	if err != nil {
		return err
	}

	body, err := readBody(w, r)
	if err != nil {
		return err
	}

	var faults strictjson.Faults
	root, err := readObject(body, &faults)
	if err != nil {
		return err
	}

	item, s := read(&root)
	wait, confirm := readWait(&root), root.Get("confirm")
	confirmed := int(confirm.OptInt(0, 1, maxList))

	if err := faults.Err(); err != nil {
		return err
	}

	items, err := a.items(r.Context(), caller, s, item)
	if err != nil {
		return err
	}

	task, err := a.Plane.Operate(r.Context(), &gozzard.Operation{
		Caller: caller, Door: Door, Items: items, IdempotencyKey: key, RequestHash: requestHash(r, body),
		WaitOffline: wait, Confirm: confirmed,
	})
	if err != nil {
		return err
	}

	w.Header().Set("Location", "/api/v1/tasks/"+taskname.Of(task.ID))
	return answer(w, http.StatusAccepted, accepted{TaskID: taskname.Of(task.ID), Targets: task.Targets})
}

// readSpec reads a definition in the words that BlueKing callers use for it, and no others.
func readSpec(v strictjson.Value) *gozzard.Spec {
	return specjson.ReadSpec(v, specjson.Rules{Strict: true})
}

func readAction(root *strictjson.Value) gozzard.Action {
	v := root.Get("action")
	word := v.Str()
	if word == "" {
		return gozzard.ActionNone
	}

	for _, known := range actions {
		if word == known {
			action, err := gozzard.ParseAction(word)
			if err != nil {
				v.Fault("%s", err)
			}
			return action
		}
	}

	if near := suggest.Nearest(word, actions); near != "" {
		v.Fault("%q is not an action, did you mean %q?", clip(word), near)
	} else {
		v.Fault("%q is not an action, known are %s", clip(word), strings.Join(actions, ", "))
	}

	return gozzard.ActionNone
}

func (a *api) readSelector(caller gozzard.Caller, root *strictjson.Value) *selector {
	s := &selector{scope: a.bodyScope(caller, root)}
	if s.scope != nil {
		return s
	}

	namespace, names := root.Get("namespace"), root.Get("names")
	if s.namespace = namespace.OptStr(); s.namespace != "" {
		if fault := checkGlob(s.namespace); fault != "" {
			namespace.Fault("%s", fault)
		}
	}

	seen := make(map[string]struct{})
	if n := names.List(maxList, func(e *strictjson.Value) {
		name := e.Str()
		if name == "" {
			return
		}
		if fault := checkGlob(name); fault != "" {
			e.Fault("%s", fault)
		}
		if _, twice := seen[name]; !twice {
			seen[name] = struct{}{}
			s.names = append(s.names, name)
		}
	}); n == 0 && names.Given() {
		names.Fault(`required, is empty; "*" is every name`)
	}

	a.readHosts(caller, root, s)
	return s
}

// readWait reads what becomes of hosts that are offline.
func readWait(root *strictjson.Value) time.Duration {
	offline, seconds := root.Get("when_offline"), root.Get("wait_seconds")
	switch word := offline.OptStr(); word {
	case "wait":
		return time.Duration(seconds.OptInt(3600, 1, int64(maxWait/time.Second))) * time.Second
	case "", "fail":
		if seconds.Given() {
			seconds.Fault(`is only for "when_offline": "wait"`)
		}
	default:
		offline.Fault(`must be "fail" or "wait", is %q`, clip(word))
	}
	return 0
}

// requireName is a namespace or name that is written out.
func requireName(v *strictjson.Value) string {
	s := v.Str()
	if s != "" {
		if fault := checkName(s); fault != "" {
			v.Fault("%s", fault)
		}
	}
	return s
}

// idempotencyKey reads the header by which a repeated request is recognised.
func idempotencyKey(h http.Header) (string, error) {
	keys := h.Values("Idempotency-Key")
	if len(keys) == 0 {
		return "", nil
	}

	key := keys[0]
	bad := len(keys) > 1 || key == "" || len(key) > 255
	for i := 0; i < len(key) && !bad; i++ {
		bad = key[i] < 0x20 || key[i] > 0x7e
	}

	if bad {
		return "", &gozzard.Error{Kind: gozzard.ErrInvalid,
			Faults: []gozzard.Fault{{Path: "Idempotency-Key",
				Text: "must be one header of 1 to 255 printable ASCII characters"}}}
	}

	return key, nil
}

// requestHash covers method and path too: a key of one call cannot be used for another.
func requestHash(r *http.Request, body []byte) (sum [32]byte) {
	h := sha256.New()
	_, _ = io.WriteString(h, r.Method+" "+r.URL.Path+"\n") // a hash takes everything
	_, _ = h.Write(body)
	h.Sum(sum[:0])
	return sum
}
