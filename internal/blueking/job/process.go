package job

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/specjson"
	"github.com/gozzard/gozzard/internal/strictjson"
)

const (
	maxText       = 4096
	maxName       = 255
	maxSeconds    = 86400
	maxCycle      = 365 * 86400
	maxPercent    = 100
	scriptSeconds = 10 // time-out of a script of operate_proc
	hashBytes     = 6  // of the digest in the name of a process
)

// process is an element of process_infos.
type process struct {
	spec     *gozzard.Spec
	valueKey string
	labels   map[string]string
}

// definitionOf reads a process without its hosts.
func (r *request) definitionOf(v *strictjson.Value) process {
	setup, name, pid := v.Get("setup_path"), v.Get("proc_name"), v.Get("pid_path")
	spec := &gozzard.Spec{Policy: gozzard.DefaultPolicy()}

	if r.required(setup) {
		spec.Identity.SetupPath = specjson.ReadPath(setup)
	}
	if r.form.pidless && (!pid.Given() || pid.IsString() && pid.AnyStr() == "") {
		spec.Identity.PIDPath = ""
	} else if r.required(pid) {
		spec.Identity.PIDPath = specjson.ReadPath(pid)
	}

	if r.required(name) {
		spec.Identity.ProcName = specjson.ReadLine(name, maxName)
		if strings.ContainsAny(spec.Identity.ProcName, `/\`) {
			name.Fault("is the name of a program as its system shows it, not a path")
		}
	}

	if r.form.account {
		spec.Identity.User = strings.TrimSpace(specjson.ReadLine(r.get(v, "account", "username"), maxName))
	}

	spec.Resource = gozzard.Resource{CPU: limit(v.Get("cpu_lmt"), r.form.cpu),
		Mem: limit(v.Get("mem_lmt"), r.form.mem), Act: gozzard.ActStop}
	r.form.define(r, v, spec)

	// Windows has no root; the account of the agent is used
	if spec.Identity.User == "" && spec.Control.Shell.RunsOn("linux") {
		spec.Identity.User = "root"
	}

	p := process{spec: spec, valueKey: specjson.ReadLine(v.Get("value_key"), maxText)}
	if strings.TrimSpace(p.valueKey) == "" {
		p.valueKey = valueKey(spec.Identity.SetupPath, spec.Identity.ProcName)
	}

	spec.Identity.IndexKey = p.valueKey
	p.labels = r.labels(v, spec.Identity)
	return p
}

// limit reads a limit in percent; 0 means none. A limit that is out of range becomes the default of the call.
func limit(v strictjson.Value, strange int64) float64 {
	n := v.OptInt(0, math.MinInt64, math.MaxInt64)
	if n < 0 || n > maxPercent {
		n = strange
	}
	return float64(n)
}

// compose makes the commands of operate_proc: scripts with fixed names.
func (r *request) compose(v *strictjson.Value, spec *gozzard.Spec) {
	ext := v.Get("cmd_shell_ext")
	shell := gozzard.Shell(ext.OptStr())
	if shell == "" {
		shell = gozzard.ShellSh
	}

	s, known := scriptOf(shell)
	if !known {
		ext.Fault("must be sh, bat or ps1, is %.40q", string(shell))
		return
	}

	setup, name := spec.Identity.SetupPath, spec.Identity.ProcName
	s.check(v.Get("setup_path"), setup)
	s.check(v.Get("proc_name"), name)
	command := func(verb string) string { return s.command(setup, verb, name) }
	spec.Control = gozzard.Control{Shell: shell, Start: command("start"), Stop: command("stop"),
		Restart: command("restart"), Reload: command("reload")}
	spec.Policy.OpTimeout = scriptSeconds
}

// bring reads the commands and the policy in a request that has them.
func (r *request) bring(v *strictjson.Value, spec *gozzard.Spec) {
	command := func(name string) string { return specjson.ReadCommand(v.Get(name)) }
	spec.Control = gozzard.Control{
		Start: command("start_cmd"), Stop: command("stop_cmd"), Restart: command("restart_cmd"),
		Reload: command("reload_cmd"), Kill: command("kill_cmd"),
	}
	spec.Identity.ConfigPath = specjson.ReadLine(v.Get("cfg_path"), maxText)
	spec.Identity.LogPath = specjson.ReadLine(v.Get("log_path"), maxText)
	kind, cycle, begin, end := v.Get("type"), v.Get("cycle_time"), v.Get("start_check_begin_time"),
		v.Get("start_check_end_time")
	timeout, instances := v.Get("op_timeout"), v.Get("instance_num")
	policy := &spec.Policy
	policy.Kind = gozzard.Kind(kind.OptInt(0, 0, 3))
	if policy.Kind > gozzard.KindOneShot { // one client sends 3 with unhost
		policy.Kind = gozzard.KindResident
	}

	policy.StartCheckSecs = int(begin.OptInt(int64(policy.StartCheckSecs), 0, maxSeconds))
	policy.OpTimeout = int(timeout.OptInt(int64(policy.OpTimeout), 0, maxSeconds))
	if n := cycle.OptInt(0, 0, maxCycle); n > 0 && policy.Kind == gozzard.KindPeriodic {
		policy.CrontabRule = "@every " + strconv.FormatInt(n, 10) + "s"
	}

	end.OptInt(0, 0, maxSeconds) // Job ignores it, too
	instances.OptInt(0, 0, math.MaxInt32)
}

// labels show in lists of processes what the name of the process, which has a digest, does not show.
func (r *request) labels(v *strictjson.Value, id gozzard.Identity) map[string]string {
	labels := map[string]string{}
	add := func(name, value string) {
		if value != "" && len(value) <= gozzard.MaxNameBytes {
			labels[name] = value
		}
	}
	add("proc_name", id.ProcName)
	add("setup_path", id.SetupPath)
	for _, name := range []string{r.form.owner, "func_id", "instance_id"} {
		add(name, specjson.ReadLine(v.Get(name), gozzard.MaxNameBytes))
	}
	return labels
}

// valueKey is what identifies a process of a host in Job.
func valueKey(setupPath, procName string) string {
	switch {
	case strings.HasSuffix(setupPath, "/") || strings.HasSuffix(setupPath, `\`):
		return setupPath + procName
	case strings.Contains(setupPath, `\`):
		return setupPath + `\` + procName
	}
	return setupPath + "/" + procName
}

// key is the key of the process in the fleet: the name of the program, and a digest that makes it unique.
func (p *process) key(namespace string) gozzard.Key {
	sum := sha256.Sum256([]byte(p.valueKey))
	digest := "@" + hex.EncodeToString(sum[:hashBytes])
	return gozzard.Key{Namespace: namespace, Name: asName(p.spec.Identity.ProcName,
		gozzard.MaxNameBytes-len(digest)) + digest}
}

// asName makes a valid name from the name of a program, which may have any characters.
func asName(program string, most int) string {
	var b strings.Builder
	for _, c := range norm.NFC.String(program) {
		inner := b.Len() > 0 && (strings.ContainsRune("-.@+ ", c) || unicode.In(c, unicode.Mn, unicode.Mc))
		if !inner && !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			c = '_'
		}
		if b.Len()+utf8.RuneLen(c) > most {
			break
		}
		b.WriteRune(c)
	}
	return b.String()
}
