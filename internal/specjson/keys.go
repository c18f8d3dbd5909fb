package specjson

import (
	"math"
	"slices"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// Key is one key of the flat form of a definition. The program reads documents by these keys, and the page of the form and
// its JSON Schema are made of them.
type Key struct {
	Name    string   // such as health.interval
	Form    string   // what its value looks like, in words
	Default string   // in words; "" means none
	Example string   // as YAML, in one line
	Twins   []string // the same values in BlueKing's form, such as spec.control.start_cmd; nil: BlueKing has none
	Meaning string

	schema schema
	read   func(f *flat, v strictjson.Value) // nil: the document around the definition has this key
}

// Keys lists the keys of a document in the order of its page.
func Keys() []Key {
	return slices.Concat(documentKeys(), commandKeys(), placeKeys(), stopKeys(), restartKeys(), scheduleKeys(), limitKeys(),
		healthKeys(), logKeys())
}

// FlatNames are the names of the keys that define the process, without their parts.
func FlatNames() []string {
	var names []string
	for _, k := range Keys() {
		if k.read != nil && !strings.Contains(k.Name, ".") {
			names = append(names, k.Name)
		}
	}
	return names
}

// key makes a Key.
func key(name string, f form, def, example, meaning string, read func(f *flat, v strictjson.Value), twins ...string) Key {
	return Key{Name: name, Form: f.words, Default: def, Example: example, Meaning: meaning, Twins: twins, schema: f.schema,
		read: read}
}

func documentKeys() []Key {
	hosts := form{"list of `{ip, cloud}` or `{agent}`", schema{"type": "array", "items": schema{"type": "object",
		"additionalProperties": false, "properties": schema{"ip": schema{"type": "string"},
			"cloud": schema{"type": "integer", "minimum": 0}, "agent": schema{"type": "string"}}}}}
	labels := form{"map of names to texts", schema{"type": "object", "maxProperties": maxLabels,
		"additionalProperties": schema{"type": []any{"string", "number"}}}}
	object := form{"object", schema{"type": "object"}}
	return []Key{
		key("namespace", textForm("name", gozzard.MaxProcessNameBytes), "`default`", "shop",
			"first part of the key of the process", nil, "meta.namespace"),
		key("name", textForm("name", gozzard.MaxProcessNameBytes), "required", "web", "second part of the key", nil, "meta.name"),
		key("labels", labels, "", "{tier: front}", "free text for people and queries", nil, "meta.labels"),
		key("hosts", hosts, "the only host of the server", "[{ip: 10.0.0.1}]", "where the process is defined", nil, "hosts"),
		key("all", flagForm, "`false`", "true", "every host that has the process already, instead of `hosts`", nil),
		key("when_offline", wordForm("fail", "wait"), "`fail`", "wait", "what happens if a host is offline", nil),
		key("wait_seconds", numberForm(1, 7*maxSeconds), "`3600`", "600", "with `when_offline: wait`: how long", nil),
		key("spec", object, "", "{control: {start_cmd: ./run.sh}}", "the definition in BlueKing's form, or a part of it", nil,
			"spec"),
	}
}

func commandKeys() []Key {
	command := func(field func(c *gozzard.Control) *string) func(*flat, strictjson.Value) {
		return func(f *flat, v strictjson.Value) { *field(&f.spec.Control) = readCommandLine(v) }
	}
	return []Key{
		key("command", commandForm, "none: it cannot be started", "[python3, -m, http.server, '9000']",
			"starts the process. It stays in the foreground, or it writes `pid_file`",
			command(func(c *gozzard.Control) *string { return &c.Start }), "spec.control.start_cmd"),
		key("stop", commandForm, "`stop_signal`, then SIGKILL", "./stop.sh", "stops it",
			command(func(c *gozzard.Control) *string { return &c.Stop }), "spec.control.stop_cmd"),
		key("restart_command", commandForm, "stop, then start", "./restart.sh", "restarts it",
			command(func(c *gozzard.Control) *string { return &c.Restart }), "spec.control.restart_cmd"),
		key("reload", commandForm, "none: it cannot be reloaded", "kill -HUP $(cat web.pid)",
			"makes it read its configuration again",
			command(func(c *gozzard.Control) *string { return &c.Reload }), "spec.control.reload_cmd"),
		key("kill", commandForm, "SIGKILL", "./kill.sh", "ends it by force",
			command(func(c *gozzard.Control) *string { return &c.Kill }), "spec.control.kill_cmd"),
		key("version", commandForm, "", "./web --version", "its first line of output is shown as the version",
			command(func(c *gozzard.Control) *string { return &c.Version }), "spec.control.version_cmd"),
		key("shell", wordForm("sh", "bat", "ps1"), "the shell of the host", "sh",
			"what the commands are written for. `bat` and `ps1` run on Windows only",
			func(f *flat, v strictjson.Value) {
				f.spec.Control.Shell = word(v, gozzard.ShellSh, gozzard.ShellBat, gozzard.ShellPS1)
			}, "spec.control.shell"),
		key("timeout", durationForm, "`60s`", "2m", "time limit of one command; a command that is the process has none",
			func(f *flat, v strictjson.Value) { f.spec.Policy.OpTimeout = readSeconds(v, maxSeconds) },
			"spec.monitor_policy.op_timeout"),
	}
}

// strictPath reads a clean absolute path.
func strictPath(v strictjson.Value) string { return Rules{Strict: true}.path(v, false) }

func placeKeys() []Key {
	path := func(field func(id *gozzard.Identity) *string) func(*flat, strictjson.Value) {
		return func(f *flat, v strictjson.Value) { *field(&f.spec.Identity) = strictPath(v) }
	}
	rlimits := schema{"type": "object", "additionalProperties": false, "properties": schema{}}
	for _, name := range gozzard.RlimitNames() {
		rlimits["properties"].(schema)[name] = rlimitForm.schema
	}
	return []Key{
		key("folder", pathForm, "`/`", "/opt/web", "commands run in this folder",
			path(func(id *gozzard.Identity) *string { return &id.SetupPath }), "spec.identity.setup_path"),
		key("proc_name", lineForm, "the program of `command`", "nginx", "name of the program, as `ps -o comm` shows it",
			func(f *flat, v strictjson.Value) {
				if f.spec.Identity.ProcName = line(v, maxShort); strings.ContainsAny(f.spec.Identity.ProcName, `/\`) {
					v.Fault("is the name of a program as its system shows it, not a path")
				}
			}, "spec.identity.proc_name"),
		key("pid_file", pathForm, "", "/run/web.pid", "the file with the pid of a program that goes into the background",
			path(func(id *gozzard.Identity) *string { return &id.PIDPath }), "spec.identity.pid_path"),
		key("user", lineForm, "`default_user` in the policy of the host, or the account of an agent that is not root", "www-data", "the account of its commands",
			func(f *flat, v strictjson.Value) { f.spec.Identity.User = line(v, maxShort) }, "spec.identity.user"),
		key("group", lineForm, "the main group of the account", "adm",
			"the group of its commands: one of the groups of the account; root may use every group",
			func(f *flat, v strictjson.Value) { f.spec.Exec.Group = line(v, maxShort) }),
		key("env", envForm, "", "{MODE: prod, PORT: 8080}",
			"variables of the environment of all commands. They replace those of `env_file`", (*flat).env),
		key("env_file", pathForm, "", "/etc/default/web",
			"a file on the host with lines NAME=VALUE. It is read at each start. It must belong to root, to the agent's "+
				"account or to `user`",
			func(f *flat, v strictjson.Value) { f.spec.Exec.EnvFile = strictPath(v) }),
		key("umask", umaskForm, "`\"0022\"`", `"0027"`, "permissions that new files do not get", (*flat).umask),
		key("nice", numberForm(-20, 19), "`0`", "10", "priority; a number below 0 needs a policy that allows root",
			func(f *flat, v strictjson.Value) { f.spec.Exec.Nice = int(v.Int(-20, 19)) }),
		key("rlimits", form{"map of `" + strings.Join(gozzard.RlimitNames(), "`, `") + "` to " + rlimitForm.words, rlimits},
			"those of the agent", "{nofile: 65536, core: 0}", "limits of the kernel for each process (Linux)",
			(*flat).rlimits),
		key("instances", numberForm(1, maxInstances), "one process with the plain name", "4",
			"defines processes NAME-1 to NAME-N, each with its number in the variable `INSTANCE`",
			func(f *flat, v strictjson.Value) { f.instances = int(v.Int(1, maxInstances)) }),
		key("after", namesForm, "", "[redis]",
			"processes of the same namespace and host. A start waits until they run; a stop of several stops this one first",
			(*flat).after),
	}
}

func stopKeys() []Key {
	return []Key{
		key("stop_signal", wordForm(gozzard.StopSignals()...), "`TERM`", "INT", "the signal of a stop without `stop`",
			func(f *flat, v strictjson.Value) {
				f.spec.Policy.StopSignal = word(v, gozzard.StopSignals()...)
			}),
		key("stop_timeout", durationForm, "`10s`", "30s",
			"how long a stop waits for the end of the process. Without `stop` SIGKILL follows",
			func(f *flat, v strictjson.Value) { f.spec.Policy.StopCheckSecs = readSeconds(v, maxSeconds) },
			"spec.monitor_policy.stop_check_secs"),
		key("start_check", durationForm, "`5s`", "20s", "a start succeeds if the process is up after this time",
			func(f *flat, v strictjson.Value) { f.spec.Policy.StartCheckSecs = readSeconds(v, maxSeconds) },
			"spec.monitor_policy.start_check_secs"),
		key("orphans", wordForm("kill", "wait"), "`kill`", "wait",
			"what happens to the other processes of a supervised process after its main process ended",
			func(f *flat, v strictjson.Value) {
				f.spec.Policy.Orphans = word(v, gozzard.OrphansKill, gozzard.OrphansWait)
			}, "spec.monitor_policy.orphans"),
	}
}

func restartKeys() []Key {
	words := wordForm(restartAlways, restartOnFailure, restartNever)
	return []Key{
		key("restart", form{words.words + ", or an object", words.schema}, "`always`", "on-failure",
			"when it is started again after it ended: always, not after it exited with 0, or never", (*flat).restart,
			"spec.monitor_policy.auto_type"),
		key("restart.policy", words, "`always`", "on-failure", "as the word above", (*flat).restartWord,
			"spec.monitor_policy.auto_type"),
		key("restart.max", numberForm(0, maxRetries), "`0`: no end", "10",
			"restarts in a row after which the agent gives up. A run of a minute begins a new count",
			func(f *flat, v strictjson.Value) { f.spec.Policy.RestartMax = int(v.Int(0, maxRetries)) }),
		key("restart.delay", durationForm, "`10s`", "2s", "pause between restarts. The first one comes at once",
			func(f *flat, v strictjson.Value) { f.spec.Policy.StartInterval = readSeconds(v, maxSeconds) },
			"spec.monitor_policy.start_interval"),
		key("restart.quick", numberForm(0, maxRetries), "`4`", "10", "restarts with this pause, before the pauses grow",
			func(f *flat, v strictjson.Value) { f.spec.Policy.StartRetries = int(v.Int(0, maxRetries)) },
			"spec.monitor_policy.start_retries"),
	}
}

func scheduleKeys() []Key {
	return []Key{
		key("schedule", textForm("crontab rule", 256), "", "'*/5 * * * *'", "runs the process at these times",
			(*flat).schedule, "spec.monitor_policy.crontab_rule", "spec.monitor_policy.auto_type"),
		key("time_zone", lineForm, "the zone of the host", "Asia/Shanghai", "the zone of `schedule`", (*flat).timeZone,
			"spec.monitor_policy.time_zone"),
		key("overlap", wordForm("skip", "kill"), "`skip`", "kill",
			"when a run is due and the last one still runs: skip the new run, or end the old one",
			func(f *flat, v strictjson.Value) {
				f.spec.Policy.Overlap = word(v, gozzard.OverlapSkip, gozzard.OverlapKill)
			}, "spec.monitor_policy.overlap"),
	}
}

func limitKeys() []Key {
	whole := func(field func(r *gozzard.Resource) *int64) func(*flat, strictjson.Value) {
		return func(f *flat, v strictjson.Value) { *field(&f.spec.Resource) = v.Int(0, math.MaxInt64) }
	}
	size := func(field func(r *gozzard.Resource) *int64) func(*flat, strictjson.Value) {
		return func(f *flat, v strictjson.Value) { *field(&f.spec.Resource) = readSize(v) }
	}
	return []Key{
		key("memory", memoryForm, "no limit", "512M", "memory of the process and its children", func(f *flat,
			v strictjson.Value) {
			if percent, ok := readPercent(v); ok {
				f.spec.Resource.Mem = percent
				return
			}
			f.spec.Resource.MemB = readSize(v)
		}, "spec.resource.mem", "spec.resource.mem_bytes"),
		key("cpu", cpuForm, "no limit", "1.5", "processor time of the process and its children", func(f *flat,
			v strictjson.Value) {
			if percent, ok := readPercent(v); ok {
				f.spec.Resource.CPU = percent
				return
			}
			f.spec.Resource.CPUs = readCores(v)
		}, "spec.resource.cpu", "spec.resource.cpu_cores"),
		key("limits", form{"object", nil}, "", "{files: 4096, act: restart}", "more limits", func(f *flat,
			v strictjson.Value) {
			f.members(v, "limits")
		}),
		key("limits.files", numberForm(0, math.MaxInt64), "no limit", "4096", "open files",
			whole(func(r *gozzard.Resource) *int64 { return &r.FD }), "spec.resource.fd"),
		key("limits.disk", sizeForm, "no limit", "10G", "bytes of the files that it holds open for writing",
			size(func(r *gozzard.Resource) *int64 { return &r.Disk }), "spec.resource.disk"),
		key("limits.net", sizeForm, "no limit", "1G", "TCP bytes of the sockets that it holds",
			size(func(r *gozzard.Resource) *int64 { return &r.Net }), "spec.resource.net"),
		key("limits.act", wordForm("alert", "stop", "kill", "restart"), "`kill`", "restart",
			"what happens to a supervised process above a limit", func(f *flat, v strictjson.Value) {
				f.spec.Resource.Act = word(v, gozzard.ActAlert, gozzard.ActStop, gozzard.ActKill, gozzard.ActRestart)
			}, "spec.resource.act"),
		key("limits.samples", numberForm(0, maxInRow), "`2`", "6", "samples in a row above the limit before the agent acts",
			func(f *flat, v strictjson.Value) { f.spec.Resource.Samples = int(v.Int(0, maxInRow)) },
			"spec.resource.samples"),
		key("limits.enforce", flagForm, "`false`", "true", "the kernel enforces `memory` and `cpu` too, where it can",
			func(f *flat, v strictjson.Value) { f.spec.Resource.Enforce = v.Bool() }, "spec.resource.enforce"),
	}
}

func healthKeys() []Key {
	address := form{"port, or address with port", schema{"oneOf": []any{schema{"type": "integer", "minimum": 1,
		"maximum": 65535}, schema{"type": "string"}}}}
	web := form{"URL", schema{"type": "string", "pattern": "^https?://"}}
	return []Key{
		key("health", form{"shell line, URL, `tcp://` address, or an object", commandForm.schema}, "", "http://127.0.0.1:8080/ping",
			"how the agent checks that the process is well", (*flat).health, "spec.control.health_cmd",
			"spec.control.health_tcp", "spec.control.health_http"),
		key("health.command", commandForm, "", "./check.sh", "exit code 0 means healthy",
			func(f *flat, v strictjson.Value) { f.spec.Control.Health = readCommandLine(v) }, "spec.control.health_cmd"),
		key("health.tcp", address, "", "6379", "a connection to this address of the host must succeed",
			func(f *flat, v strictjson.Value) { f.spec.Control.HealthTCP = readTCP(v) }, "spec.control.health_tcp"),
		key("health.http", web, "", "http://127.0.0.1:8080/ping",
			"a GET of this URL on the host must be answered with 200 to 399",
			func(f *flat, v strictjson.Value) { f.spec.Control.HealthHTTP = readHTTP(v) }, "spec.control.health_http"),
		key("health.interval", durationForm, "`30s`", "10s", "time between two checks",
			func(f *flat, v strictjson.Value) { f.spec.Policy.HealthInterval = readSeconds(v, maxSeconds) },
			"spec.monitor_policy.health_interval"),
		key("health.timeout", durationForm, "`10s`", "2s", "time limit of a check; 60 seconds at most are used",
			func(f *flat, v strictjson.Value) { f.spec.Policy.HealthTimeout = readSeconds(v, maxSeconds) },
			"spec.monitor_policy.health_timeout"),
		key("health.failures", numberForm(0, maxInRow), "`3`", "5", "failures in a row until the process is unhealthy",
			func(f *flat, v strictjson.Value) { f.spec.Policy.HealthThreshold = int(v.Int(0, maxInRow)) },
			"spec.monitor_policy.health_threshold"),
		key("health.restart", flagForm, "`false`", "true", "restart a supervised process that is unhealthy",
			func(f *flat, v strictjson.Value) { f.spec.Policy.HealthRestart = v.Bool() },
			"spec.monitor_policy.health_restart"),
	}
}

func logKeys() []Key {
	return []Key{
		key("logs", form{"object", nil}, "the settings of the agent", "{size: 50M, keep: 10, age: 72h}",
			"bounds of the log of what the process prints", func(f *flat, v strictjson.Value) { f.members(v, "logs") }),
		key("logs.size", sizeForm, "`10M`", "50M", "size at which a new file begins; 64K at least", func(f *flat,
			v strictjson.Value) {
			if f.spec.Logs.Size = readSize(v); f.spec.Logs.Size < minLogSize && v.Faults().Len() == 0 {
				v.Fault("must be at least 64K")
			}
		}),
		key("logs.keep", numberForm(1, maxLogFiles), "`5`", "10", "old files that are kept",
			func(f *flat, v strictjson.Value) { f.spec.Logs.Keep = int(v.Int(1, maxLogFiles)) }),
		key("logs.age", durationForm, "`168h`", "72h", "old files are removed after this time",
			func(f *flat, v strictjson.Value) { f.spec.Logs.Age = readSeconds(v, maxLogAge) }),
		key("log_file", pathForm, "", "/var/log/web.log",
			"where the program itself writes its log. It is stored and shown; Gozzard does not read it",
			func(f *flat, v strictjson.Value) { f.spec.Identity.LogPath = strictPath(v) }, "spec.identity.log_path"),
	}
}
