package api

import (
	"math"
	"path"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/esb"
)

// Bounds on the parts of a definition.
const (
	maxCommandBytes = 16 << 10
	maxPathBytes    = 4096
	maxLabels       = 64
	maxSeconds      = 24 * 3600
	maxRetries      = 100_000
)

// readSpec reads a definition in the words that BlueKing callers use for it, strictly.
func readSpec(v *esb.Value) *gozzard.Spec {
	s := &gozzard.Spec{Policy: gozzard.DefaultPolicy()}
	if !v.Object() {
		return s
	}
	only(v, "identity", "control", "resource", "monitor_policy", "alive_monitor_policy", "warn_report_policy", "configmap")
	identity, control, resource := v.Get("identity"), v.Get("control"), v.Get("resource")
	readIdentity(&identity, &s.Identity)
	readControl(&control, &s.Control)
	readResource(&resource, &s.Resource)
	policy, alias := v.Get("monitor_policy"), v.Get("alive_monitor_policy")
	if policy.Given() && alias.Given() {
		alias.Fault("is another name of monitor_policy: give one of them")
	}
	if !policy.Given() {
		policy = alias
	}
	readPolicy(&policy, &s.Policy)
	warn := v.Get("warn_report_policy")
	if warn.OptObject() {
		only(&warn, "report_id")
		id := warn.Get("report_id")
		s.ReportID = id.OptInt(0, 0, math.MaxInt64)
	}
	list := v.Get("configmap")
	list.OptList(maxLabels, func(e *esb.Value) {
		if !e.Object() {
			return
		}
		only(e, "path", "md5")
		p, md5 := e.Get("path"), e.Get("md5")
		s.ConfigMap = append(s.ConfigMap, gozzard.ConfigCheck{Path: absolute(&p, true), MD5: text(&md5, 128)})
	})
	return s
}

func readIdentity(v *esb.Value, id *gozzard.Identity) {
	if !v.Object() {
		return
	}
	only(v, "index_key", "proc_name", "setup_path", "pid_path", "config_path", "log_path", "user")
	index, name, user := v.Get("index_key"), v.Get("proc_name"), v.Get("user")
	setup, pid, config, log := v.Get("setup_path"), v.Get("pid_path"), v.Get("config_path"), v.Get("log_path")
	id.IndexKey = text(&index, maxPathBytes)
	if id.ProcName = name.Str(); id.ProcName != "" {
		id.ProcName = text(&name, 255)
		if strings.ContainsAny(id.ProcName, `/\`) {
			name.Fault("is the name of a program as its system shows it, not a path")
		}
	}
	id.User = text(&user, 255)
	id.SetupPath = absolute(&setup, true)
	id.PIDPath = absolute(&pid, false)
	id.ConfigPath = absolute(&config, false)
	id.LogPath = absolute(&log, false)
}

func readControl(v *esb.Value, c *gozzard.Control) {
	if !v.OptObject() {
		return
	}
	only(v, "start_cmd", "stop_cmd", "restart_cmd", "reload_cmd", "kill_cmd", "version_cmd", "health_cmd")
	for name, to := range map[string]*string{"start_cmd": &c.Start, "stop_cmd": &c.Stop, "restart_cmd": &c.Restart, "reload_cmd": &c.Reload,
		"kill_cmd": &c.Kill, "version_cmd": &c.Version, "health_cmd": &c.Health} {
		cmd := v.Get(name)
		*to = cmd.OptStr()
		switch {
		case len(*to) > maxCommandBytes:
			cmd.Fault("has %d bytes, at most %d are allowed", len(*to), maxCommandBytes)
		case strings.ContainsRune(*to, 0):
			cmd.Fault("has a NUL character")
		}
	}
}

func readResource(v *esb.Value, r *gozzard.Resource) {
	if !v.OptObject() {
		return
	}
	only(v, "cpu", "mem", "fd", "disk", "net", "act", "samples", "enforce")
	cpu, mem, fd, disk, net := v.Get("cpu"), v.Get("mem"), v.Get("fd"), v.Get("disk"), v.Get("net")
	r.CPU, r.Mem = cpu.OptFloat(0, 0, 100), mem.OptFloat(0, 0, 100)
	r.FD, r.Disk, r.Net = fd.OptInt(0, 0, math.MaxInt64), disk.OptInt(0, 0, math.MaxInt64), net.OptInt(0, 0, math.MaxInt64)
	readActs(v, r)
}

func readPolicy(v *esb.Value, p *gozzard.Policy) {
	if !v.OptObject() {
		return
	}
	only(v, "auto_type", "start_check_secs", "stop_check_secs", "start_retries", "start_interval", "crontab_rule", "op_timeout",
		"time_zone", "overlap", "health_interval", "health_timeout", "health_threshold", "health_restart")
	number := func(name string, def *int, high int64) {
		m := v.Get(name)
		*def = int(m.OptInt(int64(*def), 0, high))
	}
	kind := int(p.Kind)
	number("auto_type", &kind, int64(gozzard.KindOneShot))
	p.Kind = gozzard.Kind(kind)
	number("start_check_secs", &p.StartCheckSecs, maxSeconds)
	number("stop_check_secs", &p.StopCheckSecs, maxSeconds)
	number("start_retries", &p.StartRetries, maxRetries)
	number("start_interval", &p.StartInterval, maxSeconds)
	number("op_timeout", &p.OpTimeout, maxSeconds)
	rule := v.Get("crontab_rule")
	p.CrontabRule = text(&rule, 255)
	readHealth(v, p)
}

// readLabels reads names with values. Numbers are taken as their text, as everywhere.
func readLabels(v *esb.Value) map[string]string {
	if !v.OptObject() {
		return nil
	}
	labels := make(map[string]string)
	v.Members(func(name string, m esb.Value) {
		if fault := checkName(name); fault != "" {
			m.Fault("the label's name %s", fault)
			return
		}
		value := m.Scalar()
		if len(value) > gozzard.MaxNameBytes || hasControl(value) {
			m.Fault("must have at most %d bytes and no control characters", gozzard.MaxNameBytes)
			return
		}
		labels[name] = value
	})
	if len(labels) > maxLabels {
		v.Fault("has %d labels, at most %d are allowed", len(labels), maxLabels)
	}
	return labels
}

// text is an optional line without control characters.
func text(v *esb.Value, most int) string {
	s := v.OptStr()
	switch {
	case len(s) > most:
		v.Fault("has %d bytes, at most %d are allowed", len(s), most)
	case hasControl(s):
		v.Fault("has a control character")
	}
	return s
}

// absolute is a clean absolute path, of Unix or with a drive letter.
func absolute(v *esb.Value, required bool) string {
	s := v.OptStr()
	if s == "" {
		if required {
			v.Fault("required")
		}
		return ""
	}
	s = text(v, maxPathBytes)
	if isDrivePath(s) {
		for _, part := range strings.FieldsFunc(s[2:], func(r rune) bool { return r == '\\' || r == '/' }) {
			if part == ".." || part == "." {
				v.Fault("must be a clean path, %q has %s in it", clip(s), part)
			}
		}
		return s
	}
	switch {
	case !path.IsAbs(s):
		v.Fault("must be an absolute path, is %q", clip(s))
	case path.Clean(s) != strings.TrimRight(s, "/") && s != "/":
		v.Fault("must be a clean path such as %q, is %q", clip(path.Clean(s)), clip(s))
	}
	return s
}

func isDrivePath(s string) bool {
	return len(s) >= 3 && s[1] == ':' && (s[2] == '\\' || s[2] == '/') && (s[0]|0x20) >= 'a' && (s[0]|0x20) <= 'z'
}

func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 })
}
