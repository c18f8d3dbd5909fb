package specjson

import (
	"math"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// The limits of a definition.
const (
	maxCommand   = 16 << 10
	maxPath      = 4096
	maxShort     = 255
	maxSeconds   = 86400
	maxLogAge    = 366 * maxSeconds
	maxRetries   = 100_000
	maxConfigMap = 1000
	maxReportID  = 1 << 53 // the largest number that every client reads exactly
)

// Rules say how strictly a door reads definitions. Without rules everything that real clients send is accepted: empty
// fields of the identity, and unknown names.
type Rules struct {
	// Complete is for definitions whose commands will run: the paths are required, clean and absolute. The user
	// is not: old clients leave it out, and the host decides.
	Complete bool
	// Strict is for our own API: unknown names are rejected with the name that is probably meant, paths must be clean
	// and absolute, and setup_path is required.
	Strict bool
	// Name is the name of the process, for calls that one old client sends without proc_name. The definition then has the
	// base name of its pid file as the name of the program, or this name.
	Name string

	partial bool // the rest of the definition is in flat keys: nothing is required
}

// ReadSpec reads a definition, nil if it is not an object.
func ReadSpec(v strictjson.Value, rules Rules) *gozzard.Spec {
	if !v.Object() {
		return nil
	}

	rules.only(&v, "identity", "control", "resource", "monitor_policy", "alive_monitor_policy", "warn_report_policy",
		"configmap")
	s := &gozzard.Spec{
		Identity: rules.identity(v.Get("identity")),
		Control:  rules.control(v.Get("control")),
		Resource: rules.resource(v.Get("resource")),
		Policy:   rules.policy(either(&v, "monitor_policy", "alive_monitor_policy")),
	}

	if report := v.Get("warn_report_policy"); report.OptObject() {
		rules.only(&report, "report_id")
		id := report.Get("report_id")
		s.ReportID = id.OptInt(0, 0, maxReportID)
	}

	configs := v.Get("configmap")
	configs.OptList(maxConfigMap, func(e *strictjson.Value) {
		if e.Object() {
			rules.only(e, "path", "md5")
			check := gozzard.ConfigCheck{Path: line(e.Get("path"), maxPath), MD5: line(e.Get("md5"), maxShort)}
			if path := e.Get("path"); rules.Strict && !cleanPath(check.Path) {
				path.Fault("%q is not a clean absolute path", check.Path)
			}
			s.ConfigMap = append(s.ConfigMap, check)
		}
	})

	return s
}

// only rejects unknown members, if the rules are strict.
func (r Rules) only(v *strictjson.Value, known ...string) {
	if r.Strict {
		v.Only(known...)
	}
}

func (r Rules) identity(v strictjson.Value) gozzard.Identity {
	if r.partial && !v.Given() || !v.Object() {
		return gozzard.Identity{}
	}

	r.only(&v, "index_key", "proc_name", "setup_path", "pid_path", "config_path", "log_path", "user")
	name := v.Get("proc_name")
	id := gozzard.Identity{
		IndexKey:   line(v.Get("index_key"), maxPath),
		ProcName:   line(name, maxShort),
		SetupPath:  r.path(v.Get("setup_path"), (r.Complete || r.Strict) && !r.partial),
		PIDPath:    r.path(v.Get("pid_path"), r.Complete),
		ConfigPath: r.path(v.Get("config_path"), false),
		LogPath:    r.path(v.Get("log_path"), false),
		User:       line(v.Get("user"), maxShort),
	}
	switch {
	case id.ProcName == "" && r.partial:
	case r.Name != "" && !name.Given():
		id.ProcName = programOf(id.PIDPath, r.Name)
	case id.ProcName == "" && (!name.Given() || name.IsString()):
		name.Fault("required")
	case r.Strict && strings.ContainsAny(id.ProcName, `/\`):
		name.Fault("is the name of a program as its system shows it, not a path")
	}

	return id
}

// programOf guesses the name of a program: that of its pid file without .pid, or else the name of the process.
func programOf(pidPath, name string) string {
	base := pidPath[strings.LastIndexAny(pidPath, `/\`)+1:]
	if base = strings.TrimSuffix(base, ".pid"); base != "" && len(base) <= maxShort {
		return base
	}
	return name
}

// path reads a path. With either rule it must be clean and absolute.
func (r Rules) path(v strictjson.Value, required bool) string {
	p := line(v, maxPath)
	switch {
	case r == Rules{} || v.Given() && !v.IsString():
	case p == "" && required && r.Complete:
		v.Fault("required where a command is run")
	case p == "" && required:
		v.Fault("required")
	case p != "" && !cleanPath(p):
		v.Fault("%q is not a clean absolute path", p)
	}
	return p
}

// cleanPath accepts absolute paths of Unix and Windows without empty, "." and ".." parts. One separator at the end is
// allowed.
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

func (r Rules) control(v strictjson.Value) gozzard.Control {
	if !v.OptObject() {
		return gozzard.Control{}
	}

	r.only(&v, "shell", "start_cmd", "stop_cmd", "restart_cmd", "reload_cmd", "kill_cmd", "version_cmd", "health_cmd",
		"health_tcp", "health_http")
	cmd := func(name string) string { return ReadCommand(v.Get(name)) }

	// Only our own API has these fields.
	var own gozzard.Control
	if r.Strict {
		own.Shell = oneOf(v.Get("shell"), gozzard.ShellSh, gozzard.ShellBat, gozzard.ShellPS1)
		if tcp := v.Get("health_tcp"); tcp.Given() {
			own.HealthTCP = readTCP(tcp)
		}
		if http := v.Get("health_http"); http.Given() {
			own.HealthHTTP = readHTTP(http)
		}
		if count(cmd("health_cmd") != "", own.HealthTCP != "", own.HealthHTTP != "") > 1 {
			v.Fault("give one of health_cmd, health_tcp and health_http")
		}
	}

	return gozzard.Control{
		Shell: own.Shell, HealthTCP: own.HealthTCP, HealthHTTP: own.HealthHTTP, Start: cmd("start_cmd"), Stop: cmd("stop_cmd"), Restart: cmd("restart_cmd"),
		Reload: cmd("reload_cmd"), Kill: cmd("kill_cmd"),
		Version: cmd("version_cmd"), Health: cmd("health_cmd"),
	}
}

// ReadCommand reads an optional shell command.
func ReadCommand(v strictjson.Value) string {
	s := v.OptStr()
	switch {
	case len(s) > maxCommand:
		v.Fault("has %d bytes, at most %d are allowed", len(s), maxCommand)
	case strings.ContainsRune(s, 0):
		v.Fault("has a NUL character")
	}
	return s
}

// ReadPath reads an optional path, which must be clean and absolute.
func ReadPath(v strictjson.Value) string {
	p := line(v, maxPath)
	if p != "" && !cleanPath(p) {
		v.Fault("%q is not a clean absolute path", strictjson.Clip(p))
	}
	return p
}

// ReadLine reads an optional text of one line.
func ReadLine(v strictjson.Value, most int) string { return line(v, most) }

func (r Rules) resource(v strictjson.Value) gozzard.Resource {
	if !v.OptObject() {
		return gozzard.Resource{}
	}

	r.only(&v, "cpu", "mem", "cpu_cores", "mem_bytes", "fd", "disk", "net", "act", "samples", "enforce")

	percent := func(name string) float64 {
		x := v.Get(name)
		return x.OptFloat(0, 0, 100)
	}

	whole := func(name string, most int64) int64 {
		x := v.Get(name)
		return x.OptInt(0, 0, most)
	}

	enforce := v.Get("enforce")
	var own gozzard.Resource
	if r.Strict { // only our own API has these fields
		cores := v.Get("cpu_cores")
		own.CPUs, own.MemB = cores.OptFloat(0, 0, maxCores), whole("mem_bytes", math.MaxInt64)
	}
	return gozzard.Resource{
		CPUs: own.CPUs, MemB: own.MemB,
		CPU: percent("cpu"), Mem: percent("mem"),
		FD: whole("fd", math.MaxInt64), Disk: whole("disk", math.MaxInt64), Net: whole("net", math.MaxInt64),
		// Fields that BlueKing's documents do not have.
		Act:     oneOf(v.Get("act"), gozzard.ActAlert, gozzard.ActStop, gozzard.ActKill, gozzard.ActRestart),
		Samples: int(whole("samples", maxInRow)),
		Enforce: enforce.OptBool(false),
	}
}
