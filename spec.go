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

// Resource has the limits of a process. CPU and Mem are percent of the whole machine; 0 means no limit.
type Resource struct {
	CPU  float64 `json:"cpu,omitempty"`
	Mem  float64 `json:"mem,omitempty"`
	FD   int64   `json:"fd,omitempty"`
	Disk int64   `json:"disk,omitempty"`
	Net  int64   `json:"net,omitempty"`

	Act     LimitAct `json:"act,omitempty"`     // what happens over a limit
	Samples int      `json:"samples,omitempty"` // in a row over the limit; 0 means DefaultLimitSamples
	Enforce bool     `json:"enforce,omitempty"` // the kernel enforces CPU and Mem too, where it can
}

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
	}

	return time.Duration(secs) * time.Second
}

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
