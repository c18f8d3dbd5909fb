package gozzard

import (
	"fmt"
	"strings"
)

// Condition is the state of a process as people see it: it answers whether the process is well. RunState only says
// whether it runs. The numbers are sent, so they do not change.
type Condition uint8

// The conditions. Agents report all but the last; agents of earlier versions report none.
const (
	ConditionNone         Condition = 0
	ConditionRunning      Condition = 1
	ConditionStarting     Condition = 2  // its start command runs, its start check is not over, or it waits for others
	ConditionUnhealthy    Condition = 3  // it runs, and its health check fails
	ConditionBackingOff   Condition = 4  // it is started again at NextAt
	ConditionCrashLoop    Condition = 5  // as ConditionBackingOff, after CrashLoopExits quick ends in a row
	ConditionScheduled    Condition = 6  // a periodic process that waits for its next run
	ConditionCompleted    Condition = 7  // it ended with 0, as it should
	ConditionFailed       Condition = 8  // it ended badly or could not be started, and is not started again
	ConditionStopped      Condition = 9  // nothing wants it to run
	ConditionUnknown      Condition = 10 // its host does not report, or its agent cannot say whether it runs
	ConditionUnregistered Condition = 11 // its agent does not know it
)

// CrashLoopExits is how many quick ends or failed starts in a row make a crash loop. A run is quick if it lasted less
// than a minute, or less than three times its start check if that is longer.
const CrashLoopExits = 3

func conditionWords() [12]string {
	return [...]string{"", "running", "starting", "unhealthy", "backing_off", "crash_loop", "scheduled", "completed",
		"failed", "stopped", "unknown", "unregistered"}
}

// String is the word for the condition, as callers of the API see it.
func (c Condition) String() string {
	if words := conditionWords(); int(c) < len(words) {
		return words[c]
	}
	return fmt.Sprintf("condition(%d)", uint8(c))
}

// Conditions are all conditions, without ConditionNone.
func Conditions() []Condition {
	var all []Condition
	for c := ConditionRunning; c <= ConditionUnregistered; c++ {
		all = append(all, c)
	}
	return all
}

// ParseCondition reads the word for a condition. The parts of a word may be joined by an underscore, a hyphen or a
// space.
func ParseCondition(word string) (Condition, bool) {
	word = strings.NewReplacer("-", "_", " ", "_").Replace(word)
	for _, c := range Conditions() {
		if c.String() == word {
			return c, true
		}
	}
	return ConditionNone, false
}

// ShownKind is the kind of a process in a status. Agents of earlier versions report none.
type ShownKind uint8

// The shown kinds. The numbers are sent, so they do not change.
const (
	ShownNone     ShownKind = 0
	ShownResident ShownKind = 1
	ShownPeriodic ShownKind = 2
	ShownOneShot  ShownKind = 3
)

// String is the word for the kind, "" if it is not known.
func (k ShownKind) String() string {
	switch k {
	case ShownResident:
		return "resident"
	case ShownPeriodic:
		return "periodic"
	case ShownOneShot:
		return "one_shot"
	}
	return ""
}

// Shown is the kind of a process with this policy. A periodic process without a rule counts as resident.
func (p Policy) Shown() ShownKind {
	switch {
	case p.Periodic():
		return ShownPeriodic
	case p.Kind == KindOneShot:
		return ShownOneShot
	}
	return ShownResident
}

// Health is the result of a health check.
type Health uint8

// The results. The numbers are sent, so they do not change.
const (
	HealthNone    Health = 0 // there is no check, or no result yet
	HealthPassing Health = 1
	HealthFailing Health = 2
)

// String is the word for the result.
func (h Health) String() string {
	switch h {
	case HealthPassing:
		return "passing"
	case HealthFailing:
		return "failing"
	}
	return ""
}

// Ending is how a process or a run ended. The zero value means that no end is known.
type Ending struct {
	At     int64  `json:"at,omitempty"`     // Unix milliseconds
	Known  bool   `json:"known,omitempty"`  // Code and Signal are known
	Code   int32  `json:"code,omitempty"`   // without a meaning if there is a signal
	Signal string `json:"signal,omitempty"` // such as SIGKILL
	Core   bool   `json:"core,omitempty"`   // the kernel wrote a core dump
	OOM    bool   `json:"oom,omitempty"`    // the kernel ended it for its memory
}

// IsZero reports whether no end is known.
func (e Ending) IsZero() bool { return e == Ending{} }

// Well reports whether it is known to have exited with 0.
func (e Ending) Well() bool { return e.Known && e.Code == 0 && e.Signal == "" && !e.OOM }

// LastRun is the newest run of a process that is expected to end.
type LastRun struct {
	StartedAt int64  `json:"started_at,omitempty"` // Unix milliseconds; 0 means that no run is known
	End       Ending `json:"end,omitzero"`         // zero while it runs
}

// ConditionOf is the condition of a process that its agent has reported. Agents of earlier versions only report whether
// it runs.
func (s *Status) ConditionOf() Condition {
	switch {
	case s.State == StateUnregistered:
		return ConditionUnregistered
	case s.Condition >= ConditionRunning && s.Condition <= ConditionUnknown:
		return s.Condition
	case s.State == StateRunning:
		return ConditionRunning
	}
	return ConditionStopped
}
