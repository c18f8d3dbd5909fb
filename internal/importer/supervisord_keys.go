package importer

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
)

// readKey reads a key of a section into a definition. An error means that the configuration cannot be read.
type readKey func(p *program, d *draft, e entry) error

// supervisordKeys are the keys of a program. nil: the key was read before, or it changes nothing.
var supervisordKeys = map[string]readKey{
	"command": (*program).command, "environment": nil, "numprocs": nil, "numprocs_start": nil, "process_name": nil,
	"directory": (*program).directory,
	"user":      func(_ *program, d *draft, e entry) error { d.account(e, e.value); return nil },
	"umask":     func(_ *program, d *draft, e entry) error { d.set("umask", e.value); return nil },
	"autostart": (*program).autostart, "autorestart": (*program).autorestart, "exitcodes": nil,
	"startsecs": duration("start_check"), "startretries": (*program).retries,
	"stopsignal": (*program).stopSignal, "stopwaitsecs": duration("stop_timeout"),
	"stopasgroup": (*program).stopAsGroup, "killasgroup": nil, // Gozzard always ends the whole group
	"priority":        (*program).priority,
	"redirect_stderr": nil, // both go into one log
	"stdout_logfile":  (*program).logFile, "stderr_logfile": (*program).logFile,
	"stdout_logfile_maxbytes": (*program).logSize, "stdout_logfile_backups": (*program).logKeep,
	"stderr_logfile_maxbytes": nil, "stderr_logfile_backups": nil,
	"stdout_capture_maxbytes": (*program).events, "stderr_capture_maxbytes": (*program).events,
	"stdout_events_enabled": (*program).events, "stderr_events_enabled": (*program).events,
	"stdout_syslog": (*program).syslog, "stderr_syslog": (*program).syslog,
	"serverurl": func(_ *program, d *draft, e entry) error {
		d.note(Harmless, e, "the variable SUPERVISOR_SERVER_URL is not set any more", "")
		return nil
	},
}

func duration(key string) readKey {
	return func(_ *program, d *draft, e entry) error {
		n, err := strconv.Atoi(e.value)
		if err != nil || n < 0 {
			return fault(e.file, e.line, "%s must be a number of seconds, is %q", e.key, clip(e.value))
		}
		d.seconds(key, float64(n))
		return nil
	}
}

func truth(e entry) (bool, error) {
	switch strings.ToLower(e.value) {
	case "y", "yes", "true", "t", "1", "on":
		return true, nil
	case "n", "no", "false", "f", "0", "off":
		return false, nil
	}
	return false, fault(e.file, e.line, "%s must be true or false, is %q", e.key, clip(e.value))
}

func (p *program) command(d *draft, e entry) error {
	words, err := posixWords(e.value)
	if err != nil {
		return fault(e.file, e.line, "command %v", err)
	}
	if len(words) == 0 {
		return fault(e.file, e.line, "command is empty")
	}
	if path.Base(words[0]) == "pidproxy" {
		d.note(LeftOut, e, "pidproxy passes signals of supervisord on", "use the command of the daemon itself, with pid_file")
		return nil
	}
	d.program(e, words)
	return nil
}

func (p *program) directory(d *draft, e entry) error {
	if !path.IsAbs(e.value) {
		d.note(LeftOut, e, "the folder is relative to the one that supervisord was started in", "give the absolute path")
		return nil
	}
	d.set("folder", path.Clean(e.value))
	return nil
}

func (p *program) autostart(d *draft, e entry) error {
	on, err := truth(e)
	if err == nil && !on {
		d.note(Check, e, "Gozzard starts nothing by itself until it is started once; from then on it also starts after a reboot",
			"stop it before a reboot if it must stay down")
	}
	return err
}

func (p *program) autorestart(d *draft, e entry) error {
	if strings.EqualFold(e.value, "unexpected") {
		return p.exitCodes(d)
	}
	on, err := truth(e)
	if err != nil {
		return fault(e.file, e.line, "autorestart must be true, false or unexpected, is %q", clip(e.value))
	}
	delete(d.values, "restart.policy") // always is the default
	if !on {
		d.set("restart.policy", "never")
	}
	return nil
}

// exitCodes compares the exit codes that are expected with those that Gozzard expects: 0.
func (p *program) exitCodes(d *draft) error {
	e, ok := p.sec.get("exitcodes")
	if !ok {
		return nil
	}
	var codes []int
	for text := range strings.SplitSeq(e.value, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil {
			return fault(e.file, e.line, "exitcodes must be numbers, separated by commas, is %q", clip(e.value))
		}
		codes = append(codes, n)
	}
	if !slices.Contains(codes, 0) {
		delete(d.values, "restart.policy")
	}
	if !slices.Equal(codes, []int{0}) {
		d.note(Check, e, "Gozzard knows 0 as the only exit code of an expected end: after the others the program is started again",
			"make the program exit with 0, or use restart: never")
	}
	return nil
}

func (p *program) retries(d *draft, e entry) error {
	n, err := strconv.Atoi(e.value)
	if err != nil || n < 0 {
		return fault(e.file, e.line, "startretries must be a number, is %q", clip(e.value))
	}
	if v, ok := p.sec.get("autorestart"); ok && d.values["restart.policy"] == "never" || ok && slices.Contains([]string{"false", "no", "off", "0"}, strings.ToLower(v.value)) {
		d.note(Harmless, e, "a program that is not started again has no number of restarts", "")
		return nil
	}
	d.set("restart.max", n)
	d.note(Check, e, "Gozzard counts restarts in a row, and a run of a minute begins a new count; supervisord counts starts that "+
		"fail within startsecs", "look at restart.max; 0 means that Gozzard never gives up")
	return nil
}

func (p *program) stopSignal(d *draft, e entry) error {
	name := strings.TrimPrefix(strings.ToUpper(e.value), "SIG")
	if n, err := strconv.Atoi(name); err == nil {
		name = map[int]string{1: "HUP", 2: "INT", 3: "QUIT", 9: "KILL", 10: "USR1", 12: "USR2", 15: "TERM", 28: "WINCH"}[n]
	}
	switch {
	case !slices.Contains(gozzard.StopSignals(), name):
		d.note(LeftOut, e, "a definition cannot stop a process with this signal", "give a command as stop")
	case name != "TERM":
		d.set("stop_signal", name)
	}
	return nil
}

func (p *program) stopAsGroup(d *draft, e entry) error {
	on, err := truth(e)
	if on && err == nil {
		d.note(Harmless, e, "Gozzard sends the stop signal to the main process, and ends what is left of its group afterwards", "")
	}
	return err
}

func (p *program) priority(d *draft, e entry) error {
	if e.value != "999" {
		d.note(Harmless, e, "there are no numbers of an order", "name the processes that must run before it: after: [NAME]")
	}
	return nil
}

func (p *program) logFile(d *draft, e entry) error {
	switch strings.ToUpper(e.value) {
	case "AUTO":
		return nil
	case "SYSLOG":
		return p.syslog(d, entry{e.file, e.line, e.key, "true"})
	case "NONE":
		d.note(Harmless, e, "Gozzard keeps what the process prints, in a log with limits", "")
		return nil
	}
	d.note(Harmless, e, "the output goes into the log that the agent keeps", "read it with gozzard logs NAME")
	return nil
}

var isByteSize = regexp.MustCompile(`(?i)^([0-9]{1,9})\s*(KB|MB|GB|)$`)

func (p *program) logSize(d *draft, e entry) error {
	m := isByteSize.FindStringSubmatch(e.value)
	if m == nil {
		return fault(e.file, e.line, "%s must be a size such as 50MB, is %q", e.key, clip(e.value))
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return fault(e.file, e.line, "%s must be a size such as 50MB, is %q", e.key, clip(e.value))
	}
	n <<= map[string]uint{"": 0, "KB": 10, "MB": 20, "GB": 30}[strings.ToUpper(m[2])]
	if n < 64<<10 {
		d.note(Harmless, e, "a log of Gozzard has a limit of 64K at least, and always one", "")
		return nil
	}
	d.size("logs.size", n)
	return nil
}

func (p *program) logKeep(d *draft, e entry) error {
	n, err := strconv.Atoi(e.value)
	if err != nil || n < 0 {
		return fault(e.file, e.line, "%s must be a number, is %q", e.key, clip(e.value))
	}
	if n < 1 || n > 100 {
		d.note(Harmless, e, "Gozzard keeps 1 to 100 old files of a log", "")
		return nil
	}
	d.set("logs.keep", n)
	return nil
}

func (p *program) events(d *draft, e entry) error {
	if e.value != "0" && !slices.Contains([]string{"false", "no", "off"}, strings.ToLower(e.value)) {
		d.note(Check, e, "Gozzard makes no events of what a process prints", "use a health check, or gozzard logs")
	}
	return nil
}

func (p *program) syslog(d *draft, e entry) error {
	on, err := truth(e)
	if on && err == nil {
		d.note(Check, e, "Gozzard does not send what a process prints to syslog", "read it with gozzard logs NAME, or use logger in the command")
	}
	return err
}
