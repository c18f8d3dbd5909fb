package topology

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gozzard/gozzard/internal/yamldoc"
)

// MaxAttributes is how many attributes a set, module or host may have.
const MaxAttributes = 100

// Limits of each of them.
const (
	maxExtraName = 64      // bytes of a name
	maxExtraText = 4 << 10 // bytes of a text
)

// Extra has attributes that only templates use, such as a zone: texts by their names. It is an object in JSON with sorted
// names, so that two are equal if their texts are, and "" if there are none.
type Extra string

// NewExtra makes attributes from texts by their names.
func NewExtra(texts map[string]string) Extra {
	if len(texts) == 0 {
		return ""
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(texts); err != nil {
		panic(err) // a map of texts can always be written
	}
	return Extra(strings.TrimSuffix(b.String(), "\n"))
}

// Texts are the attributes by their names.
func (e Extra) Texts() map[string]string {
	texts := map[string]string{}
	if e != "" {
		_ = json.Unmarshal([]byte(e), &texts) // Check finds what is no such object
	}
	return texts
}

// computed are the names of attributes that a set, module or host has by itself.
var computed = map[string][]string{
	"set":    {"bk_set_id", "SetID", "bk_set_name", "SetName", "bk_set_env", "SetEnviType"},
	"module": {"bk_module_id", "ModuleID", "bk_module_name", "ModuleName"},
	"host":   {"bk_host_id", "bk_host_innerip", "InnerIP", "bk_cloud_id"},
}

// reserved are names that templates have for other things.
var reserved = map[string]bool{"cc": true, "this": true, "global_variables": true, "HELP": true, "Scope": true, "InstID": true,
	"InstID0": true, "LocalInstID": true, "LocalInstID0": true, "FuncID": true, "FuncName": true, "ProcName": true,
	"WorkPath": true, "PidFile": true, "bk_process_id": true, "bk_process_name": true}

// extra checks the attributes of a set, a module or a host.
func (c *checker) extra(e Extra, kind string, path func() string) {
	if e == "" {
		return
	}
	texts := map[string]string{}
	if err := json.Unmarshal([]byte(e), &texts); err != nil || NewExtra(texts) != e {
		c.fault(path()+".attributes", "is not an object with texts")
		return
	}
	if len(texts) > MaxAttributes {
		c.fault(path()+".attributes", "has %d attributes, at most %d are allowed", len(texts), MaxAttributes)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if why := AttributeFault(kind, name, texts[name]); why != "" {
			c.fault(path()+".attributes."+shown(name), "%s", why)
		}
	}
}

// AttributeFault says why a set, a module or a host cannot have an attribute with this name and text, or "".
func AttributeFault(kind, name, text string) string {
	if why := checkExtraName(name, kind); why != "" {
		return why
	}
	return checkLine(text, maxExtraText)
}

// CommonAttributes are the attributes that every set, module or host of CMDB has and templates may use, each with the name that
// older templates use for it, "" if there is none.
func CommonAttributes(kind string) [][2]string { return slices.Clone(common[kind]) }

// checkExtraName says what is wrong with the name of an attribute, or "". It must be a name of Python, because templates use
// it as one.
func checkExtraName(name, kind string) string {
	for _, known := range computed[kind] {
		if name == known {
			return fmt.Sprintf("a %s has this attribute by itself; leave it out", kind)
		}
	}
	if reserved[name] {
		return "templates use this name for something else; take another one"
	}
	if len(name) > maxExtraName {
		return fmt.Sprintf("the name has %d bytes, at most %d are allowed", len(name), maxExtraName)
	}
	for i := range len(name) {
		ch := name[i]
		letter := ch == '_' || ch >= 'a' && ch <= 'z' || ch >= 'A' && ch <= 'Z'
		if !letter && (i == 0 || ch < '0' || ch > '9') {
			return "a name has letters, digits and _, and does not begin with a digit"
		}
	}
	if name == "" {
		return "the name is empty"
	}
	return ""
}

// extra reads attributes: a mapping of texts. A null is none.
func (d *decoder) extra(n *yamldoc.Node, path string) Extra {
	switch n.Kind {
	case yamldoc.Null:
		return ""
	case yamldoc.Mapping:
	default:
		d.fault(n, path, "must be a mapping, is %s", n.Kind)
		return ""
	}
	texts := make(map[string]string, len(n.Kids))
	for i := range n.Kids {
		v := &n.Kids[i]
		texts[v.Key] = d.text(v, path+"."+shown(v.Key))
	}
	text := string(NewExtra(texts))
	if known, ok := d.texts[text]; ok { // hosts of one rack have the same attributes
		return Extra(known)
	}
	d.texts[text] = text
	return Extra(text)
}

// extra writes attributes in one line: JSON is YAML.
func (w *writer) extra(e Extra) {
	if e != "" {
		w.key("attributes")
		w.WriteString(" " + string(e) + "\n")
	}
}
