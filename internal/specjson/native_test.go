package specjson_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/specjson"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// readDocument reads a YAML document as the program does: as JSON.
func readDocument(t *testing.T, text string) (specjson.Definition, []string) {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := strictjson.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	var faults strictjson.Faults
	root, err := doc.Root(&faults)
	if err != nil {
		t.Fatal(err)
	}
	d := specjson.ReadDefinition(root)
	return d, faultTexts(&faults)
}

const fullDocument = `
command: [/opt/web/web, --port, "80 80", it's]
folder: /opt/web
pid_file: /run/web.pid
stop: ./stop.sh
restart_command: ./restart.sh
reload: kill -HUP 1
kill: ./kill.sh
version: ./web -v
shell: sh
user: www
group: adm
env: {A: b, PORT: 8080, DEBUG: true}
env_file: /etc/default/web
umask: "027"
nice: 5
rlimits: {nofile: 65536, core: [0, unlimited]}
instances: 3
after: [redis, db]
stop_signal: INT
stop_timeout: 1m30s
start_check: 7
orphans: wait
timeout: 2m
restart: {policy: on-failure, max: 9, delay: 2s, quick: 3}
memory: 512M
cpu: 1.5
limits: {files: 10, disk: 1G, net: 2K, act: restart, samples: 4, enforce: true}
health: {tcp: 6379, interval: 5s, timeout: 2, failures: 4, restart: true}
logs: {size: 1M, keep: 3, age: 24h}
log_file: /var/log/web.log
`

func TestFlatDocument(t *testing.T) {
	got, faults := readDocument(t, fullDocument)
	policy := gozzard.DefaultPolicy()
	policy.Restart, policy.RestartMax, policy.StartInterval, policy.StartRetries = gozzard.RestartOnFailure, 9, 2, 3
	policy.StopSignal, policy.StopCheckSecs, policy.StartCheckSecs, policy.OpTimeout = "INT", 90, 7, 120
	policy.Orphans = gozzard.OrphansWait
	policy.HealthInterval, policy.HealthTimeout, policy.HealthThreshold, policy.HealthRestart = 5, 2, 4, true
	want := specjson.Definition{Instances: 3, Spec: &gozzard.Spec{
		Identity: gozzard.Identity{ProcName: "web", SetupPath: "/opt/web", PIDPath: "/run/web.pid", User: "www",
			LogPath: "/var/log/web.log"},
		Control: gozzard.Control{Shell: "sh", Start: `exec /opt/web/web --port '80 80' 'it'\''s'`, Stop: "./stop.sh",
			Restart: "./restart.sh", Reload: "kill -HUP 1", Kill: "./kill.sh", Version: "./web -v",
			HealthTCP: "127.0.0.1:6379"},
		Resource: gozzard.Resource{CPUs: 1.5, MemB: 512 << 20, FD: 10, Disk: 1 << 30, Net: 2 << 10, Act: gozzard.ActRestart,
			Samples: 4, Enforce: true},
		Policy: policy,
		Exec: gozzard.Exec{Env: map[string]string{"A": "b", "PORT": "8080", "DEBUG": "true"}, EnvFile: "/etc/default/web",
			Group: "adm", Umask: "0027", Nice: 5,
			Rlimits: map[string]gozzard.Rlimit{"nofile": {Soft: 65536, Hard: 65536}, "core": {Soft: 0, Hard: -1}}},
		Logs:  gozzard.Logs{Size: 1 << 20, Keep: 3, Age: 86400},
		After: []string{"redis", "db"},
	}}
	if d := cmp.Diff(want, got); d != "" || faults != nil {
		t.Errorf("%v\n%s", faults, d)
	}

	if names := got.Names("web"); !slices.Equal(names, []string{"web-1", "web-2", "web-3"}) {
		t.Errorf("names %v", names)
	}
	if env := got.Instance(1).Exec.Env; env["INSTANCE"] != "2" || env["A"] != "b" {
		t.Errorf("environment %v", env)
	}
	if got.Spec.Exec.Env["INSTANCE"] != "" {
		t.Error("an instance has changed the definition of all")
	}
}

// TestFlatDefaults checks what a document of one line means.
func TestFlatDefaults(t *testing.T) {
	policy := gozzard.DefaultPolicy()
	policy.StopCheckSecs = 10
	for text, name := range map[string]string{
		"command: /usr/bin/python3 -m http.server": "python3",
		"command: [redis-server, --port, '1']":     "redis-server",
		"command: MODE=x exec ./web.sh a":          "web.sh",
	} {
		got, faults := readDocument(t, text)
		if faults != nil {
			t.Errorf("%s: %v", text, faults)
			continue
		}
		want := &gozzard.Spec{Identity: gozzard.Identity{ProcName: name, SetupPath: "/"}, Policy: policy,
			Control: gozzard.Control{Start: got.Spec.Control.Start}}
		if d := cmp.Diff(want, got.Spec); d != "" {
			t.Errorf("%s: %s", text, d)
		}
	}
}

func TestFlatValues(t *testing.T) {
	for text, check := range map[string]func(*gozzard.Spec) bool{
		"memory: 50%":                    func(s *gozzard.Spec) bool { return s.Resource.Mem == 50 && s.Resource.MemB == 0 },
		"memory: 1.5GiB":                 func(s *gozzard.Spec) bool { return s.Resource.MemB == 3<<29 },
		"memory: 1000":                   func(s *gozzard.Spec) bool { return s.Resource.MemB == 1000 },
		`cpu: "25%"`:                     func(s *gozzard.Spec) bool { return s.Resource.CPU == 25 },
		`cpu: "2"`:                       func(s *gozzard.Spec) bool { return s.Resource.CPUs == 2 },
		"restart: never":                 func(s *gozzard.Spec) bool { return s.Policy.Kind == gozzard.KindOneShot },
		"restart: always":                func(s *gozzard.Spec) bool { return s.Policy.Kind == gozzard.KindResident },
		"schedule: '@daily'":             func(s *gozzard.Spec) bool { return s.Policy.Periodic() },
		"health: ./check.sh":             func(s *gozzard.Spec) bool { return s.Control.Health == "./check.sh" },
		"health: [./check.sh, a b]":      func(s *gozzard.Spec) bool { return s.Control.Health == "exec ./check.sh 'a b'" },
		"health: http://127.0.0.1:1/x?y": func(s *gozzard.Spec) bool { return s.Control.HealthHTTP == "http://127.0.0.1:1/x?y" },
		"health: tcp://:81":              func(s *gozzard.Spec) bool { return s.Control.HealthTCP == "127.0.0.1:81" },
		"health: {tcp: '[::1]:81'}":      func(s *gozzard.Spec) bool { return s.Control.HealthTCP == "[::1]:81" },
		"spec: {control: {stop_cmd: x}}": func(s *gozzard.Spec) bool { return s.Control.Stop == "x" && s.Policy.StopCheckSecs == 5 },
		"rlimits: {core: unlimited}":     func(s *gozzard.Spec) bool { return s.Exec.Rlimits["core"].Soft == gozzard.Unlimited },
	} {
		got, faults := readDocument(t, "command: ./web\n"+text)
		if faults != nil || got.Spec == nil || !check(got.Spec) {
			t.Errorf("%s: %v %+v", text, faults, got.Spec)
		}
	}
}

func TestFlatFaults(t *testing.T) {
	for text, want := range map[string]string{
		"spec: {control: {start_cmd: x}}":                        "command: is given twice: spec.control.start_cmd is another name of it. Remove one of them",
		"folder: /a\nspec: {identity: {setup_path: /b}}":         "folder: is given twice: spec.identity.setup_path",
		"restart: never\nspec: {monitor_policy: {auto_type: 1}}": "restart: is given twice: spec.monitor_policy.auto_type",
		"spec: {identity: {proc_nam: x}}":                        `spec.identity.proc_nam: unknown, did you mean "proc_name"?`,
		"health: {htp: x}":                                       `health.htp: unknown, did you mean "http"?`,
		"health: {tcp: 1, http: 'http://127.0.0.1/'}":            "health: give one of command, tcp and http",
		"health: {http: 'http://10.0.0.1.example/'}":             "health.http: must be localhost or an IP address of the host",
		"health: {http: 'file:///etc/passwd'}":                   "health.http: must be a URL",
		"health: {http: 'http://a:b@127.0.0.1/'}":                "health.http: must be a URL",
		"health: {tcp: 'metadata:80'}":                           "health.tcp: must be localhost or an IP address of the host",
		"health: {tcp: 70000}":                                   "health.tcp: must be 1 to 65535",
		"env: {1A: x}":                                           "env.1A: a name of the environment has letters",
		"env: {GOZZARD_RUN: x}":                                  "env.GOZZARD_RUN: names that begin with GOZZARD_ are set by Gozzard",
		"env: {A: [x]}":                                          "env.A: must be a string or a number",
		"umask: 0022":                                            `umask: must be a text in quotes such as "0022"`,
		`umask: "0999"`:                                          "umask: must be octal digits",
		"nice: 20":                                               "nice: must be -20 to 19",
		"rlimits: {nofil: 1}":                                    `rlimits.nofil: unknown, did you mean "nofile"?`,
		"rlimits: {nofile: [2, 1]}":                              "rlimits.nofile: the soft limit is above the hard limit",
		"rlimits: {nofile: many}":                                "rlimits.nofile: must be a number or unlimited",
		"stop_signal: SIGTERM":                                   "stop_signal: must be one of TERM",
		"stop_timeout: 500ms":                                    "stop_timeout: must be a duration in whole seconds",
		"stop_timeout: 25h":                                      "stop_timeout: must be 0 to 86400 seconds",
		"instances: 0":                                           "instances: must be 1 to 1000",
		"instances: 2\nenv: {INSTANCE: 1}":                       "env: must not have INSTANCE",
		"after: [a, a]":                                          "after[1]: \"a\" is in the list already",
		"restart: sometimes":                                     "restart: must be one of always, on-failure, never",
		"restart: {polcy: never}":                                `restart.polcy: unknown, did you mean "policy"?`,
		"schedule: never\nuser: x":                               "schedule: ",
		"schedule: '@daily'\nrestart: never":                     "restart: is not allowed with schedule",
		"time_zone: UTC":                                         "time_zone: is only allowed with schedule",
		"memory: 5 apples":                                       "memory: must be a size such as 512M or 1G",
		"memory: 101%":                                           "memory: must be at most 100%",
		"cpu: many":                                              "cpu: must be a number of cores such as 1.5",
		"logs: {size: 1K}":                                       "logs.size: must be at least 64K",
		"folder: relative":                                       `folder: "relative" is not a clean absolute path`,
		"env_file: /a/../b":                                      `env_file: "/a/../b" is not a clean absolute path`,
		"command: [a, {}]":                                       "command[1]: must be a string or a number",
		"command: []":                                            "command: required, is empty",
		"command: cd /x && ./run":                                "proc_name: required: the name of the program cannot be read from command",
		"proc_name: a/b":                                         "proc_name: is the name of a program",
		"command: ~\nuser: x":                                    "command: required: it starts the process",
	} {
		if !strings.HasPrefix(text, "command:") {
			text = "command: ./web\n" + text
		}
		_, faults := readDocument(t, text)
		if !slices.ContainsFunc(faults, func(f string) bool { return strings.HasPrefix(f, want) }) {
			t.Errorf("%s\n got %q\nwant %q", text, faults, want)
		}
	}
}

// TestExamplesOfKeys reads the example of every key. Parts of objects are read inside of their object.
func TestExamplesOfKeys(t *testing.T) {
	for _, k := range specjson.Keys() {
		outer, inner, isPart := strings.Cut(k.Name, ".")
		text := k.Name + ": " + k.Example + "\n"
		if isPart {
			text = outer + ":\n  " + inner + ": " + k.Example + "\n"
		}
		if k.Name == "time_zone" || k.Name == "overlap" {
			text += "schedule: '@daily'\n"
		}
		if k.Name != "command" && k.Name != "spec" {
			text += "command: ./web\n"
		}
		if k.Name == "spec" {
			text += "folder: /\n"
			text = strings.Replace(text, "./run.sh", "exec ./run.sh", 1)
		}
		if _, faults := readDocument(t, text); faults != nil {
			t.Errorf("%s: %v", text, faults)
		}
	}
}

// TestOldBytes has the bytes of definitions that an older program stored. They must not change: their digests are in audits
// and in the record of what hosts have.
func TestOldBytes(t *testing.T) {
	const full = `{"identity":{"index_key":"k","proc_name":"web","setup_path":"/opt/web","pid_path":"/run/web.pid",` +
		`"config_path":"/etc/web","log_path":"/var/log/web","user":"www"},"control":{"start_cmd":"a","stop_cmd":"b",` +
		`"restart_cmd":"c","reload_cmd":"d","kill_cmd":"e","version_cmd":"f","health_cmd":"g"},"resource":{"cpu":1.5,` +
		`"mem":2,"fd":3,"disk":4,"net":5,"act":"stop","samples":6,"enforce":true},"policy":{"kind":0,` +
		`"start_check_secs":1,"stop_check_secs":2,"start_retries":3,"start_interval":4,"crontab_rule":"@daily",` +
		`"op_timeout":5,"time_zone":"UTC","overlap":"kill","orphans":"wait","health_interval":6,"health_timeout":7,` +
		`"health_threshold":8,"health_restart":true},"report_id":9,"configmap":[{"path":"/etc/x","md5":"aa"}]}`
	spec, faults := readSpec(t, fullSpec, strict)
	if faults != nil {
		t.Fatal(faults)
	}
	if got := string(gozzard.EncodeSpec(spec)); got != full {
		t.Errorf("got  %s\nwant %s", got, full)
	}
}

// tryDocument reads a JSON document. ok is false if it is none.
func tryDocument(text []byte) (d specjson.Definition, faults int, ok bool) {
	doc, err := strictjson.Parse(text)
	if err != nil {
		return d, 0, false
	}
	var all strictjson.Faults
	root, err := doc.Root(&all)
	if err != nil {
		return d, 0, false
	}
	d = specjson.ReadDefinition(root)
	return d, all.Len(), true
}

// TestWithoutCommand: a definition of which nothing, or only a misspelt key, is left is told about command, not about a form that
// its writer does not use.
func TestWithoutCommand(t *testing.T) {
	for text, want := range map[string]string{
		"comand: ./web":    "command: required: it starts the process",
		"folder: /srv":     "command: required: it starts the process",
		"hosts: []":        "command: required: it starts the process",
		"command: ''":      "command: required",
		"proc_name: nginx": "",
	} {
		_, faults := readDocument(t, text)
		if want == "" && len(faults) > 0 || want != "" && !slices.ContainsFunc(faults, func(f string) bool { return strings.HasPrefix(f, want) }) {
			t.Errorf("%s\n got %q\nwant %q", text, faults, want)
		}
	}
}
