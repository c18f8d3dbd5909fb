package gse

import (
	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/specjson"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// readName reads a namespace or the name of a process.
func readName(v strictjson.Value) string { return readChecked(v, specjson.CheckProcessName) }

// readChecked reads a name by its rule.
func readChecked(v strictjson.Value, check func(string) error) string {
	before := v.Faults().Len()
	s := v.Str()
	if v.Faults().Len() > before {
		return ""
	}
	if err := check(s); err != nil {
		v.Fault("%v", err)
	}
	return s
}

// maxNamed bounds a name that is answered for although it cannot be used.
const maxNamed = 1024

// readNamed reads the process of an item that gets a verdict of its own: names of any form that the answer and the
// record can hold.
func readNamed(v strictjson.Value) gozzard.Key {
	if !v.Object() {
		return gozzard.Key{}
	}

	read := func(name string) string {
		part := v.Get(name)
		s := part.Str()
		if len(s) > maxNamed || !gozzard.IsPlainLine(s) {
			readName(part) // adds the fault
		}
		return s
	}
	return gozzard.Key{Namespace: read("namespace"), Name: read("name")}
}

// meta is the process of a call, with its labels.
type meta struct {
	key    gozzard.Key
	labels map[string]string
}

// readMeta reads the process of a call; without withName, only its namespace.
func readMeta(v strictjson.Value, withName bool) meta {
	if !v.Object() {
		return meta{}
	}
	m := meta{key: gozzard.Key{Namespace: readName(v.Get("namespace"))}, labels: specjson.ReadLabels(v.Get("labels"))}
	if withName {
		m.key.Name = readName(v.Get("name"))
	}
	return m
}
