package conform

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"
)

// Vars are values that requests contain, as {{name}}. A text that is only a name becomes the value with its type.
type Vars map[string]any

// NewProcess are the values of a process that does not exist yet, under a name that nobody else has. Its pid file is in
// a folder that means the same in every shell.
func NewProcess(account, folder string) Vars {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24: it ends the program instead
	name := "conform-" + hex.EncodeToString(b[:])
	file := folder + "/" + name + ".pid"
	return Vars{"namespace": "conform", "name": name, "account": account, "folder": folder, "pidfile": file,
		"start": "sleep 1000 >/dev/null 2>&1 & echo $! >" + file,
		"stop":  "kill $(cat " + file + ") ; rm -f " + file}
}

// text puts values into a text.
func (v Vars) text(s string) string {
	for name, value := range v {
		s = strings.ReplaceAll(s, "{{"+name+"}}", fmt.Sprint(value))
	}
	return s
}

// fill puts values into everything of a decoded JSON value, also into keys of objects.
func (v Vars) fill(x any) any {
	switch x := x.(type) {
	case string:
		name, whole := strings.CutPrefix(x, "{{")
		if name, end := strings.CutSuffix(name, "}}"); whole && end {
			if value, ok := v[name]; ok {
				return value
			}
		}
		return v.text(x)
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = v.fill(x[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(x))
		for key := range maps.Keys(x) {
			out[v.text(key)] = v.fill(x[key])
		}
		return out
	}
	return x
}

// save takes the value at a path of keys from an answer.
func (v Vars) save(name, path string, answer any) {
	for key := range strings.SplitSeq(path, ".") {
		m, _ := answer.(map[string]any)
		answer = m[key]
	}
	if f, ok := answer.(float64); ok && f == float64(int64(f)) {
		answer = int64(f)
	}
	if answer != nil {
		v[name] = answer
	}
}
