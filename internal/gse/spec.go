package gse

import (
	"math"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/esb"
)

// Bounds of a definition.
const (
	maxCommand    = 16 << 10
	maxPath       = 4096
	maxShort      = 255
	maxRule       = 1024
	maxSeconds    = 86400
	maxRetries    = 100_000
	maxConfigMap  = 1000
	maxWholeFloat = 1 << 53 // the largest number that every client reads without loss
)

// optSpec reads a definition, nil when there is none: one client sends five empty objects for that. Where a command will run, the identity must be
// complete; elsewhere real clients leave most of it empty.
func optSpec(v esb.Value, complete bool) *gozzard.Spec {
	if !v.OptObject() || v.Hollow() {
		return nil
	}
	return readSpec(v, complete)
}

// mustSpec reads a definition that must be there.
func mustSpec(v esb.Value, complete bool) *gozzard.Spec {
	if !v.Object() {
		return nil
	}
	if v.Hollow() {
		v.Fault("required, is empty")
		return nil
	}
	return readSpec(v, complete)
}

func readSpec(v esb.Value, complete bool) *gozzard.Spec {
	s := &gozzard.Spec{
		Identity: readIdentity(v.Get("identity"), complete),
		Control:  readControl(v.Get("control")),
		Resource: readResource(v.Get("resource")),
		Policy:   readPolicy(&v),
	}
	if report := v.Get("warn_report_policy"); report.OptObject() {
		id := report.Get("report_id")
		s.ReportID = id.OptInt(0, 0, maxWholeFloat)
	}
	configs := v.Get("configmap")
	configs.OptList(maxConfigMap, func(e *esb.Value) {
		if e.Object() {
			s.ConfigMap = append(s.ConfigMap, gozzard.ConfigCheck{Path: short(e.Get("path"), maxPath), MD5: short(e.Get("md5"), maxShort)})
		}
	})
	return s
}

func readIdentity(v esb.Value, complete bool) gozzard.Identity {
	if !v.Object() {
		return gozzard.Identity{}
	}
	name, user := v.Get("proc_name"), v.Get("user")
	id := gozzard.Identity{
		IndexKey:   short(v.Get("index_key"), maxPath),
		ProcName:   short(name, maxShort),
		SetupPath:  readPath(v.Get("setup_path"), complete, true),
		PIDPath:    readPath(v.Get("pid_path"), complete, true),
		ConfigPath: readPath(v.Get("config_path"), complete, false),
		LogPath:    readPath(v.Get("log_path"), complete, false),
		User:       short(user, maxShort),
	}
	if id.ProcName == "" && (!name.Given() || name.IsString()) {
		name.Fault("required")
	}
	if id.User == "" && complete && (!user.Given() || user.IsString()) {
		user.Fault("required where a command is run")
	}
	return id
}

// short reads an optional text of one line.
func short(v esb.Value, most int) string {
	s := v.OptStr()
	switch {
	case len(s) > most:
		v.Fault("has %d bytes, at most %d are allowed", len(s), most)
	case !plain(s):
		v.Fault("%+q has control or direction characters", s)
	}
	return s
}

// readPath reads a path; where a command will run it must be clean and absolute.
func readPath(v esb.Value, complete, required bool) string {
	p := short(v, maxPath)
	switch {
	case !complete || v.Given() && !v.IsString():
	case p == "" && required:
		v.Fault("required where a command is run")
	case p != "" && !cleanPath(p):
		v.Fault("%q is not a clean absolute path", p)
	}
	return p
}

// cleanPath accepts absolute paths of either system without empty, "." and ".." parts; one final separator is left to those who write folders so.
func cleanPath(p string) bool {
	rest, ok := strings.CutPrefix(p, "/")
	cut := func(r rune) bool { return r == '/' }
	if !ok {
		if len(p) < 3 || !letter(p[0]) || p[1] != ':' || p[2] != '\\' && p[2] != '/' {
			return false
		}
		rest = p[3:]
		cut = func(r rune) bool { return r == '/' || r == '\\' }
	}
	for rest != "" {
		part, tail := rest, ""
		if i := strings.IndexFunc(rest, cut); i >= 0 {
			part, tail = rest[:i], rest[i+1:]
		}
		if part == "" || part == "." || part == ".." {
			return false
		}
		rest = tail
	}
	return true
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func readControl(v esb.Value) gozzard.Control {
	if !v.OptObject() {
		return gozzard.Control{}
	}
	cmd := func(name string) string {
		c := v.Get(name)
		s := c.OptStr()
		switch {
		case len(s) > maxCommand:
			c.Fault("has %d bytes, at most %d are allowed", len(s), maxCommand)
		case strings.ContainsRune(s, 0):
			c.Fault("has a NUL character")
		}
		return s
	}
	return gozzard.Control{
		Start: cmd("start_cmd"), Stop: cmd("stop_cmd"), Restart: cmd("restart_cmd"), Reload: cmd("reload_cmd"), Kill: cmd("kill_cmd"),
		Version: cmd("version_cmd"), Health: cmd("health_cmd"),
	}
}

func readResource(v esb.Value) gozzard.Resource {
	if !v.OptObject() {
		return gozzard.Resource{}
	}
	percent := func(name string) float64 {
		x := v.Get(name)
		return x.OptFloat(0, 0, 100)
	}
	count := func(name string) int64 {
		x := v.Get(name)
		return x.OptInt(0, 0, math.MaxInt64)
	}
	r := gozzard.Resource{CPU: percent("cpu"), Mem: percent("mem"), FD: count("fd"), Disk: count("disk"), Net: count("net")}
	readActs(&v, &r)
	return r
}

// either picks the one of two names for the same thing that says something. Both at once would need a guess.
func either(v *esb.Value, a, b string) esb.Value {
	x, y := v.Get(a), v.Get(b)
	switch {
	case y.Hollow():
		return x
	case !x.Hollow():
		y.Fault("is another name of %s: send one of them", a)
	}
	return y
}

// readPolicy reads the policy by either of its names. Missing and null fields are defaults; a 0 is a 0.
func readPolicy(spec *esb.Value) gozzard.Policy {
	p := gozzard.DefaultPolicy()
	v := either(spec, "monitor_policy", "alive_monitor_policy")
	if !v.OptObject() {
		return p
	}
	number := func(name string, field *int, most int64) {
		x := v.Get(name)
		*field = int(x.OptInt(int64(*field), 0, most))
	}
	kind := int(p.Kind)
	number("auto_type", &kind, int64(gozzard.KindOneShot))
	p.Kind = gozzard.Kind(kind)
	number("start_check_secs", &p.StartCheckSecs, maxSeconds)
	number("stop_check_secs", &p.StopCheckSecs, maxSeconds)
	number("start_retries", &p.StartRetries, maxRetries)
	number("start_interval", &p.StartInterval, maxSeconds)
	number("op_timeout", &p.OpTimeout, maxSeconds)
	// The documents' own sample has it misspelt.
	p.CrontabRule = short(either(&v, "crontab_rule", "crotab_rule"), maxRule)
	readHealth(&v, &p)
	return p
}
