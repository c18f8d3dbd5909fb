package gozzard

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Spec is the definition of a process: who it is, how it is driven, what it may use and how it is kept. All
// defaults are applied where a request enters (DefaultPolicy), so a stored Spec says exactly what will be done and
// a 0 means 0.
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

// Control holds the caller's shell commands.
type Control struct {
	Shell   Shell  `json:"shell,omitempty"` // they are written for; "" is the one that the host's system has
	Start   string `json:"start_cmd,omitempty"`
	Stop    string `json:"stop_cmd,omitempty"`
	Restart string `json:"restart_cmd,omitempty"`
	Reload  string `json:"reload_cmd,omitempty"`
	Kill    string `json:"kill_cmd,omitempty"`
	Version string `json:"version_cmd,omitempty"`
	Health  string `json:"health_cmd,omitempty"`
}

// Shell is what a definition's commands are written for.
type Shell string

// The shells. Those of Windows run nowhere else.
const (
	ShellSh  Shell = "sh"
	ShellBat Shell = "bat"
	ShellPS1 Shell = "ps1" // PowerShell
)

// RunsOn reports whether a system, named as Go names them, can have the shell.
func (s Shell) RunsOn(system string) bool {
	switch s {
	case "", ShellSh:
		return true
	case ShellBat, ShellPS1:
		return system == "windows"
	}
	return false
}

// Resource holds limits: CPU and Mem are percent of the whole machine, 0 is no limit.
type Resource struct {
	CPU  float64 `json:"cpu,omitempty"`
	Mem  float64 `json:"mem,omitempty"`
	FD   int64   `json:"fd,omitempty"`
	Disk int64   `json:"disk,omitempty"`
	Net  int64   `json:"net,omitempty"`

	Act     LimitAct `json:"act,omitempty"`     // what happens over a limit
	Samples int      `json:"samples,omitempty"` // over it so many times in a row; 0 is DefaultLimitSamples
	Enforce bool     `json:"enforce,omitempty"` // let the kernel hold CPU and Mem too, where it can
}

// LimitAct is what happens to a process over its limit. A hosted process that was ended by it is pulled up again.
type LimitAct string

// The acts. "" means ActKill.
const (
	ActAlert   LimitAct = "alert"
	ActStop    LimitAct = "stop" // stop_cmd
	ActKill    LimitAct = "kill"
	ActRestart LimitAct = "restart"
)

// DefaultLimitSamples is how many samples in a row must be over a limit.
const DefaultLimitSamples = 2

// Kind says how long a process is meant to run.
type Kind int

// The kinds. The numbers are stored and sent, so they do not change.
const (
	KindPeriodic Kind = 0 // runs at the times of its crontab rule
	KindResident Kind = 1 // runs all the time
	KindOneShot  Kind = 2 // runs once and may end by itself
)

// Policy says how the process is watched.
type Policy struct {
	Kind           Kind   `json:"kind"`
	StartCheckSecs int    `json:"start_check_secs"`
	StopCheckSecs  int    `json:"stop_check_secs"`
	StartRetries   int    `json:"start_retries"`
	StartInterval  int    `json:"start_interval"`
	CrontabRule    string `json:"crontab_rule,omitempty"`
	OpTimeout      int    `json:"op_timeout"`

	TimeZone string  `json:"time_zone,omitempty"` // of CrontabRule; "" is the host's
	Overlap  Overlap `json:"overlap,omitempty"`   // of periodic runs

	HealthInterval  int  `json:"health_interval,omitempty"`  // seconds; 0 is 30
	HealthTimeout   int  `json:"health_timeout,omitempty"`   // seconds; 0 is 10
	HealthThreshold int  `json:"health_threshold,omitempty"` // failures in a row until it counts; 0 is 3
	HealthRestart   bool `json:"health_restart,omitempty"`   // restart a hosted process that fails
}

// Overlap says what a periodic run does when the one before still runs.
type Overlap string

// The overlaps; skip is what "" means.
const (
	OverlapSkip Overlap = "skip"
	OverlapKill Overlap = "kill" // end the old one first
)

// ConfigCheck names a configuration file and its digest (reserved by the callers' protocol; kept and given back).
type ConfigCheck struct {
	Path string `json:"path"`
	MD5  string `json:"md5"`
}

// DefaultPolicy is what an absent or null field of a request means.
func DefaultPolicy() Policy {
	return Policy{Kind: KindResident, StartCheckSecs: 5, StopCheckSecs: 5, StartRetries: 4, StartInterval: 10,
		OpTimeout: 60}
}

// Command returns the shell text for an action, "" when the definition has none.
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

// Budget is the longest time the agent may need for the action: its commands' time-outs and its checks. The server
// adds its own slack.
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

// EncodeSpec gives the stable bytes that are stored, hashed and sent.
func EncodeSpec(s *Spec) []byte {
	b, err := json.Marshal(s)
	if err != nil { // a Spec has only strings and numbers; NaN is refused at the edge
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

// Periodic reports whether the process follows a rule. Callers send this kind without a rule for processes that
// simply stay; those are resident.
func (p Policy) Periodic() bool {
	return p.Kind == KindPeriodic && strings.TrimSpace(p.CrontabRule) != ""
}
