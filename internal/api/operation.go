package api

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/specjson"
	"github.com/gozzard/gozzard/internal/strictjson"
	"github.com/gozzard/gozzard/internal/suggest"
)

// defaultNamespace is the namespace of a document that names none.
const defaultNamespace = "default"

// registerFields are the keys of a document that registers a process.
var registerFields = append(fieldNames(reflect.TypeFor[client.RegisterRequest]()), specjson.FlatNames()...)

// maxExpect is the largest number of digests in a request: a process has few definitions that differ.
const maxExpect = 1000

// maxWait is the longest time that an operation may wait for hosts that are offline.
const maxWait = 7 * 24 * time.Hour

// actions are the actions of POST /api/v1/operations. PUT and DELETE of processes register and unregister.
var actions = []string{"start", "stop", "restart", "reload", "kill", "manage", "unmanage", "query"}

// postOperation performs an action on processes.
func (a *api) postOperation(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	return a.operate(w, r, caller, func(root *strictjson.Value) (gozzard.Item, *selection) {
		root.Only(fieldNames(reflect.TypeFor[client.OperationRequest]())...)
		item := gozzard.Item{Action: readAction(root)}
		s := a.readSelection(caller, root)
		if s.business != nil || s.processes != nil {
			return item, s
		}

		spec, labels := root.Get("spec"), root.Get("labels")
		item.Labels = specjson.ReadLabels(labels)
		if spec.Given() {
			item.Spec = readSpec(spec)
			if !s.literal() || s.all {
				spec.Fault("is only allowed with a namespace, names and hosts that are written out")
			}
		}

		return item, s
	})
}

// putProcess registers a process on hosts, or replaces its definition.
func (a *api) putProcess(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	return a.operate(w, r, caller, func(root *strictjson.Value) (gozzard.Item, *selection) {
		return a.readRegistration(caller, root)
	})
}

// readRegistration reads a document that registers a process.
func (a *api) readRegistration(caller gozzard.Caller, root *strictjson.Value) (gozzard.Item, *selection) {
	root.Only(registerFields...)
	namespace, name, labels := root.Get("namespace"), root.Get("name"), root.Get("labels")
	s := &selection{namespaces: []string{defaultNamespace}, definition: specjson.ReadDefinition(*root)}
	if namespace.Given() {
		s.namespaces[0] = requireLiteral(&namespace)
	}
	s.names = s.definition.Names(requireLiteral(&name))
	checkOrder(root, s)
	a.defaultHost(caller, root, s)
	return gozzard.Item{Action: gozzard.ActionUpdate, Labels: specjson.ReadLabels(labels),
		Spec: s.definition.Spec}, s
}

// checkOrder rejects a process that waits for itself. The hosts know the other processes, and find longer circles.
func checkOrder(root *strictjson.Value, s *selection) {
	if s.definition.Spec == nil {
		return
	}
	for _, name := range s.names {
		if last := s.names[len(s.names)-1]; len(last) > gozzard.MaxProcessNameBytes && name == last {
			v := root.Get("name")
			v.Fault("has with its number more than %d bytes", gozzard.MaxProcessNameBytes)
		}
		if slices.Contains(s.definition.Spec.After, name) {
			v := root.Get("after")
			v.Fault("%q would wait for itself", clip(name))
		}
	}
}

// defaultHost reads the hosts of a document. A document that names none means the only host that there is.
func (a *api) defaultHost(caller gozzard.Caller, root *strictjson.Value, s *selection) {
	hosts, all := root.Get("hosts"), root.Get("all")
	if hosts.Exists() || all.Exists() {
		a.readHosts(caller, root, s)
		return
	}
	known := a.Plane.Hosts(caller)
	if len(known) != 1 {
		hosts.Fault("required: the server has %d hosts. Name those of the process, such as hosts: [{ip: 10.0.0.1}]; all: true means "+
			"those that have it already", len(known))
		return
	}
	s.hosts = []gozzard.Target{{Agent: known[0].Info.Agent}}
}

// deleteProcesses removes the definitions of processes from hosts. Running processes keep running.
func (a *api) deleteProcesses(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	return a.operate(w, r, caller, func(root *strictjson.Value) (gozzard.Item, *selection) {
		root.Only(fieldNames(reflect.TypeFor[client.UnregisterRequest]())...)
		return gozzard.Item{Action: gozzard.ActionUnregister}, a.readSelection(caller, root)
	})
}

// operate reads a request, whose fields differ by route, and creates its task. A request with any fault does nothing.
func (a *api) operate(w http.ResponseWriter, r *http.Request, caller gozzard.Caller,
	read func(root *strictjson.Value) (gozzard.Item, *selection)) error {
	// Read the request and collect its faults.
	key, err := idempotencyKey(r.Header)
	if err != nil {
		return err
	}
	op := &gozzard.Operation{Caller: caller, Door: Door, IdempotencyKey: key, Adopt: true}
	var item gozzard.Item
	var s *selection
	dry := false
	body, err := readRequest(w, r, maxOperationBody, func(root *strictjson.Value) {
		item, s = read(root)
		confirm, dryRun := root.Get("confirm"), root.Get("dry_run")
		op.WaitOffline, op.Expect = readWait(root), readExpect(root)
		op.Confirm, dry = int(confirm.OptInt(0, 1, maxList)), dryRun.OptBool(false)
	})
	if err != nil {
		return err
	}
	op.RequestHash = requestHash(r, body)

	// Find the processes.
	if op.Items, err = a.items(r.Context(), caller, s, item); err != nil {
		return err
	}
	if dry {
		return a.preview(w, r, op)
	}

	return a.accept(w, r, op)
}

// readSpec reads a definition. Unknown fields are faults.
func readSpec(v strictjson.Value) *gozzard.Spec {
	return specjson.ReadSpec(v, specjson.Rules{Strict: true})
}

func readAction(root *strictjson.Value) gozzard.Action {
	v := root.Get("action")
	word := v.Str()
	if word == "" {
		return gozzard.ActionNone
	}

	action, err := gozzard.ParseAction(word) // the words of earlier versions, too
	if err == nil && slices.Contains(actions, action.String()) {
		return action
	}

	v.Fault("%v", notAnAction(word, actions))
	return gozzard.ActionNone
}

// notAnAction says that a word is no action, with the action that is probably meant or with all known ones.
func notAnAction(word string, known []string) error {
	if near := suggest.Nearest(word, known); near != "" {
		return fmt.Errorf("%q is not an action, did you mean %q? All actions: %s", clip(word), near,
			strings.Join(known, ", "))
	}
	return fmt.Errorf("%q is not an action; the actions are %s", clip(word), strings.Join(known, ", "))
}

// readExpect reads the digests of the definitions that a request may replace; nil if it does not say.
func readExpect(root *strictjson.Value) []string {
	v := root.Get("expect")
	if !v.Given() {
		return nil
	}
	list := make([]string, 0, 1)
	v.OptList(maxExpect, func(e *strictjson.Value) { list = append(list, e.Str()) })
	return list
}

// readWait reads how long an operation waits for hosts that are offline; 0 means that their attempts fail at once.
func readWait(root *strictjson.Value) time.Duration {
	offline, seconds := root.Get("when_offline"), root.Get("wait_seconds")
	switch word := offline.OptStr(); word {
	case "wait":
		return time.Duration(seconds.OptInt(3600, 1, int64(maxWait/time.Second))) * time.Second
	case "", "fail":
		if seconds.Given() {
			seconds.Fault(`is only allowed with "when_offline": "wait"`)
		}
	default:
		offline.Fault(`must be "fail" or "wait", is %q`, clip(word))
	}
	return 0
}

// requireName reads a namespace or a name that is not a pattern.
func requireName(v *strictjson.Value) string {
	s := v.Str()
	if s != "" {
		if fault := checkName(s); fault != "" {
			v.Fault("%s", fault)
		}
	}
	return s
}

// requireLiteral is requireName for a process that is defined here. In later requests a * stands for any text, so a
// name that has one could mean other processes, too. One that looks like an option is hard to type.
func requireLiteral(v *strictjson.Value) string {
	s := requireName(v)
	if isPattern(s) {
		v.Fault("has a *, which stands for any text in this API: choose another name")
	}
	if strings.HasPrefix(s, "-") {
		v.Fault("begins with -, as options of commands do: choose another name")
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
