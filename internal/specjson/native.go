package specjson

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/cron"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// The limits of the flat form.
const (
	maxWords     = 1024
	maxVariables = 256
	maxEnvBytes  = 64 << 10
	maxAfter     = 32
	maxCores     = 4096
	maxLogFiles  = 100
	minLogSize   = 64 << 10
	maxInstances = 1000
	nativeStop   = 10 // seconds that a stop waits, if the document does not say it
	// InstanceVariable is the environment variable with the number of an instance.
	InstanceVariable = "INSTANCE"
)

// Definition is the definition in a document.
type Definition struct {
	Spec      *gozzard.Spec
	Instances int // how many numbered processes the document defines; 0 means one with the plain name
}

// Names are the names of the processes that a document with this name defines.
func (d *Definition) Names(name string) []string {
	if d.Instances == 0 {
		return []string{name}
	}
	names := make([]string, d.Instances)
	for i := range names {
		names[i] = name + "-" + itoa(i+1)
	}
	return names
}

// Instance is the definition of one of the processes of Names.
func (d *Definition) Instance(i int) *gozzard.Spec {
	if d.Instances == 0 || d.Spec == nil {
		return d.Spec
	}
	one := *d.Spec
	one.Exec.Env = maps.Clone(one.Exec.Env)
	if one.Exec.Env == nil {
		one.Exec.Env = map[string]string{}
	}
	one.Exec.Env[InstanceVariable] = itoa(i + 1)
	return &one
}

// ReadDefinition reads the definition in a document of our own API. Its keys are flat (see Keys), or BlueKing's in spec, or
// both, as long as no value is given twice.
func ReadDefinition(root strictjson.Value) Definition {
	spec := root.Get("spec")
	if spec.Exists() && !hasFlat(&root) {
		return Definition{Spec: ReadSpec(spec, Rules{Strict: true})}
	}
	return readFlat(root, spec)
}

// ReadProcess reads the flat keys of a process in the document of a business, which has the rest of its definition. object is
// JSON. Other keys are faults. What the keys leave out is empty, or has its usual default.
func ReadProcess(object []byte) (*gozzard.Spec, int, []gozzard.Fault) {
	var faults strictjson.Faults
	doc, err := strictjson.Parse(object)
	if err != nil {
		return nil, 0, []gozzard.Fault{{Text: err.Error()}}
	}
	root, err := doc.Root(&faults)
	if err != nil {
		return nil, 0, []gozzard.Fault{{Text: err.Error()}}
	}

	root.Only(FlatNames()...)
	f := newFlat(root.Get("spec"))
	f.object(&root, "")
	if f.spec.Identity.ProcName == "" {
		f.spec.Identity.ProcName = gozzard.ProgramOf(f.spec.Control.Start)
	}
	f.check(root)
	var invalid *gozzard.Error
	if errors.As(faults.Err(), &invalid) {
		return nil, 0, invalid.Faults
	}
	return f.spec, f.instances, nil
}

func newFlat(spec strictjson.Value) *flat {
	return &flat{keys: Keys(), spec: &gozzard.Spec{Policy: gozzard.DefaultPolicy()}, nested: spec, given: map[string]bool{}}
}

// hasFlat reports whether a document has a flat key.
func hasFlat(root *strictjson.Value) bool {
	return slices.ContainsFunc(FlatNames(), func(name string) bool {
		v := root.Get(name)
		return v.Exists()
	})
}

// flat is a document with flat keys that is being read.
type flat struct {
	keys      []Key
	spec      *gozzard.Spec
	instances int
	nested    strictjson.Value // spec
	given     map[string]bool  // the flat keys that have a value
}

func readFlat(root, spec strictjson.Value) Definition {
	// Read BlueKing's part.
	f := newFlat(spec)
	f.spec.Policy.StopCheckSecs = nativeStop
	if spec.Given() {
		if f.spec = ReadSpec(spec, Rules{Strict: true, partial: true}); f.spec == nil {
			return Definition{}
		}
	}

	// Read the flat keys.
	f.object(&root, "")

	// Fill in what follows from the others.
	f.complete(root)
	return Definition{Spec: f.spec, Instances: f.instances}
}

// object reads the keys of one part of the document. prefix is "" for the document itself.
func (f *flat) object(v *strictjson.Value, prefix string) {
	for _, k := range f.keys {
		name, inside := strings.CutPrefix(k.Name, prefix)
		if !inside || strings.Contains(name, ".") || k.read == nil {
			continue
		}
		m := v.Get(name)
		if !m.Given() {
			continue
		}
		f.given[k.Name] = true
		f.twice(m, k)
		k.read(f, m)
	}
}

// twice rejects a value that spec gives too.
func (f *flat) twice(m strictjson.Value, k Key) {
	for _, twin := range k.Twins {
		at := f.nested
		for part := range strings.SplitSeq(strings.TrimPrefix(twin, "spec."), ".") {
			up := at
			at = up.Get(part)
		}
		if at.Given() {
			m.Fault("is given twice: %s is another name of it. Remove one of them", twin)
		}
	}
}

// complete fills in what the document leaves out.
func (f *flat) complete(root strictjson.Value) {
	id := &f.spec.Identity
	if id.SetupPath == "" {
		id.SetupPath = "/"
	}
	if id.ProcName == "" {
		id.ProcName = gozzard.ProgramOf(f.spec.Control.Start)
	}
	switch {
	case id.ProcName != "":
	case f.spec.Control.Start == "":
		command := root.Get("command")
		command.Fault("required: it starts the process. For a process that something else starts, give proc_name")
	default:
		name := root.Get("proc_name")
		name.Fault("required: the name of the program cannot be read from command. Give it as ps -o comm shows it")
	}
	f.check(root)
}

// check rejects keys that do not belong together.
func (f *flat) check(root strictjson.Value) {
	if f.given["schedule"] && f.given["restart"] {
		v := root.Get("restart")
		v.Fault("is not allowed with schedule: a process with a schedule is started by the schedule only")
	}
	for _, name := range []string{"time_zone", "overlap"} {
		if v := root.Get(name); f.given[name] && !f.spec.Policy.Periodic() {
			v.Fault("is only allowed with schedule")
		}
	}
	if _, own := f.spec.Exec.Env[InstanceVariable]; own && f.instances > 0 {
		v := root.Get("env")
		v.Fault("must not have %s: with instances, Gozzard sets it", InstanceVariable)
	}
	if c := &f.spec.Control; count(c.Health != "", c.HealthTCP != "", c.HealthHTTP != "") > 1 {
		v := root.Get("health")
		v.Fault("give one of command, tcp and http")
	}
}

func count(all ...bool) (n int) {
	for _, b := range all {
		if b {
			n++
		}
	}
	return n
}

func (f *flat) env(v strictjson.Value) {
	env, bytes := map[string]string{}, 0
	v.Members(func(name string, m strictjson.Value) {
		text := ""
		if m.IsBool() {
			text = "false"
			if m.Bool() {
				text = "true"
			}
		} else {
			text = m.Scalar()
		}
		switch {
		case !isName.MatchString(name):
			m.Fault("a name of the environment has letters, digits and _ only, and does not begin with a digit")
		case strings.HasPrefix(name, "GOZZARD_"):
			m.Fault("names that begin with GOZZARD_ are set by Gozzard")
		case strings.ContainsRune(text, 0):
			m.Fault("has a NUL character")
		}
		env[name] = text
		bytes += len(name) + len(text) + 2
	})

	switch {
	case len(env) > maxVariables:
		v.Fault("has %d variables, at most %d are allowed", len(env), maxVariables)
	case bytes > maxEnvBytes:
		v.Fault("has %d bytes, at most %d are allowed", bytes, maxEnvBytes)
	case len(env) > 0:
		f.spec.Exec.Env = env
	}
}

func (f *flat) rlimits(v strictjson.Value) {
	known := gozzard.RlimitNames()
	v.Only(known...)
	limits := map[string]gozzard.Rlimit{}
	v.Members(func(name string, m strictjson.Value) {
		if slices.Contains(known, name) {
			limits[name] = readRlimit(m)
		}
	})
	if len(limits) > 0 {
		f.spec.Exec.Rlimits = limits
	}
}

// readRlimit reads a soft and a hard limit, which are the same unless two are given.
func readRlimit(v strictjson.Value) gozzard.Rlimit {
	one := func(v strictjson.Value) int64 {
		if v.IsString() {
			if v.Text() != unlimited {
				v.Fault("must be a number or %s, is %s", unlimited, strictjson.Quote(v.Text()))
			}
			return gozzard.Unlimited
		}
		return v.Int(0, 1<<62)
	}
	if !v.IsList() {
		n := one(v)
		return gozzard.Rlimit{Soft: n, Hard: n}
	}

	var both []int64
	v.List(2, func(e *strictjson.Value) { both = append(both, one(*e)) })
	if len(both) != 2 {
		v.Fault("must be a number, or a list of the soft and the hard limit")
		return gozzard.Rlimit{}
	}
	l := gozzard.Rlimit{Soft: both[0], Hard: both[1]}
	if l.Hard != gozzard.Unlimited && (l.Soft == gozzard.Unlimited || l.Soft > l.Hard) {
		v.Fault("the soft limit is above the hard limit")
	}
	return l
}

func (f *flat) umask(v strictjson.Value) {
	if v.IsNumber() {
		v.Fault(`must be a text in quotes such as "0022": YAML reads 0022 without quotes as the number 18`)
		return
	}
	if text := v.Str(); text != "" && !isUmask.MatchString(text) {
		v.Fault(`must be octal digits such as "0022", is %s`, strictjson.Quote(text))
	} else if text != "" {
		f.spec.Exec.Umask = "0" + text[len(text)-3:]
	}
}

// restart reads the word of the policy, or an object with it.
func (f *flat) restart(v strictjson.Value) {
	if v.IsObject() {
		f.members(v, "restart")
		return
	}
	f.restartWord(v)
}

func (f *flat) restartWord(v strictjson.Value) {
	p := &f.spec.Policy
	switch word(v, restartAlways, restartOnFailure, restartNever) {
	case restartAlways:
		p.Kind = gozzard.KindResident
	case restartOnFailure:
		p.Kind, p.Restart = gozzard.KindResident, gozzard.RestartOnFailure
	case restartNever:
		p.Kind = gozzard.KindOneShot
	}
}

// The words of restart.
const (
	restartAlways    = "always"
	restartOnFailure = "on-failure"
	restartNever     = "never"
)

// members reads an object that is the value of a key. Unknown names are faults.
func (f *flat) members(v strictjson.Value, key string) {
	if !v.Object() {
		return
	}
	var known []string
	for _, k := range f.keys {
		if name, inside := strings.CutPrefix(k.Name, key+"."); inside {
			known = append(known, name)
		}
	}
	v.Only(known...)
	f.object(&v, key+".")
}

func (f *flat) schedule(v strictjson.Value) {
	rule := line(v, cron.MaxRuleBytes)
	f.spec.Policy.Kind, f.spec.Policy.CrontabRule = gozzard.KindPeriodic, rule
	if strings.TrimSpace(rule) == "" {
		if v.IsString() {
			v.Fault("required, is empty")
		}
		return
	}
	if _, err := cron.Parse(rule, ""); err != nil {
		v.Fault("%v", err)
	}
}

func (f *flat) timeZone(v strictjson.Value) {
	zone := line(v, maxShort)
	if _, err := cron.ParseZone(zone); err != nil {
		v.Fault("%v", err)
		return
	}
	f.spec.Policy.TimeZone = zone
}

// health reads a command, a URL, or an object.
func (f *flat) health(v strictjson.Value) {
	text := v.Text()
	switch {
	case v.IsObject():
		f.members(v, "health")
	case v.IsString() && (strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://")):
		f.spec.Control.HealthHTTP = readHTTP(v)
	case v.IsString() && strings.HasPrefix(text, "tcp://"):
		f.spec.Control.HealthTCP = readTCP(v)
	default:
		f.spec.Control.Health = readCommandLine(v)
	}
}

func (f *flat) after(v strictjson.Value) {
	v.List(maxAfter, func(e *strictjson.Value) {
		name := e.Str()
		if name == "" {
			return
		}
		if err := CheckProcessName(name); err != nil {
			e.Fault("%v", err)
		}
		if slices.Contains(f.spec.After, name) {
			e.Fault("%s is in the list already", strictjson.Quote(name))
		}
		f.spec.After = append(f.spec.After, name)
	})
}
