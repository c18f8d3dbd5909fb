package topology

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/yamldoc"
)

// Flat reads the keys that definitions of other doors have too, such as env and memory. The reader is given to Parse, because
// this package knows businesses only. Without it those keys are unknown.
type Flat struct {
	Names []string
	// Read reads a JSON object with such keys.
	Read func(object []byte) (spec *gozzard.Spec, instances int, faults []gozzard.Fault)
}

// twins are the flat keys that are another name of an attribute, which has the value.
var twins = map[string]string{"command": "start_cmd", "stop": "stop_cmd", "restart_command": "restart_cmd",
	"reload": "reload_cmd", "kill": "face_stop_cmd", "folder": "work_path", "proc_name": "func_name",
	"start_check": "start_check_secs", instancesKey: "proc_num"}

const (
	instancesKey     = "instances"
	instanceVariable = "INSTANCE"
)

// keys are the flat keys that are no attribute of a process.
func (f Flat) keys() []string {
	return slices.DeleteFunc(slices.Clone(f.Names), func(name string) bool { return slices.Contains(processKeys, name) })
}

// flat reads the flat keys of a process, and sets its attributes by them.
func (d *decoder) flat(n *yamldoc.Node, path string, given []*yamldoc.Node, p *Process) {
	if len(given) == 0 {
		return
	}

	// Reject what is given twice.
	object := map[string]json.RawMessage{}
	for _, v := range given {
		if twin := twins[v.Key]; twin != "" && n.Get(twin) != nil {
			d.fault(v, path+"."+v.Key, "is given twice: %s is another name of it. Remove one of them", twin)
			return
		}
		object[v.Key] = toJSON(v)
	}

	// Read them.
	text, err := json.Marshal(object)
	if err != nil {
		d.fault(n, path, "cannot be read: %v", err)
		return
	}
	spec, instances, faults := d.reader.Read(text)
	for _, f := range faults {
		d.reported[path+"."+f.Path] = true
		d.faults = append(d.faults, lineFault{line(n, f.Path), gozzard.Fault{Path: path + "." + f.Path, Text: f.Text}})
	}
	if len(faults) > 0 || spec == nil {
		return
	}

	// Set the attributes.
	for _, v := range given {
		p.set(twins[v.Key], spec, instances)
	}
	if p.FuncName == "" && p.Start != "" && n.Get("start_cmd") == nil {
		p.FuncName = spec.Identity.ProcName
	}

	// Keep the rest as it is written, and what it means.
	maps.DeleteFunc(object, func(key string, _ json.RawMessage) bool { return twins[key] != "" && key != instancesKey })
	if len(object) == 0 {
		return
	}
	if text, err = json.Marshal(object); err != nil {
		d.fault(n, path, "cannot be read: %v", err)
		return
	}
	p.Native, p.More = string(text), string(gozzard.EncodeSpec(withoutAttributes(spec)))
}

// withoutAttributes removes what the attributes of a process have.
func withoutAttributes(s *gozzard.Spec) *gozzard.Spec {
	rest := *s
	rest.Identity = gozzard.Identity{LogPath: s.Identity.LogPath}
	c := &rest.Control
	c.Start, c.Stop, c.Restart, c.Reload, c.Kill = "", "", "", "", ""
	rest.Policy.StartCheckSecs = gozzard.DefaultPolicy().StartCheckSecs
	return &rest
}

// set sets the attribute that a flat key is another name of.
func (p *Process) set(attribute string, spec *gozzard.Spec, instances int) {
	switch attribute {
	case "start_cmd":
		p.Start = spec.Control.Start
	case "stop_cmd":
		p.Stop = spec.Control.Stop
	case "restart_cmd":
		p.Restart = spec.Control.Restart
	case "reload_cmd":
		p.Reload = spec.Control.Reload
	case "face_stop_cmd":
		p.ForceStop = spec.Control.Kill
	case "work_path":
		p.WorkPath = spec.Identity.SetupPath
	case "func_name":
		p.FuncName = spec.Identity.ProcName
	case "start_check_secs":
		p.StartCheckSecs = spec.Policy.StartCheckSecs
	case "proc_num":
		p.Num = instances
	}
}

// more is the definition with what the flat keys of a process say. Render renders a text.
func (p *Process) more(n Naming, render func(attribute, text string) string) gozzard.Spec {
	if p.More == "" {
		return gozzard.Spec{Policy: gozzard.DefaultPolicy()}
	}
	spec, err := gozzard.DecodeSpec([]byte(p.More))
	if err != nil { // a newer program has written it
		return gozzard.Spec{Policy: gozzard.DefaultPolicy()}
	}
	for name, value := range spec.Exec.Env {
		spec.Exec.Env[name] = render("env."+name, value)
	}
	if p.hasInstances() {
		if spec.Exec.Env == nil {
			spec.Exec.Env = map[string]string{}
		}
		spec.Exec.Env[instanceVariable] = strconv.Itoa(n.Local)
	}
	return *spec
}

// hasInstances reports whether the document has the number of instances as a flat key.
func (p *Process) hasInstances() bool {
	_, has := p.native()[instancesKey]
	return has
}

// native are the flat keys with their values as JSON.
func (p *Process) native() map[string]json.RawMessage {
	if p.Native == "" {
		return nil
	}
	var keys map[string]json.RawMessage
	if json.Unmarshal([]byte(p.Native), &keys) != nil {
		return nil
	}
	return keys
}

// plainNumber is how a number looks that JSON and YAML read alike.
var plainNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,17})([.][0-9]{1,17})?$`)

// toJSON writes a value as JSON, with the keys of mappings in order.
func toJSON(n *yamldoc.Node) json.RawMessage {
	var v any
	truth, isTruth := n.Bool()
	switch {
	case n.Kind == yamldoc.Null:
	case isTruth:
		v = truth
	case n.Kind == yamldoc.Plain && plainNumber.MatchString(n.Text):
		v = json.RawMessage(n.Text)
	case n.Kind == yamldoc.List:
		list := make([]json.RawMessage, len(n.Kids))
		for i := range n.Kids {
			list[i] = toJSON(&n.Kids[i])
		}
		v = list
	case n.Kind == yamldoc.Mapping:
		object := map[string]json.RawMessage{}
		for i := range n.Kids {
			object[n.Kids[i].Key] = toJSON(&n.Kids[i])
		}
		v = object
	default:
		v = n.Text
	}
	b, err := json.Marshal(v)
	if err != nil { // texts, numbers and truth values can be encoded
		return json.RawMessage("null")
	}
	return b
}
