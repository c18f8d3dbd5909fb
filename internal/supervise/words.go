package supervise

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/identity"
)

// The texts of verdicts, events and statuses.

const (
	maxVersionBytes = 64
	maxStatusBytes  = 512 // of Status.Message: the server has it in memory for the whole fleet
	headBytes       = 160 // of a text that is too long: its beginning
	internalError   = "internal error"
	commandDone     = "start_cmd exited with 0 and nothing of it runs any more"
)

// clipText bounds a text of a status or an event. It keeps the beginning, which says what happened, and the end: what a
// command printed last is why it failed.
func clipText(s string) string {
	const gap = " … "
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= maxStatusBytes {
		return s
	}
	head := gozzard.Clip(s, headBytes)
	tail := s[len(s)-(maxStatusBytes-len(head)-len(gap)):]
	for tail != "" && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	if _, rest, found := strings.Cut(tail, "\n"); found && 3*len(rest) > len(tail) { // whole lines, if enough is left
		tail = rest
	}
	return strings.TrimRight(head, " \n") + gap + tail
}

func ok() gozzard.Outcome { return gozzard.Outcome{Code: gozzard.CodeOK} }

func failed(code gozzard.Code, format string, args ...any) gozzard.Outcome {
	return gozzard.Outcome{Code: code, Message: fmt.Sprintf(format, args...)}
}

func noDefinition(key gozzard.Key) gozzard.Outcome {
	return failed(gozzard.CodeNoDefinition, "no definition of %s on this host: register it first", key)
}

func alreadyRunning(key gozzard.Key, spec *gozzard.Spec) gozzard.Outcome {
	return found(gozzard.CodeAlreadyRunning, gozzard.FoundAlreadyRunning, procName(key, spec), "")
}

// explainRunning adds to the verdict of a start that found the process running what became of its supervision. A process
// that was supervised before needs no words.
func explainRunning(out gozzard.Outcome, wasHosted bool) gozzard.Outcome {
	found, name, _, ok := gozzard.SplitStateMessage(out.Message)
	switch {
	case out.Code != gozzard.CodeAlreadyRunning || !ok:
	case !out.Hosted:
		out.Message = gozzard.StateMessage(found, name, gozzard.NotSupervised)
	case !wasHosted:
		out.Message = gozzard.StateMessage(found, name, gozzard.SupervisedNow)
	}
	return out
}

func notRunning(key gozzard.Key, spec *gozzard.Spec) gozzard.Outcome {
	return found(gozzard.CodeNotRunning, gozzard.FoundNotRunning, procName(key, spec), "")
}

// found is an outcome about the state of a process. The doors have their own sentences for it, so its message has a
// fixed form.
func found(code gozzard.Code, state gozzard.Found, name, detail string) gozzard.Outcome {
	return gozzard.Outcome{Code: code, Message: gozzard.StateMessage(state, name, detail)}
}

// unclear is the verdict about a process of which it cannot be said which one it is.
func unclear(why string) gozzard.Outcome {
	return failed(gozzard.CodeCommandFailed, "%s; nothing was done: end one of them, or correct the pid file", why)
}

// pidList names processes in a message.
func pidList(procs []Proc) string {
	const most = 5
	var b strings.Builder
	for i, p := range procs {
		switch {
		case i == most:
			fmt.Fprintf(&b, " and %d more", len(procs)-most)
			return b.String()
		case i == 0:
			b.WriteString("pid ")
		default:
			b.WriteString(", ")
		}
		b.WriteString(strconv.Itoa(p.PID))
	}
	return b.String()
}

// procName is the name of the process on the machine. A definition without commands need not have it.
func procName(key gozzard.Key, spec *gozzard.Spec) string {
	if spec == nil || spec.Identity.ProcName == "" {
		return key.Name
	}
	return spec.Identity.ProcName
}

func commandName(a gozzard.Action) string { return a.String() + "_cmd" }

// noCommand is the verdict of an action whose command is missing. It has the key of both forms of a definition.
func noCommand(a gozzard.Action) gozzard.Outcome {
	key := a.String()
	if a == gozzard.ActionStart {
		key = "command"
	}
	return failed(gozzard.CodeCommandFailed, "the definition has no %s command: give it %s (%s)", a, key, commandName(a))
}

// judgeCommand decides whether a command succeeded. The message of a failure is what the command printed, or how it
// ended if it printed nothing. near says what ran in place of the process.
func judgeCommand(a gozzard.Action, res Result, err error, timeout time.Duration, near string) gozzard.Outcome {
	output := strings.TrimSpace(res.Output)
	name := commandName(a)
	switch {
	case err != nil:
		return failed(gozzard.CodeCommandFailed, "cannot run %s: %v", name, err)
	case res.TimedOut:
		return failed(gozzard.CodeCommandFailed, "%s did not end within %s and was killed%s", name, spell(timeout),
			near+lastOutput(output))
	case res.Signal != "":
		return failed(gozzard.CodeCommandFailed, "%s was ended by %s%s", name, res.Signal, lastOutput(output))
	case res.ExitCode != 0 && output != "":
		return failed(gozzard.CodeCommandFailed, "%s", output)
	case res.ExitCode != 0:
		return failed(gozzard.CodeCommandFailed, "%s exited with %d and printed nothing", name, res.ExitCode)
	}

	return ok()
}

// nearText says what ran in the foreground of a start command in place of the process, and how to correct that.
func nearText(c identity.Candidate, procName string) string {
	switch {
	case c.IsZero():
		return ""
	case c.Barred != "":
		return fmt.Sprintf("; pid %d runs as %q, but it is the shell that runs start_cmd, and a shell line is not the process: "+
			"write exec before the program (cd /dir && exec ./program) and its name as proc_name, or exec sh -c '...' around a line "+
			"that is to be the process", c.PID, procName)
	case c.Name != "":
		return fmt.Sprintf("; pid %d runs as %q, but the definition says proc_name %q: correct proc_name if this is the process",
			c.PID, c.Name, procName)
	}
	return fmt.Sprintf("; pid %d is not the process: it %s", c.PID, c.Misfit)
}

// notAlive is the verdict of a start or restart whose process is not there at the end of the check.
func notAlive(name, reason, output string) gozzard.Outcome {
	return found(gozzard.CodeCheckFailed, gozzard.FoundNotRunning, name,
		strings.TrimPrefix(reason+lastOutput(strings.TrimSpace(output)), "; "))
}

// stillAlive is the verdict of a stop or kill whose process is still running.
func stillAlive(name string, pid int, output string) gozzard.Outcome {
	return found(gozzard.CodeCheckFailed, gozzard.FoundStillRunning, name,
		fmt.Sprintf("pid %d%s", pid, lastOutput(strings.TrimSpace(output))))
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

func lastOutput(output string) string {
	if output == "" {
		return ""
	}
	return "; last output: " + output
}

// exitText says how a process ended, as far as that is known.
func exitText(e Exit) string {
	switch {
	case e.OOM:
		return "was ended by the kernel for its memory (oom)"
	case !e.Known:
		return "ended with an exit status that is not known"
	case e.Signal != "":
		if e.Core {
			return "was ended by " + e.Signal + " (core dumped)"
		}
		return "was ended by " + e.Signal
	}
	return fmt.Sprintf("exited with %d", e.Code)
}

// crashLoop is the status of a process that waits for its next pull-up.
func crashLoop(downs int, delay time.Duration, last string) string {
	exits := "exits"
	if downs == 1 {
		exits = "exit"
	}
	if downs < gozzard.CrashLoopExits { // its state is "backing off"
		return fmt.Sprintf("backing off: %d %s, next start in %s%s", downs, exits, spell(delay), because(last))
	}
	return fmt.Sprintf("crash loop: %d %s, next start in %s%s", downs, exits, spell(delay), because(last))
}

// gaveUp is the status of a process that ended too often in a row.
func gaveUp(most int) string {
	return fmt.Sprintf("gave up after %d restarts in a row (restart.max) and waits for a start by hand", most)
}

func spell(d time.Duration) string {
	if d >= time.Second {
		d = d.Round(100 * time.Millisecond)
	}
	return fmt.Sprintf("%g s", d.Seconds())
}

// statusText is the message of a status: what happened last, followed by the notes.
func statusText(message string, n notes) string {
	for _, note := range []string{n.identity, n.limit, n.health, n.kernel, n.plan} {
		switch {
		case note == "":
		case message == "":
			message = note
		default:
			message += "; " + note
		}
	}
	return clipText(message)
}

// restartText says what came of a restart that no operation asked for. why is what was wrong before.
func restartText(name, why, failure string) string {
	if failure != "" {
		return fmt.Sprintf("cannot restart %s, which was %s: %s", name, why, failure)
	}
	return fmt.Sprintf("restarted %s, which was %s", name, why)
}

// cancelText says that a restart which was due does not happen.
func cancelText(name string, by gozzard.Action) string {
	return fmt.Sprintf("cancelled the restart of %s because of the action %s", name, by)
}

// overText says which limit was passed, by how much and how often.
func overText(limit int, used, allowed float64, samples int) string {
	name := [limitCount]string{"cpu", "mem", "fd", "disk", "net", "cpu", "mem"}[limit]
	unit := [limitCount]string{" %", " %", "", " bytes", " bytes", " cores", " MiB"}[limit]
	return fmt.Sprintf("%s %s%s is over its limit of %s%s in %d samples in a row", name, amount(used), unit,
		amount(allowed), unit, samples)
}

func poolText(g gozzard.Group, resource string, sum, limit float64) string {
	return fmt.Sprintf("the processes of pool %s in %s use %s %% %s of its limit of %s %% in %d samples in a row, and this one was chosen",
		gozzard.Clip(g.ID, maxVersionBytes), g.Namespace, amount(sum), resource, amount(limit), gozzard.DefaultLimitSamples)
}

// amount writes a number with one decimal digit, or none if it is whole.
func amount(v float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}

// curbText says what was done about a process over a limit, and how often.
func curbText(over string, act gozzard.LimitAct, out gozzard.Outcome, times int) string {
	done := map[gozzard.LimitAct]string{gozzard.ActStop: "stopped", gozzard.ActKill: "killed",
		gozzard.ActRestart: "restarted"}[act]
	switch {
	case out.Code != gozzard.CodeOK:
		done = "could not be " + done + ": " + out.Message
	case out.Forced && act == gozzard.ActStop:
		done = "killed, since it did not stop"
	}
	if times > 1 {
		done += fmt.Sprintf(" (%d times)", times)
	}
	return over + "; " + done
}

// kernelText says why the kernel does not enforce the limits of a process. It is empty if there is nothing to say.
func kernelText(wanted bool, mode string, err error) string {
	switch {
	case err != nil && wanted:
		return "its limits are not held by the kernel: " + err.Error()
	case err != nil:
		return "its old limits are still held by the kernel: " + err.Error()
	case wanted && mode == "":
		return "its limits are not held by the kernel: it cannot here"
	}
	return ""
}

// sickText says why a health command failed. It is empty if the command succeeded.
func sickText(res Result, err error, timeout time.Duration) string {
	output := versionText(res.Output)
	switch {
	case err != nil:
		return "cannot run health_cmd: " + err.Error()
	case res.TimedOut:
		return "health_cmd did not end within " + spell(timeout)
	case res.Signal != "":
		return "health_cmd was ended by " + res.Signal + because(output)
	case res.ExitCode != 0:
		return fmt.Sprintf("health_cmd exited with %d%s", res.ExitCode, because(output))
	}
	return ""
}

// overdueText is the health of a process whose probe waits too long for its turn.
func overdueText(since time.Time) string {
	return "not known since " + clock(since) + ": its check waits for its turn longer than its interval"
}

// clock is a time as the status shows it.
func clock(t time.Time) string { return t.Format("2006-01-02 15:04:05 -07:00") }

func nextRunText(t time.Time) string { return "next run " + clock(t) }

// versionText is the first line that a version command printed, made fit for a status.
func versionText(output string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(strings.ToValidUTF8(output, "")), "\n")
	return gozzard.Clip(strings.TrimSpace(line), maxVersionBytes)
}
