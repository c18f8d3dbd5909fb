package importer

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/specjson"
)

// draft is a definition that is being made.
type draft struct {
	res    *Result
	proc   Process
	values map[string]any // by key; parts have names such as restart.max
	env    map[string]string
	out    bool   // it is left out
	path   string // of its program
	from   entry  // the key that names the program
}

func newDraft(res *Result, file string, line int, name string) *draft {
	return &draft{res: res, proc: Process{Name: name, Source: name, File: file, Line: line, Namespace: defaultNamespace},
		values: map[string]any{}, env: map[string]string{}}
}

// entry is a key of a configuration with its value and its place.
type entry struct {
	file  string
	line  int
	key   string
	value string
}

// note reports something about the process. Level LeftOut leaves it out.
func (d *draft) note(level Level, e entry, reason, advice string) {
	if level == LeftOut {
		d.out = true
	}
	if e.file == "" {
		e.file = d.proc.File
	}
	if e.line == 0 {
		e.line = d.proc.Line
	}
	d.res.note(Note{Level: level, File: e.file, Line: e.line, Process: d.proc.Name, Key: e.key, Value: e.value, Reason: reason,
		Advice: advice})
}

// set gives a key of the document its value.
func (d *draft) set(key string, value any) { d.values[key] = value }

// seconds gives a key a duration. Parts of a second are rounded up.
func (d *draft) seconds(key string, n float64) {
	d.set(key, durationText(int64(math.Ceil(min(max(n, 0), maxSeconds)))))
}

const maxSeconds = 86400 // the longest time that a definition can have

func durationText(n int64) string {
	switch {
	case n >= 3600 && n%3600 == 0:
		return strconv.FormatInt(n/3600, 10) + "h"
	case n >= 120 && n%60 == 0:
		return strconv.FormatInt(n/60, 10) + "m"
	}
	return strconv.FormatInt(n, 10) + "s"
}

// size gives a key a number of bytes.
func (d *draft) size(key string, n int64) { d.set(key, sizeText(n)) }

func sizeText(n int64) any {
	for i, unit := range []string{"T", "G", "M", "K"} {
		if shift := 40 - 10*i; n > 0 && n%(1<<shift) == 0 {
			return strconv.FormatInt(n>>shift, 10) + unit
		}
	}
	return n
}

// program gives the command as a program with its arguments.
func (d *draft) program(e entry, words []string) {
	if len(words) == 0 || words[0] == "" {
		d.note(LeftOut, e, "the command is empty", "")
		return
	}
	list := make([]any, len(words))
	for i, w := range words {
		list[i] = w
	}
	d.set("command", list)
	d.procName(e, words)
}

// procName gives the name of the program, if it cannot be read from the command or differs from it.
func (d *draft) procName(e entry, words []string) {
	name := runsAs(words)
	d.path, d.from = words[0], e
	switch {
	case name == "":
		d.note(LeftOut, e, "the name of the program cannot be read from the command",
			"write the definition by hand, with proc_name")
	case name != path.Base(words[0]) || !plainName(name):
		d.set("proc_name", name)
	}
}

// wrappers are programs that become another program, which their arguments name.
var wrappers = map[string]bool{"env": true, "nice": true, "nohup": true, "setsid": true, "exec": true, "ionice": true,
	"chrt": true, "taskset": true, "stdbuf": true, "chpst": true, "setuidgid": true, "gosu": true, "command": true}

// runsAs is the name of the program that a command becomes. It is "" if the words do not say it.
func runsAs(words []string) string {
	for len(words) > 0 {
		base := path.Base(words[0])
		if !wrappers[base] {
			if base == "/" || base == "." || base == ".." {
				return ""
			}
			return base
		}
		words = words[1:]
		for len(words) > 0 && (strings.HasPrefix(words[0], "-") || strings.Contains(words[0], "=") || isDigits(words[0])) {
			words = words[1:]
		}
		if base == "chpst" || base == "setuidgid" || base == "gosu" || base == "taskset" || base == "chrt" {
			return "" // they have arguments that are not flags
		}
	}
	return ""
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// plainName reports whether the server reads the name of the program from the command by itself.
func plainName(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_.:,@%+-", r)
	})
}

// account gives the account that the process runs as.
func (d *draft) account(e entry, name string) {
	if isDigits(name) && name != "0" {
		d.note(LeftOut, e, "the account is a number, and a definition has a name", "give the name of the account")
		return
	}
	if name == "0" {
		name = "root"
	}
	d.set("user", name)
}

// finish adds the process to the result, unless it is left out.
func (d *draft) finish(w *World) {
	if w.Namespace != "" {
		d.proc.Namespace = w.Namespace
	}
	if w.Script != nil && path.IsAbs(d.path) && w.Script(d.path) {
		d.note(Check, d.from, "the program is a script, which may become another program",
			"if it does, give the name of that program as proc_name: ps -o comm shows it")
	}
	for _, name := range slices.Sorted(maps.Keys(d.env)) {
		if isSecret.MatchString(name) && d.env[name] != "" {
			d.note(Security, entry{key: name}, "the server stores the variables of a definition, and people with rights can read them",
				"if this is a secret, put it into a file on the host and name that file as env_file")
		}
	}
	if len(d.env) > 0 {
		d.dropOwnVariables()
		d.set("env", maps.Clone(d.env))
	}
	if d.out {
		return
	}

	d.proc.Fields = d.fields()
	if err := check(&d.proc); err != nil {
		reason := err.Error()
		var e *gozzard.Error
		if errors.As(err, &e) && len(e.Faults) > 0 {
			reason = e.Faults[0].Path + ": " + e.Faults[0].Text
		}
		d.note(LeftOut, entry{}, "its definition would be rejected: "+reason, "write the definition by hand")
		return
	}
	for i := range d.res.Processes {
		if p := &d.res.Processes[i]; p.Name == d.proc.Name && p.Namespace == d.proc.Namespace {
			d.note(LeftOut, entry{}, "another process has the same name", "give one of them another name, or import them with different --namespace")
			return
		}
	}
	if len(d.res.Processes) >= maxProcesses {
		d.note(LeftOut, entry{}, "the limit of "+strconv.Itoa(maxProcesses)+" processes is reached", "import fewer files at a time")
		return
	}
	d.res.Processes = append(d.res.Processes, d.proc)
}

var isSecret = regexp.MustCompile(`(?i)SECRET|PASSWORD|PASSWD|TOKEN|PRIVATE|_KEY$|^KEY$|CREDENTIAL`)

// dropOwnVariables removes the variables that Gozzard sets.
func (d *draft) dropOwnVariables() {
	for _, name := range slices.Sorted(maps.Keys(d.env)) {
		if strings.HasPrefix(name, "GOZZARD_") {
			delete(d.env, name)
			d.note(Check, entry{key: name}, "names that begin with GOZZARD_ are set by Gozzard", "give the variable another name")
		}
	}
}

// fields are the keys in the order of the page, parts inside their objects.
func (d *draft) fields() []specjson.Field {
	place := map[string]int{}
	for i, k := range specjson.Keys() {
		place[k.Name] = i
	}
	names := slices.SortedFunc(maps.Keys(d.values), func(a, b string) int { return cmp.Compare(place[a], place[b]) })

	var list []specjson.Field
	for _, name := range names {
		whole, part, inside := strings.Cut(name, ".")
		switch {
		case !inside:
			list = append(list, specjson.Field{Key: name, Value: d.values[name]})
		case len(list) > 0 && list[len(list)-1].Key == whole:
			inner := list[len(list)-1].Value.([]specjson.Field)
			list[len(list)-1].Value = append(inner, specjson.Field{Key: part, Value: d.values[name]})
		default:
			list = append(list, specjson.Field{Key: whole, Value: []specjson.Field{{Key: part, Value: d.values[name]}}})
		}
	}

	// A policy alone is one word.
	for i := range list {
		if inner, ok := list[i].Value.([]specjson.Field); ok && list[i].Key == "restart" && len(inner) == 1 && inner[0].Key == "policy" {
			list[i].Value = inner[0].Value
		}
	}
	return list
}
