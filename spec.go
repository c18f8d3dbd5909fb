package gozzard

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Spec is the definition of a process: how to find, control, limit and supervise it. Defaults are filled in where a
// request enters (DefaultPolicy), so a stored Spec says exactly what the agent does, and 0 means 0.
type Spec struct {
	Identity  Identity      `json:"identity"`
	Control   Control       `json:"control"`
	Resource  Resource      `json:"resource"`
	Policy    Policy        `json:"policy"`
	ReportID  int64         `json:"report_id,omitempty"`
	ConfigMap []ConfigCheck `json:"configmap,omitempty"`

	// Fields that only our own documents have. Those without a value are not encoded: the bytes of a definition that an
	// older program made stay the same.
	Exec  Exec     `json:"exec,omitzero"`
	Logs  Logs     `json:"logs,omitzero"`
	After []string `json:"after,omitempty"` // processes of the namespace on the same host that must run before this one starts

	File *FileSpec `json:"file,omitempty"` // for actions on files: nothing else counts then but Identity.User

	Script *ScriptSpec `json:"script,omitempty"` // for ActionScript: nothing else counts then but Identity.User

	Restart *RestartSpec `json:"restart,omitempty"` // for ActionRestartAgent: nothing else counts then
}

// Identity says how the process is found on its host.
type Identity struct {
	IndexKey   string `json:"index_key,omitempty"`
	ProcName   string `json:"proc_name"`
	SetupPath  string `json:"setup_path,omitempty"`
	PIDPath    string `json:"pid_path,omitempty"`
	ConfigPath string `json:"config_path,omitempty"`
	LogPath    string `json:"log_path,omitempty"`
	User       string `json:"user,omitempty"`
}

// Control has the shell commands of the process.
type Control struct {
	Shell   Shell  `json:"shell,omitempty"` // that runs the commands; "" means the usual shell of the host's system
	Start   string `json:"start_cmd,omitempty"`
	Stop    string `json:"stop_cmd,omitempty"`
	Restart string `json:"restart_cmd,omitempty"`
	Reload  string `json:"reload_cmd,omitempty"`
	Kill    string `json:"kill_cmd,omitempty"`
	Version string `json:"version_cmd,omitempty"`
	Health  string `json:"health_cmd,omitempty"`

	// The agent itself makes these health checks. A definition has one kind of health check at most.
	HealthTCP  string `json:"health_tcp,omitempty"`  // an address of the host that must accept a connection
	HealthHTTP string `json:"health_http,omitempty"` // a URL of the host that must answer with 200 to 399
}

// Probed reports whether the definition has a health check of any kind.
func (c *Control) Probed() bool { return c.Health != "" || c.HealthTCP != "" || c.HealthHTTP != "" }

// Exec is what the agent sets up before it executes a command of the process.
type Exec struct {
	Env     map[string]string `json:"env,omitempty"`
	EnvFile string            `json:"env_file,omitempty"` // a file of the host with more variables; Env wins
	Group   string            `json:"group,omitempty"`    // "" means the main group of the account
	Umask   string            `json:"umask,omitempty"`    // octal digits; "" means 0022
	Nice    int               `json:"nice,omitempty"`
	Rlimits map[string]Rlimit `json:"rlimits,omitempty"` // by the names of RlimitNames
}

// Rlimit is a resource limit of the kernel for each process.
type Rlimit struct {
	Soft int64 `json:"soft"`
	Hard int64 `json:"hard"`
}

// Unlimited is the Rlimit without a bound.
const Unlimited = -1

// RlimitNames are the resource limits that a definition can set, as setrlimit(2) names them.
func RlimitNames() []string {
	return []string{"as", "core", "cpu", "data", "fsize", "memlock", "msgqueue", "nofile", "nproc", "rtprio", "sigpending",
		"stack"}
}

// Logs bounds the log of what the process prints. 0 means the setting of the agent.
type Logs struct {
	Size int64 `json:"size,omitempty"` // bytes at which a new file begins
	Keep int   `json:"keep,omitempty"` // old files
	Age  int   `json:"age,omitempty"`  // seconds after which an old file is removed
}

// Shell is the language of the commands of a definition.
type Shell string

// The shells. ShellBat and ShellPS1 exist on Windows only.
const (
	ShellSh  Shell = "sh"
	ShellBat Shell = "bat"
	ShellPS1 Shell = "ps1" // PowerShell
)

// RunsOn reports whether the shell exists on a system, which is named as in GOOS.
func (s Shell) RunsOn(system string) bool {
	switch s {
	case "", ShellSh:
		return true
	case ShellBat, ShellPS1:
		return system == "windows"
	}
	return false
}

// Resource has the limits of a process. CPU and Mem are percent of the whole machine; 0 means no limit. If both forms of a
// limit are given, the lower one counts.
type Resource struct {
	CPU  float64 `json:"cpu,omitempty"`
	Mem  float64 `json:"mem,omitempty"`
	CPUs float64 `json:"cpu_cores,omitempty"`
	MemB int64   `json:"mem_bytes,omitempty"`
	FD   int64   `json:"fd,omitempty"`
	Disk int64   `json:"disk,omitempty"`
	Net  int64   `json:"net,omitempty"`

	Act     LimitAct `json:"act,omitempty"`     // what happens over a limit
	Samples int      `json:"samples,omitempty"` // in a row over the limit; 0 means DefaultLimitSamples
	Enforce bool     `json:"enforce,omitempty"` // the kernel enforces CPU and Mem too, where it can
}

// LimitsCPU reports whether there is a limit of processor time in any form.
func (r Resource) LimitsCPU() bool { return r.CPU > 0 || r.CPUs > 0 }

// LimitsMem reports whether there is a limit of memory in any form.
func (r Resource) LimitsMem() bool { return r.Mem > 0 || r.MemB > 0 }

// LimitAct is what the agent does with a process that is over its limit. A supervised process is started again
// afterwards.
type LimitAct string

// The acts. "" means ActKill.
const (
	ActAlert   LimitAct = "alert" // only report an event
	ActStop    LimitAct = "stop"  // run the stop command
	ActKill    LimitAct = "kill"
	ActRestart LimitAct = "restart"
)

// DefaultLimitSamples is how many samples in a row have to be over a limit.
const DefaultLimitSamples = 2

// Kind says how long a process is meant to run.
type Kind int

// The kinds. The numbers are stored and sent, so they do not change.
const (
	KindPeriodic Kind = 0 // runs at the times of its crontab rule
	KindResident Kind = 1 // runs all the time
	KindOneShot  Kind = 2 // runs once and may end by itself
)

// Policy says how the agent supervises the process. Times are in seconds.
type Policy struct {
	Kind           Kind   `json:"kind"`
	StartCheckSecs int    `json:"start_check_secs"`
	StopCheckSecs  int    `json:"stop_check_secs"`
	StartRetries   int    `json:"start_retries"`
	StartInterval  int    `json:"start_interval"`
	CrontabRule    string `json:"crontab_rule,omitempty"`
	OpTimeout      int    `json:"op_timeout"`

	TimeZone string  `json:"time_zone,omitempty"` // of CrontabRule; "" means the time zone of the host
	Overlap  Overlap `json:"overlap,omitempty"`   // of periodic runs

	Orphans Orphans `json:"orphans,omitempty"` // what a main process that has ended left behind

	HealthInterval  int  `json:"health_interval,omitempty"`  // 0 means 30
	HealthTimeout   int  `json:"health_timeout,omitempty"`   // 0 means 10
	HealthThreshold int  `json:"health_threshold,omitempty"` // failures in a row until it is unhealthy; 0 means 3
	HealthRestart   bool `json:"health_restart,omitempty"`   // restart a supervised process that is unhealthy

	StopSignal string  `json:"stop_signal,omitempty"` // one of StopSignals; "" means TERM
	Restart    Restart `json:"restart,omitempty"`     // of a resident process
	RestartMax int     `json:"restart_max,omitempty"` // restarts in a row after which the agent gives up; 0 means never
}

// Restart says after which ends a resident process is started again.
type Restart string

// The ways. "" means after every end.
const RestartOnFailure Restart = "on-failure" // not after it exited with 0

// StopSignals are the signals that a definition can choose for a stop without a command.
func StopSignals() []string {
	return []string{"TERM", "INT", "QUIT", "HUP", "USR1", "USR2", "WINCH", "KILL"}
}

// MayEnd reports whether the process is expected to end by itself, so that its end is no failure.
func (p Policy) MayEnd() bool {
	return p.Kind == KindOneShot || p.Periodic() || p.Restart == RestartOnFailure
}

// Overlap says what happens when a periodic run is due and the previous run has not ended.
type Overlap string

// The overlaps. "" means OverlapSkip.
const (
	OverlapSkip Overlap = "skip"
	OverlapKill Overlap = "kill" // end the previous run first
)

// Orphans says what happens with the other processes of a supervised process whose main process has ended.
type Orphans string

// The ways. "" means OrphansKill.
const (
	OrphansKill Orphans = "kill" // kill them after a short time, then start the process again
	OrphansWait Orphans = "wait" // wait until they have ended, then start the process again
)

// ConfigCheck is a configuration file with its digest. It is stored and returned; nothing uses it yet.
type ConfigCheck struct {
	Path string `json:"path"`
	MD5  string `json:"md5"`
}

// DefaultPolicy has the values for fields that a request leaves out.
func DefaultPolicy() Policy {
	return Policy{Kind: KindResident, StartCheckSecs: 5, StopCheckSecs: 5, StartRetries: 4, StartInterval: 10,
		OpTimeout: 60}
}

// Command is the shell command for an action, "" when the definition has none.
func (s *Spec) Command(a Action) string {
	switch a {
	case ActionStart:
		return s.Control.Start
	case ActionStop:
		return s.Control.Stop
	case ActionRestart:
		return s.Control.Restart
	case ActionReload:
		return s.Control.Reload
	case ActionKill:
		return s.Control.Kill
	}
	return ""
}

// Budget is the longest time that the agent needs for an action: the time-outs of its commands and its checks. The
// server adds time for the way.
func (s *Spec) Budget(a Action) time.Duration {
	p := s.Policy
	secs := 0
	switch a {
	case ActionStart:
		secs = p.OpTimeout + p.StartCheckSecs
	case ActionStop, ActionKill:
		secs = p.OpTimeout + 2*p.StopCheckSecs
	case ActionRestart:
		secs = p.OpTimeout + p.StartCheckSecs
		if s.Control.Restart == "" {
			secs += p.OpTimeout + 2*p.StopCheckSecs
		}
	case ActionReload:
		secs = p.OpTimeout
	case ActionConfigure, ActionTransfer:
		secs = fileSeconds
		if s.File != nil {
			secs += int(s.File.Size / fileRate)
		}
	case ActionScript:
		secs = scriptSeconds
		if s.Script != nil {
			secs += int(s.Script.Time() / time.Second)
		}
	case ActionRestartAgent:
		secs = restartSeconds
		if s.Restart != nil {
			secs += s.Restart.Wait
		}
	}
	if len(s.After) > 0 && (a == ActionStart || a == ActionRestart) {
		secs += AfterPatience // what it waits for comes first
	}

	return time.Duration(secs) * time.Second
}

// A file may take fileSeconds, and a second more for every fileRate bytes.
const (
	fileSeconds = 30
	fileRate    = 128 << 10
)

// scriptSeconds is what a script may take beside the time of its steps: it waits for other scripts, and what is killed takes
// a moment to end.
const scriptSeconds = 30

// restartSeconds is what an agent may take to restart and to open a session again.
const restartSeconds = 60

// DefinitionForm is the form of definitions of this program. See HostInfo.Form.
const DefinitionForm = 1

// Newer lists what the definition has that an agent without a form ignores, by the keys of documents.
func (s *Spec) Newer() []string {
	var keys []string
	for _, x := range []struct {
		key string
		has bool
	}{
		{"env", len(s.Exec.Env) > 0}, {"env_file", s.Exec.EnvFile != ""}, {"group", s.Exec.Group != ""},
		{"umask", s.Exec.Umask != ""}, {"nice", s.Exec.Nice != 0}, {"rlimits", len(s.Exec.Rlimits) > 0},
		{"after", len(s.After) > 0}, {"stop_signal", s.Policy.StopSignal != ""},
		{"restart", s.Policy.Restart != "" || s.Policy.RestartMax != 0},
		{"memory in bytes", s.Resource.MemB != 0}, {"cpu in cores", s.Resource.CPUs != 0},
		{"health by tcp or http", s.Control.HealthTCP != "" || s.Control.HealthHTTP != ""}, {"logs", s.Logs != Logs{}},
	} {
		if x.has {
			keys = append(keys, x.key)
		}
	}
	return keys
}

// AfterPatience is how many seconds a start waits for the processes that must run before it.
const AfterPatience = 60

// EncodeSpec makes the bytes that are stored, hashed and sent. They are the same for equal definitions.
func EncodeSpec(s *Spec) []byte {
	b, err := json.Marshal(s)
	if err != nil { // a Spec has only texts and numbers, and the doors reject NaN
		panic(fmt.Sprintf("encode spec: %v", err))
	}
	return b
}

// DecodeSpec reads what EncodeSpec wrote.
func DecodeSpec(b []byte) (*Spec, error) {
	var s Spec
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("decode spec: %w", err)
	}
	return &s, nil
}

// Periodic reports whether the process runs at the times of a rule. Some callers send KindPeriodic without a rule;
// such a process counts as resident.
func (p Policy) Periodic() bool {
	return p.Kind == KindPeriodic && strings.TrimSpace(p.CrontabRule) != ""
}
