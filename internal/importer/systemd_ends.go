package importer

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
)

// ends gives how the process is stopped and when it is started again.
func (s *service) ends() {
	s.stopping()
	s.times()
	s.restarts()
}

func (s *service) stopping() {
	if e, ok := s.value("Service", "KillSignal"); ok {
		name := strings.TrimPrefix(e.value, "SIG")
		_, stops := s.d.values["stop"]
		switch {
		case slices.Contains(gozzard.StopSignals(), name) && name != "TERM":
			s.d.set("stop_signal", name)
		case !slices.Contains(gozzard.StopSignals(), name) && !stops:
			s.d.set("stop", "kill -s "+shellWord(name)+" $GOZZARD_PID")
		}
	}
	if e, ok := s.value("Service", "KillMode"); ok && (e.value == "process" || e.value == "none") {
		s.d.note(LeftOut, e, "a stop by Gozzard also ends the processes that the main process started, such as sessions and jobs",
			"leave it with systemd, or remove KillMode by a drop-in if they may end")
	}
	if e, ok := s.value("Service", "SendSIGKILL"); ok && !s.unit.is("Service", "SendSIGKILL") {
		s.d.note(LeftOut, e, "Gozzard kills a process that does not end within stop_timeout", "leave it with systemd, or remove the key by a drop-in")
	}
}

// times gives the time limits. Those of systemd are 90 seconds.
func (s *service) times() {
	start, stop := 90.0, 90.0
	for _, key := range []string{"TimeoutSec", "TimeoutStartSec", "TimeoutStopSec"} {
		e, ok := s.value("Service", key)
		if !ok {
			continue
		}
		n, err := unitSeconds(e.value)
		if err != nil {
			s.d.note(LeftOut, e, key+" "+err.Error(), "")
			continue
		}
		if n <= 0 || n > maxSeconds {
			n = maxSeconds
			s.d.note(Harmless, e, "the longest time limit is one day", "")
		}
		if key != "TimeoutStopSec" {
			start = n
		}
		if key != "TimeoutStartSec" {
			stop = n
		}
	}
	s.d.seconds("stop_timeout", stop)
	if s.kind == "forking" || s.kind == "oneshot" {
		s.d.seconds("timeout", start)
	}
}

func (s *service) restarts() {
	e, ok := s.value("Service", "Restart")
	switch e.value {
	case "always":
	case "on-failure":
		s.d.set("restart.policy", "on-failure")
	case "on-abnormal", "on-abort", "on-watchdog":
		s.d.set("restart.policy", "on-failure")
		s.d.note(Harmless, e, "the process is also started again after it exited with a code that is not 0", "")
	case "on-success":
		s.d.note(LeftOut, e, "a definition cannot restart a process only after it succeeded", "")
	default:
		if ok && e.value != "no" {
			s.d.note(LeftOut, e, "this value of Restart is not known", "")
		}
		s.d.set("restart.policy", "never")
		if s.kind != "oneshot" {
			s.d.note(Check, e, "systemd does not start it again when it ends, because its unit has no Restart=, and neither does Gozzard",
				"to have it started again, write restart: always into its definition")
		}
		return
	}

	if e, ok := s.value("Service", "RestartSec"); ok {
		n, err := unitSeconds(e.value)
		if err != nil || n < 0 {
			s.d.note(LeftOut, e, "RestartSec must be a time", "")
			return
		}
		s.d.seconds("restart.delay", max(n, 1))
	}
	s.startLimit()
}

// startLimit gives the number of restarts after which systemd gives up.
func (s *service) startLimit() {
	for _, key := range []string{"StartLimitIntervalSec", "StartLimitInterval"} {
		for _, section := range []string{"Unit", "Service"} {
			if e, ok := s.value(section, key); ok && strings.Trim(e.value, "0s ") == "" {
				return // no limit
			}
		}
	}
	for _, section := range []string{"Unit", "Service"} {
		e, ok := s.value(section, "StartLimitBurst")
		if !ok {
			continue
		}
		n, err := parseInt(e, 0, 100000)
		if err != nil {
			s.d.note(LeftOut, e, err.Error(), "")
			return
		}
		s.d.set("restart.max", n)
		s.d.note(Check, e, "Gozzard counts restarts in a row, and a run of a minute begins a new count; systemd counts starts within StartLimitIntervalSec",
			"look at restart.max; 0 means that Gozzard never gives up")
	}
}

// rlimitNames are the limits of the kernel that a definition has, by the keys of systemd.
var rlimitNames = []string{"AS", "CORE", "CPU", "DATA", "FSIZE", "MEMLOCK", "MSGQUEUE", "NOFILE", "NPROC", "RTPRIO", "SIGPENDING", "STACK"}

// limits gives the limits of the process.
func (s *service) limits() {
	limits := map[string]any{}
	for _, name := range rlimitNames {
		e, ok := s.value("Service", "Limit"+name)
		if !ok {
			continue
		}
		soft, hard, both := strings.Cut(e.value, ":")
		if !both {
			hard = soft
		}
		a, err := rlimit(name, soft)
		b, err2 := rlimit(name, hard)
		switch {
		case err != nil || err2 != nil:
			s.d.note(LeftOut, e, "the limit must be a number with a unit, or infinity", "")
		case a == b:
			limits[strings.ToLower(name)] = a
		default:
			limits[strings.ToLower(name)] = []any{a, b}
		}
	}
	if len(limits) > 0 {
		s.d.set("rlimits", limits)
	}
	s.memory()
	s.processor()
}

// rlimit is a limit as a definition has it.
func rlimit(name, text string) (any, error) {
	if text == "infinity" {
		return "unlimited", nil
	}
	if name == "CPU" {
		n, err := unitSeconds(text)
		return int64(math.Ceil(n)), err
	}
	return unitSize(text)
}

var isUnitSize = regexp.MustCompile(`^([0-9]{1,18})([KMGTPE]?)B?$`)

func unitSize(text string) (int64, error) {
	m := isUnitSize.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return 0, fmt.Errorf("%q is not a size", clip(text))
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	shift := uint(strings.Index("KMGTPE", m[2])+1) * 10
	if m[2] == "" {
		shift = 0
	}
	if err != nil || n > math.MaxInt64>>1>>shift {
		return 0, fmt.Errorf("%q is not a size", clip(text))
	}
	return n << shift, nil
}

func (s *service) memory() {
	for _, key := range []string{"MemoryLimit", "MemoryMax"} {
		e, ok := s.unit.last("Service", key) // a percent sign is no specifier here
		if !ok || e.value == "infinity" {
			continue
		}
		if strings.HasSuffix(e.value, "%") {
			s.d.set("memory", e.value)
		} else if n, err := unitSize(e.value); err == nil && n > 0 {
			s.d.size("memory", n)
		} else {
			s.d.note(LeftOut, e, key+" must be a size", "")
		}
		s.byKernel()
	}
}

func (s *service) processor() {
	e, ok := s.unit.last("Service", "CPUQuota")
	if !ok {
		return
	}
	n, err := strconv.ParseFloat(strings.TrimSuffix(e.value, "%"), 64)
	if err != nil || !(n > 0 && n < 100*4096) || !strings.HasSuffix(e.value, "%") {
		s.d.note(LeftOut, e, "CPUQuota must be a percentage", "")
		return
	}
	s.d.set("cpu", n/100)
	s.byKernel()
}

// byKernel makes the kernel enforce limits, as it does for systemd. The agent does not act on its own samples.
func (s *service) byKernel() {
	s.d.set("limits.act", "alert")
	s.d.set("limits.enforce", true)
}
