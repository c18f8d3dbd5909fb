//go:build linux

package soak_test

import (
	"testing"
	"time"

	"github.com/gozzard/gozzard"
)

// story is a made-up history of one daemon. Its times are seconds.
type story struct {
	*soak
	d *daemon
}

func tell(t *testing.T, k kind) *story {
	d := &daemon{kind: k, id: "goose", space: ownSpace, process: "goose", host: 1}
	return &story{d: d, soak: &soak{t: t, all: []*daemon{d}, violations: map[string][]violation{},
		tasks: map[string]bool{}, counts: map[string]int{}, bystanders: map[string]int{"bystander0": 1},
		watch: &watcher{t: t, instances: map[string][]*instance{}, held: map[int32]hold{}}}}
}

func second(n float64) time.Time { return time.Unix(1000, int64(n*1e9)) }

// process lives from one second to another, 0 for ever.
func (s *story) process(role, launch string, from, to float64) *instance {
	in := &instance{line: line{At: second(from).UnixNano(), Event: "up", Name: "goose",
		PID: 100 + len(s.watch.instances["goose"]), Role: role, Launch: launch}}
	if to > 0 {
		in.gone = second(to).UnixNano()
	}
	s.watch.instances["goose"] = append(s.watch.instances["goose"], in)
	return in
}

// launcher brings a process up between two seconds and ends by itself.
func (s *story) launcher(launch string, from, to float64) {
	s.process("launcher", launch, from, to).ended = "has started the process"
}

// fault is something that the soak did to a program at a second.
func (s *story) fault(at float64, text string) {
	s.faults = append(s.faults, fault{at: second(at), text: text})
}

// operation has a verdict, a window, and the commands that ran for it.
func (s *story) operation(action string, state gozzard.AttemptState, code gozzard.Code, message string,
	from, to float64, commands ...string) *attempt {
	a := &attempt{daemon: s.d, op: "op-" + action, task: "GSETASK:20240102030405:7", action: action, state: state,
		outcome: gozzard.Outcome{Code: code, Message: message}, span: span{second(from), second(to)}}
	s.attempts, s.tasks["7"] = append(s.attempts, a), true
	s.d.windows = append(s.d.windows, window{span: a.span, action: action, task: a.task})
	s.requests = append(s.requests, &request{action: action, daemons: []*daemon{s.d}, task: a.task, acked: second(from),
		final: second(to)})
	for _, c := range commands {
		s.watch.lines = append(s.watch.lines, line{At: second(from).UnixNano() + 1, Event: "command", Name: "goose",
			Op: a.op, Text: c})
	}
	return a
}

// pullUp is a start command without a request.
func (s *story) pullUp(at float64) {
	s.watch.lines = append(s.watch.lines, line{At: second(at).UnixNano(), Event: "command", Name: "goose", Text: "start"})
}

// command runs without a request.
func (s *story) command(text string, at float64) {
	s.watch.lines = append(s.watch.lines, line{At: second(at).UnixNano(), Event: "command", Name: "goose", Text: text})
}

// found lists the columns with violations.
func (s *story) found() (list []string) {
	s.judgeHistory()
	for _, c := range columns() {
		if len(s.violations[c]) > 0 {
			list = append(list, c)
		}
	}
	return list
}

// TestJudgeOfSoak: each column of the history can be other than zero, and a history without faults has zeros.
func TestJudgeOfSoak(t *testing.T) {
	const ok, failed, never = gozzard.AttemptOK, gozzard.AttemptFailed, gozzard.AttemptNotExecuted
	full := kind{name: "fork", stop: true, restart: true, reload: true, kill: true}
	bare := kind{name: "stubborn"}
	slow, real := kind{name: "slow", stop: true, restart: true, kill: true}, kind{name: "real", stop: true}
	for name, test := range map[string]struct {
		kind kind
		want string // the only column with violations, "" for none
		tell func(*story)
	}{
		"a start and a stop": {full, "", func(s *story) {
			s.operation("start", ok, gozzard.CodeOK, "", 1, 3, "start")
			s.operation("stop", ok, gozzard.CodeOK, "", 9, 11, "stop")
			s.process("main", "a", 2, 10)
		}},
		"an acknowledged task is lost": {full, colLost, func(s *story) {
			s.operation("start", ok, gozzard.CodeOK, "", 1, 3, "start")
			s.process("main", "a", 2, 0)
			s.tasks = map[string]bool{}
		}},
		"no final verdict": {full, colStuck, func(s *story) {
			s.operation("start", gozzard.AttemptUnknown, "", "", 1, 3, "start")
		}},
		"a command runs twice": {full, colTwice, func(s *story) {
			s.operation("reload", gozzard.AttemptInterrupted, gozzard.CodeInterrupted, "", 1, 3, "reload", "reload")
		}},
		"interrupted without an effect": {full, "", func(s *story) {
			s.operation("reload", gozzard.AttemptInterrupted, gozzard.CodeInterrupted, "", 1, 3)
		}},
		"done without an effect": {full, colWrong, func(s *story) {
			s.operation("reload", ok, gozzard.CodeOK, "", 1, 3)
		}},
		"not executed with an effect": {full, colWrong, func(s *story) {
			s.operation("reload", never, gozzard.CodeUnreachable, "", 1, 3, "reload")
		}},
		"a definition starts something": {full, colWrong, func(s *story) {
			s.operation("update", ok, gozzard.CodeOK, "", 1, 3, "start")
		}},
		"stopped without stop_cmd, although it ran": {full, colWrong, func(s *story) {
			s.operation("stop", ok, gozzard.CodeOK, "it was down and waiting for its next start", 5, 6)
			s.process("main", "a", 1, 0)
		}},
		"already running, and nothing runs": {full, colWrong, func(s *story) {
			s.operation("start", failed, gozzard.CodeAlreadyRunning, "", 5, 6)
		}},
		"already running, and its launcher runs": {slow, "", func(s *story) {
			s.operation("start", failed, gozzard.CodeAlreadyRunning, "", 5, 6)
			s.launcher("a", 4.9, 5.1)
		}},
		"already running, and its launcher ended long before": {slow, colWrong, func(s *story) {
			s.operation("start", failed, gozzard.CodeAlreadyRunning, "", 5, 6)
			s.launcher("a", 1, 1.1)
		}},
		"already running, and its launcher began long after": {slow, colWrong, func(s *story) {
			s.operation("start", failed, gozzard.CodeAlreadyRunning, "", 5, 6)
			s.launcher("a", 9, 9.1)
		}},
		"already running after a start command that brought nothing up": {slow, colWrong, func(s *story) {
			s.pullUp(4)
			s.operation("start", failed, gozzard.CodeAlreadyRunning, "", 5, 6)
		}},
		"already running after an interrupted start of a program that was not seen": {real, colWrong, func(s *story) {
			s.pullUp(4)
			s.fault(4.5, "agent 1 SIGKILL")
			s.operation("start", failed, gozzard.CodeAlreadyRunning, "", 5, 6)
		}},
		"already running after an interrupted start of a program that was seen": {real, "", func(s *story) {
			s.pullUp(4)
			s.fault(4.5, "agent 1 SIGKILL")
			s.process("main", "a", 4.4, 0)
			s.operation("start", failed, gozzard.CodeAlreadyRunning, "", 5, 6)
		}},
		"not running, although it runs": {full, colWrong, func(s *story) {
			s.operation("stop", failed, gozzard.CodeNotRunning, "", 5, 6)
			s.process("main", "a", 1, 0)
		}},
		"stopped, and a worker lives on": {bare, colWrong, func(s *story) {
			s.operation("stop", ok, gozzard.CodeOK, "", 5, 6)
			s.process("main", "a", 1, 5.5)
			s.process("worker", "a", 1, 0)
		}},
		"stopped, and a launcher lives on": {full, colWrong, func(s *story) {
			s.operation("stop", ok, gozzard.CodeOK, "", 5, 6, "stop")
			s.process("main", "a", 1, 5.5)
			s.process("launcher", "b", 4, 0)
		}},
		"an effect after the verdict": {full, colLate, func(s *story) {
			s.operation("reload", ok, gozzard.CodeOK, "", 1, 3, "reload")
			s.watch.lines[0].At = second(9).UnixNano()
		}},
		"two copies": {bare, colCopies, func(s *story) {
			s.process("main", "a", 1, 0)
			s.process("main", "b", 2, 0)
		}},
		"the end of the old copy is noticed late": {full, "", func(s *story) {
			s.operation("restart", ok, gozzard.CodeOK, "", 49, 52, "restart")
			old := s.process("main", "a", 1, 51.5)
			old.ended, old.endedAt = "ended by SIGTERM", second(50).UnixNano()
			s.process("main", "b", 50.1, 0)
		}},
		"the old copy said that it ends and lives on": {full, colCopies, func(s *story) {
			s.operation("restart", ok, gozzard.CodeOK, "", 49, 52, "restart")
			old := s.process("main", "a", 1, 57)
			old.ended, old.endedAt = "ended by SIGTERM", second(50).UnixNano()
			s.process("main", "b", 50.1, 0)
		}},
		"the old copy ends by a signal after the new one came": {full, colCopies, func(s *story) {
			s.operation("restart", ok, gozzard.CodeOK, "", 49, 52, "restart")
			s.process("main", "a", 1, 51.5)
			s.process("main", "b", 50.1, 0)
		}},
		"old and new process of a handover": {bare, "", func(s *story) {
			s.process("main", "a", 1, 0)
			s.process("main", "a", 2, 0)
		}},
		"a launcher beside a process of another launch": {bare, "", func(s *story) {
			s.process("main", "a", 1, 0)
			s.launcher("b", 2, 9)
			s.launcher("c", 3, 9)
		}},
		"a bystander gets a signal": {bare, colBystander, func(s *story) {
			s.watch.instances["bystander0"] = []*instance{{signals: []line{{Text: "SIGTERM"}}}}
		}},
		"a bystander ends": {bare, colBystander, func(s *story) {
			s.watch.instances["bystander0"] = []*instance{{gone: 1}}
		}},
		"killed and nothing asked for it": {bare, colEnded, func(s *story) {
			s.process("main", "a", 1, 60)
		}},
		"killed by a start": {full, colEnded, func(s *story) {
			s.operation("start", ok, gozzard.CodeOK, "", 50, 52, "start")
			s.process("main", "a", 1, 51)
			s.process("main", "b", 51.5, 0)
		}},
		"killed by a changed definition": {bare, colEnded, func(s *story) {
			s.d.switched = []span{{second(50), second(55)}}
			s.process("main", "a", 1, 51)
		}},
		"killed late, and the definition named another program": {bare, colEnded, func(s *story) {
			s.d.switched = []span{{second(0.5), second(70)}}
			s.process("main", "a", 1, 40)
		}},
		"killed late, because its agent was frozen": {bare, "", func(s *story) {
			s.d.switched = []span{{second(0.5), second(5)}}
			s.fault(2, "agent 1 SIGSTOP")
			s.fault(20, "agent 1 SIGCONT")
			s.fault(20, "agent 1 is back")
			s.process("main", "a", 1, 40)
		}},
		"killed late, because its agent was away": {bare, "", func(s *story) {
			s.fault(2, "agent 1 SIGKILL")
			s.fault(20, "agent 1 is back")
			s.process("main", "a", 1, 40)
		}},
		"killed late, and its agent is still frozen": {bare, "", func(s *story) {
			s.fault(2, "agent 1 SIGSTOP")
			s.process("main", "a", 1, 60)
		}},
		"killed later than its frozen agent explains": {bare, colEnded, func(s *story) {
			s.d.switched = []span{{second(0.5), second(5)}}
			s.fault(2, "agent 1 SIGSTOP")
			s.fault(20, "agent 1 SIGCONT")
			s.process("main", "a", 1, 46)
		}},
		"killed late, and its agent was frozen before": {bare, colEnded, func(s *story) {
			s.d.switched = []span{{second(20.5), second(70)}}
			s.fault(2, "agent 1 SIGSTOP")
			s.fault(20, "agent 1 SIGCONT")
			s.process("main", "a", 21, 50)
		}},
		"killed late, and another agent was frozen": {bare, colEnded, func(s *story) {
			s.d.switched = []span{{second(0.5), second(70)}}
			s.fault(2, "agent 10 SIGSTOP")
			s.fault(20, "agent 10 SIGCONT")
			s.process("main", "a", 1, 40)
		}},
		"killed, because its agent was upgraded while its start command worked": {slow, "", func(s *story) {
			s.command("start", 1)
			s.fault(2, "agent 1 SIGUSR2")
			s.process("main", "a", 4, 4.1)
		}},
		"killed, and its agent was upgraded before its start command": {slow, colEnded, func(s *story) {
			s.fault(2, "agent 1 SIGUSR2")
			s.command("start", 5)
			s.process("main", "a", 7, 7.1)
		}},
		"killed, and its agent was upgraded after an earlier start command": {slow, colEnded, func(s *story) {
			s.command("start", 1)
			s.fault(2, "agent 1 SIGUSR2")
			s.command("start", 5)
			s.process("main", "a", 7, 7.1)
		}},
		"killed, and its agent was upgraded long after a start command": {slow, colEnded, func(s *story) {
			s.command("start", 1)
			s.fault(2, "agent 1 SIGUSR2")
			s.process("main", "a", 30, 30.1)
		}},
		"a launcher is killed and nothing asked for it": {slow, colEnded, func(s *story) {
			s.process("launcher", "a", 1, 2)
		}},
		"a launcher is killed beside its live process": {slow, colEnded, func(s *story) {
			s.process("launcher", "a", 1, 3)
			s.process("main", "a", 1.5, 0)
		}},
		"killed after a launcher of it has ended": {bare, colEnded, func(s *story) {
			s.process("main", "a", 1, 60)
			s.launcher("a", 50, 50.1)
		}},
		"a launcher ends with its start": {slow, "", func(s *story) {
			s.operation("start", failed, gozzard.CodeCheckFailed, "", 1, 4, "start")
			s.process("launcher", "a", 2, 3)
		}},
		"a launcher ends because its agent was killed": {slow, "", func(s *story) {
			s.fault(1.5, "agent 1 SIGKILL")
			s.process("launcher", "a", 1, 2)
		}},
		"killed by the soak": {bare, "", func(s *story) {
			s.d.faults = []fault{{at: second(59), pid: s.process("main", "a", 1, 60).PID}}
		}},
		"a worker is ended after its main process": {bare, "", func(s *story) {
			s.d.faults = []fault{{at: second(59), pid: s.process("main", "a", 1, 60).PID}}
			s.process("worker", "a", 1, 70)
		}},
		"a worker is ended before its main process": {bare, colEnded, func(s *story) {
			s.process("main", "a", 1, 0)
			s.process("worker", "a", 1, 70)
		}},
		"the old process of a handover is ended by force": {bare, colEnded, func(s *story) {
			s.process("main", "a", 1, 70)
			s.process("main", "a", 60, 0)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := tell(t, test.kind)
			test.tell(s)
			got := s.found()
			if len(got) > 1 || len(got) == 1 && got[0] != test.want || len(got) == 0 && test.want != "" {
				t.Errorf("violations %q, not %q: %v", got, test.want, s.violations)
			}
		})
	}
}

// TestWishes: the wanted state follows from the verdicts in their order.
func TestWishes(t *testing.T) {
	const ok, failed = gozzard.AttemptOK, gozzard.AttemptFailed
	type step struct {
		action string
		state  gozzard.AttemptState
		code   gozzard.Code
	}
	for name, test := range map[string]struct {
		steps []step
		want  wish
	}{
		"started":   {[]step{{"start", ok, "ok"}}, wish{known: true, hosted: true}},
		"stopped":   {[]step{{"start", ok, "ok"}, {"stop", ok, "ok"}}, wish{known: true, stopped: true}},
		"unmanaged": {[]step{{"start", ok, "ok"}, {"unmanage", ok, "ok"}}, wish{known: true}},
		"a stop of what was down": {[]step{{"stop", ok, "ok"}, {"stop", failed, "not_running"}},
			wish{known: true, stopped: true}},
		"a start that was cut off": {[]step{{"stop", ok, "ok"}, {"start", gozzard.AttemptInterrupted, "interrupted"}},
			wish{}},
		"a start that never began": {[]step{{"stop", ok, "ok"}, {"start", gozzard.AttemptNotExecuted, "unreachable"}},
			wish{known: true, stopped: true}},
		"already running": {[]step{{"unmanage", ok, "ok"}, {"start", failed, "already_running"}}, wish{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := wish{known: true}
			for _, st := range test.steps {
				w.add(&attempt{action: st.action, state: st.state, outcome: gozzard.Outcome{Code: st.code}})
			}
			if w != test.want {
				t.Errorf("%+v, not %+v", w, test.want)
			}
		})
	}
}
