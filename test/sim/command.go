package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
)

// script is what the text of a simulated command says: words separated by semicolons, done from left to right.
//
//	sleep 10ms        takes that long
//	print some text   prints it
//	fail 3 some text  prints the text and exits with 3; nothing happens
//	hang              never ends
//	nothing           ends well and does nothing
//	after 50ms        what the command does happens that long after it has ended
//	exit-after 50ms 1 the started process exits with 1 (default 0) that long after its start
//	front             stays in front as long as the process lives, and ends as it does
//	stubborn          the started process ignores TERM
//	cannot some text  cannot be run at all
//	note some text    writes a line down that it had its effect, for tests that count effects (see Notes)
//
// Any other word, such as ok or ./start.sh, means that the command works: start makes a process, stop and kill end
// it, restart does both, reload does nothing and a version command prints 1.0.
type script struct {
	takes     time.Duration
	hangs     bool
	exit      int
	output    string
	inert     bool
	after     time.Duration
	exitAfter time.Duration
	exitCode  int
	stubborn  bool
	front     bool
	note      string
}

func parseScript(text string) (script, error) {
	var s script
	for word := range strings.SplitSeq(text, ";") {
		verb, rest, _ := strings.Cut(strings.TrimSpace(word), " ")
		rest = strings.TrimSpace(rest)
		var err error
		switch verb {
		case "sleep":
			var d time.Duration
			d, err = time.ParseDuration(rest)
			s.takes += d
		case "print":
			s.output = strings.TrimPrefix(s.output+"\n"+rest, "\n")
		case "fail":
			code, text, _ := strings.Cut(rest, " ")
			s.inert = true
			s.exit, err = strconv.Atoi(code)
			if text != "" {
				s.output = strings.TrimPrefix(s.output+"\n"+text, "\n")
			}
		case "hang":
			s.hangs = true
		case "nothing":
			s.inert = true
		case "after":
			s.after, err = time.ParseDuration(rest)
		case "exit-after":
			d, code, given := strings.Cut(rest, " ")
			if s.exitAfter, err = time.ParseDuration(d); err == nil && given {
				s.exitCode, err = strconv.Atoi(code)
			}
		case "stubborn":
			s.stubborn = true
		case "front":
			s.front = true
		case "note":
			s.note = rest
		case "cannot":
			return s, fmt.Errorf("%s", rest)
		}
		if err != nil {
			return s, fmt.Errorf("cannot understand %q: %w", word, err)
		}
	}

	return s, nil
}

// command is one command under way. Timers move it on, whether or not a caller waits for it.
type command struct {
	host   *Host
	run    supervise.Run
	script script
	result supervise.Result // valid once it is settled
	ended  chan struct{}

	// Guarded by host.mu.
	settled bool // has its result
	killed  bool
	timer   *time.Timer
	proc    *process // of a command that stays in front
}

func (c *command) begin() {
	c.host.mu.Lock()
	defer c.host.mu.Unlock()
	k := c.host.history(c.run.Key)
	k.commands[c.run.Action]++

	if k.inFlight == nil {
		k.inFlight = make(map[*command]struct{})
	}

	k.inFlight[c] = struct{}{}
	switch {
	case c.script.front && c.run.Action == gozzard.ActionStart:
		c.proc = c.start()
		c.proc.front = c
	case c.script.hangs:
	case c.script.takes > 0:
		c.timer = time.AfterFunc(c.script.takes, func() {
			c.host.mu.Lock()
			defer c.host.mu.Unlock()
			if !c.killed {
				c.end()
			}
		})
	default:
		c.end()
	}
}

// end and all functions below are called with host.mu held.
func (c *command) end() {
	res := supervise.Result{ExitCode: c.script.exit, Output: c.script.output}
	if c.run.Action == gozzard.ActionQuery && res.Output == "" && !c.script.inert {
		res.Output = "1.0"
	}

	c.settle(res)

	if c.script.after == 0 {
		c.effect()
		return
	}

	c.timer = time.AfterFunc(c.script.after, func() {
		c.host.mu.Lock()
		defer c.host.mu.Unlock()
		c.effect()
	})
}

func (c *command) settle(res supervise.Result) {
	if !c.settled {
		c.settled, c.result = true, res
		close(c.ended)
	}
}

// kill ends the command and cancels what it would still have done.
func (c *command) kill() {
	c.killed = true
	if c.timer != nil {
		c.timer.Stop()
	}
	c.settle(supervise.Result{ExitCode: -1, Signal: "SIGKILL", Output: c.script.output})
	delete(c.host.history(c.run.Key).inFlight, c)
	if c.proc != nil {
		c.host.end(c.proc, supervise.Exit{Known: true, Signal: "SIGKILL"})
	}
}

func (c *command) effect() {
	h, key := c.host, c.run.Key
	delete(h.history(key).inFlight, c)

	if c.script.inert || c.killed {
		return
	}
	if c.script.note != "" {
		h.notes.add(h.name, c.script.note)
	}

	switch c.run.Action {
	case gozzard.ActionStart:
		c.start()
	case gozzard.ActionRestart:
		if p := h.newest(key); p != nil {
			h.end(p, supervise.Exit{Known: true, Signal: "SIGTERM"})
		}
		c.start()
	case gozzard.ActionStop, gozzard.ActionKill:
		if p := h.newest(key); p != nil {
			h.end(p, supervise.Exit{Known: true})
		}
	}
}

// left reports whether a command in front has run long enough to count as the process itself. If so, the command is no
// longer in flight.
func (c *command) left() bool {
	if c.settled || c.proc == nil {
		return false
	}
	delete(c.host.history(c.run.Key).inFlight, c)
	return true
}

// followed ends a command in front together with its process.
func (c *command) followed(e supervise.Exit) {
	res := supervise.Result{ExitCode: e.Code, Signal: e.Signal, Output: c.script.output}
	if e.Signal != "" {
		res.ExitCode = -1
	}
	c.settle(res)
	delete(c.host.history(c.run.Key).inFlight, c)
}

func (c *command) start() *process {
	h := c.host
	p := h.spawn(c.run.Key)
	p.stubborn = c.script.stubborn
	if c.script.exitAfter > 0 {
		p.ends = time.AfterFunc(c.script.exitAfter, func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.end(p, supervise.Exit{Known: true, Code: c.script.exitCode})
		})
	}
	return p
}
