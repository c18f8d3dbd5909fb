package specjson

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/gozzard/gozzard"
)

// Field is one key of a document with its value.
type Field struct {
	Key   string
	Value any // text, number, truth value, list of texts, map, or []Field
}

// Write writes a definition with flat keys, in the order of Keys. What has its default is left out. ReadDefinition reads the
// same definition from it. What has no flat key is in spec.
func Write(s *gozzard.Spec) []Field {
	w := writer{def: gozzard.DefaultPolicy()}
	w.commands(s)
	w.place(s)
	w.ends(s)
	w.limits(s.Resource)
	w.health(s)
	w.logs(s)
	w.rest(s)
	return w.fields
}

// writer collects fields.
type writer struct {
	fields []Field
	def    gozzard.Policy
}

// add adds a field, unless its value is empty or its default.
func add[T comparable](w *writer, key string, value, def T) {
	if value != def {
		w.fields = append(w.fields, Field{key, value})
	}
}

// seconds adds a duration.
func (w *writer) seconds(key string, n, def int) {
	if n != def {
		w.fields = append(w.fields, Field{key, strconv.Itoa(n) + "s"})
	}
}

// size adds a number of bytes.
func (w *writer) size(key string, n int64) {
	if n == 0 {
		return
	}
	for i, unit := range []string{"T", "G", "M", "K"} {
		if shift := 40 - 10*i; n%(1<<shift) == 0 {
			w.fields = append(w.fields, Field{key, strconv.FormatInt(n>>shift, 10) + unit})
			return
		}
	}
	w.fields = append(w.fields, Field{key, n})
}

// part adds an object, unless it is empty.
func (w *writer) part(key string, fill func(w *writer)) {
	inner := writer{def: w.def}
	if fill(&inner); len(inner.fields) > 0 {
		w.fields = append(w.fields, Field{key, inner.fields})
	}
}

func (w *writer) commands(s *gozzard.Spec) {
	c := s.Control
	add(w, "command", c.Start, "")
	add(w, "stop", c.Stop, "")
	add(w, "restart_command", c.Restart, "")
	add(w, "reload", c.Reload, "")
	add(w, "kill", c.Kill, "")
	add(w, "version", c.Version, "")
	add(w, "shell", string(c.Shell), "")
	w.seconds("timeout", s.Policy.OpTimeout, w.def.OpTimeout)
}

func (w *writer) place(s *gozzard.Spec) {
	id, x := s.Identity, s.Exec
	add(w, "folder", id.SetupPath, "/")
	add(w, "proc_name", id.ProcName, gozzard.ProgramOf(s.Control.Start))
	add(w, "pid_file", id.PIDPath, "")
	add(w, "user", id.User, "")
	add(w, "group", x.Group, "")
	if len(x.Env) > 0 {
		w.fields = append(w.fields, Field{"env", x.Env})
	}
	add(w, "env_file", x.EnvFile, "")
	add(w, "umask", x.Umask, "")
	add(w, "nice", x.Nice, 0)
	if len(x.Rlimits) > 0 {
		all := map[string]any{}
		for name, l := range x.Rlimits {
			all[name] = []any{rlimitText(l.Soft), rlimitText(l.Hard)}
			if l.Soft == l.Hard {
				all[name] = rlimitText(l.Soft)
			}
		}
		w.fields = append(w.fields, Field{"rlimits", all})
	}
	if len(s.After) > 0 {
		w.fields = append(w.fields, Field{"after", s.After})
	}
}

func rlimitText(n int64) any {
	if n == gozzard.Unlimited {
		return unlimited
	}
	return n
}

// ends writes how the process is stopped and started again, and when it runs.
func (w *writer) ends(s *gozzard.Spec) {
	p := s.Policy
	add(w, "stop_signal", p.StopSignal, "")
	w.seconds("stop_timeout", p.StopCheckSecs, nativeStop)
	w.seconds("start_check", p.StartCheckSecs, w.def.StartCheckSecs)
	add(w, "orphans", string(p.Orphans), "")
	if p.Periodic() {
		add(w, "schedule", p.CrontabRule, "")
		add(w, "time_zone", p.TimeZone, "")
		add(w, "overlap", string(p.Overlap), "")
		return
	}
	w.part("restart", func(w *writer) {
		switch {
		case p.Kind == gozzard.KindOneShot:
			add(w, "policy", restartNever, "")
		case p.Restart == gozzard.RestartOnFailure:
			add(w, "policy", restartOnFailure, "")
		}
		add(w, "max", p.RestartMax, 0)
		w.seconds("delay", p.StartInterval, w.def.StartInterval)
		add(w, "quick", p.StartRetries, w.def.StartRetries)
	})
}

func (w *writer) limits(r gozzard.Resource) {
	percent := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) + "%" }
	switch { // rest writes a limit that has both forms
	case r.Mem == 0:
		w.size("memory", r.MemB)
	case r.MemB == 0:
		add(w, "memory", percent(r.Mem), "")
	}
	switch {
	case r.CPU == 0:
		add(w, "cpu", r.CPUs, 0)
	case r.CPUs == 0:
		add(w, "cpu", percent(r.CPU), "")
	}
	w.part("limits", func(w *writer) {
		add(w, "files", r.FD, 0)
		w.size("disk", r.Disk)
		w.size("net", r.Net)
		add(w, "act", string(r.Act), "")
		add(w, "samples", r.Samples, 0)
		add(w, "enforce", r.Enforce, false)
	})
}

func (w *writer) health(s *gozzard.Spec) {
	c, p := s.Control, s.Policy
	w.part("health", func(w *writer) {
		add(w, "command", c.Health, "")
		add(w, "tcp", c.HealthTCP, "")
		add(w, "http", c.HealthHTTP, "")
		w.seconds("interval", p.HealthInterval, 0)
		w.seconds("timeout", p.HealthTimeout, 0)
		add(w, "failures", p.HealthThreshold, 0)
		add(w, "restart", p.HealthRestart, false)
	})
}

func (w *writer) logs(s *gozzard.Spec) {
	w.part("logs", func(w *writer) {
		w.size("size", s.Logs.Size)
		add(w, "keep", s.Logs.Keep, 0)
		w.seconds("age", s.Logs.Age, 0)
	})
	add(w, "log_file", s.Identity.LogPath, "")
}

// rest writes what has no flat key.
func (w *writer) rest(s *gozzard.Spec) {
	w.part("spec", func(w *writer) {
		w.part("identity", func(w *writer) {
			add(w, "index_key", s.Identity.IndexKey, "")
			add(w, "config_path", s.Identity.ConfigPath, "")
		})
		w.part("resource", func(w *writer) {
			r := s.Resource
			if r.MemB > 0 && r.Mem > 0 {
				w.fields = append(w.fields, Field{"mem", r.Mem}, Field{"mem_bytes", r.MemB})
			}
			if r.CPUs > 0 && r.CPU > 0 {
				w.fields = append(w.fields, Field{"cpu", r.CPU}, Field{"cpu_cores", r.CPUs})
			}
		})
		w.part("monitor_policy", func(w *writer) { w.oddPolicy(s.Policy) })
		w.part("warn_report_policy", func(w *writer) { add(w, "report_id", s.ReportID, 0) })
		if len(s.ConfigMap) > 0 {
			list := make([]any, len(s.ConfigMap))
			for i, c := range s.ConfigMap {
				list[i] = map[string]any{"path": c.Path, "md5": c.MD5}
			}
			w.fields = append(w.fields, Field{"configmap", list})
		}
	})
}

// oddPolicy writes what BlueKing's clients send for processes without a schedule.
func (w *writer) oddPolicy(p gozzard.Policy) {
	if p.Periodic() {
		add(w, "start_retries", p.StartRetries, w.def.StartRetries)
		add(w, "start_interval", p.StartInterval, w.def.StartInterval)
		return
	}
	if p.Kind == gozzard.KindPeriodic {
		w.fields = append(w.fields, Field{"auto_type", 0})
	}
	add(w, "crontab_rule", p.CrontabRule, "")
	add(w, "time_zone", p.TimeZone, "")
	add(w, "overlap", string(p.Overlap), "")
}

// Object is a document whose keys keep their order in JSON.
type Object []Field

// MarshalJSON implements json.Marshaler.
func (o Object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, f := range o {
		if i > 0 {
			b = append(b, ',')
		}
		value := f.Value
		if inner, ok := value.([]Field); ok {
			value = Object(inner)
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("cannot encode %s: %w", f.Key, err)
		}
		b = append(strconv.AppendQuote(b, f.Key), ':')
		b = append(b, text...)
	}
	return append(b, '}'), nil
}

// Map is the document as a value that encodes as JSON.
func Map(fields []Field) map[string]any {
	all := make(map[string]any, len(fields))
	for _, f := range fields {
		if inner, ok := f.Value.([]Field); ok {
			all[f.Key] = Map(inner)
			continue
		}
		all[f.Key] = f.Value
	}
	return all
}
