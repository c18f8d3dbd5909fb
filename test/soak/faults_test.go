//go:build linux

package soak_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"
	"time"
)

// did records a fault. d is nil for one of server or agents.
func (s *soak) did(d *daemon, what string, pid int, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[what]++
	f := fault{at: time.Now(), pid: pid, text: text}
	if d == nil {
		s.faults = append(s.faults, f)
		return
	}
	d.faults = append(d.faults, f)
}

// settleTime is how long the start of a process takes at most until it is on record. Before, name and owner decide among
// the processes that a start command started, and a worker of the same name may be taken for a main process that died.
const settleTime = 3 * time.Second

// disturbDaemons kills processes of daemons. Those whose definitions come from other doors are left alone: after a few
// crashes their default policy waits for minutes.
func (s *soak) disturbDaemons(r *rand.Rand) {
	for !s.over() {
		s.pause(r, 200*time.Millisecond, time.Second)
		d := s.some(r, 1, ownSpace)[0]
		role := "main"
		if d.kind.name == "workers" && r.IntN(2) == 0 {
			role = "worker"
		}
		list := s.watch.live(d.id, role)
		if len(list) == 0 {
			continue
		}
		in := list[r.IntN(len(list))]
		if role == "main" && d.hasWorkers() && time.Since(in.time()) < settleTime {
			continue
		}
		s.did(d, "daemon killed", in.PID, fmt.Sprintf("SIGKILL to %s %d", role, in.PID))
		s.kill(in)
	}
}

// kill kills one process if its pid is still its own.
func (s *soak) kill(in instance) {
	if st, err := s.watch.proc.Stat(in.PID); err == nil && st.Start == in.Start {
		_ = syscall.Kill(in.PID, syscall.SIGKILL)
	}
}

// disturbAgent kills, ends, freezes and upgrades an agent.
func (s *soak) disturbAgent(r *rand.Rand, a *agent) {
	for !s.over() {
		s.pause(r, 2*time.Second, 12*time.Second)
		if s.over() {
			return
		}
		away := time.Duration(0) // usually it is back at once, sometimes daemons die in its absence
		if r.IntN(3) == 0 {
			away = time.Duration(r.IntN(4000)) * time.Millisecond
		}
		name := fmt.Sprintf("agent %d", a.host)
		switch r.IntN(4) {
		case 0:
			s.did(nil, "agent SIGKILL", 0, name+" SIGKILL")
			a.Kill(syscall.SIGKILL)
			time.Sleep(away)
			s.server.AgainOnline(s.t, a.Program)
		case 1:
			s.did(nil, "agent SIGTERM", 0, name+" SIGTERM")
			a.Kill(syscall.SIGTERM)
			time.Sleep(away)
			s.server.AgainOnline(s.t, a.Program)
		case 2:
			s.did(nil, "agent SIGSTOP", 0, name+" SIGSTOP")
			a.Kill(syscall.SIGSTOP)
			s.pause(r, 2*time.Second, 20*time.Second)
			a.Kill(syscall.SIGCONT)
			s.did(nil, "agent SIGCONT", 0, name+" SIGCONT")
		case 3:
			before := a.Sessions()
			s.did(nil, "agent SIGUSR2", 0, name+" SIGUSR2")
			_ = syscall.Kill(a.PID(), syscall.SIGUSR2)
			s.await(30*time.Second, func() bool { return a.Sessions() > before })
		}
		s.did(nil, "agent back", 0, name+" is back")
		s.mustLive(name, a.Done())
	}
}

// mustLive records a violation when a program has ended by itself, and starts it again.
func (s *soak) mustLive(name string, done <-chan struct{}) {
	select {
	case <-done:
		s.violate(colPrograms, nil, time.Now(), name+" has ended")
	default:
	}
}

// await waits for a condition, without a verdict.
func (s *soak) await(limit time.Duration, cond func() bool) bool {
	for end := time.Now().Add(limit); ; time.Sleep(50 * time.Millisecond) {
		if cond() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// disturbServer kills, ends and freezes the server.
func (s *soak) disturbServer(r *rand.Rand) {
	for !s.over() {
		s.pause(r, 8*time.Second, 25*time.Second)
		if s.over() {
			return
		}
		switch r.IntN(3) {
		case 0:
			s.did(nil, "server SIGKILL", 0, "server SIGKILL")
			s.server.Kill(syscall.SIGKILL)
			s.server.Again()
			s.server.AwaitReady()
		case 1:
			s.did(nil, "server SIGTERM", 0, "server SIGTERM")
			s.server.Kill(syscall.SIGTERM)
			s.server.Again()
			s.server.AwaitReady()
		case 2:
			s.did(nil, "server SIGSTOP", 0, "server SIGSTOP")
			s.server.Kill(syscall.SIGSTOP)
			s.pause(r, 2*time.Second, 12*time.Second)
			s.server.Kill(syscall.SIGCONT)
			s.did(nil, "server SIGCONT", 0, "server SIGCONT")
		}
		s.mustLive("server", s.server.Done())
	}
}

// disturbFiles falsifies pid files.
func (s *soak) disturbFiles(r *rand.Rand) {
	for !s.over() {
		s.pause(r, 150*time.Millisecond, 900*time.Millisecond)
		d := s.some(r, 1, ownSpace, kitSpace, jobSpace)[0]
		if d.nopid || d.kind.name == "real" || d.follows() || !d.mu.TryLock() {
			continue
		}
		s.falsify(r, d)
		d.mu.Unlock()
	}
}

// falsify changes one pid file. A pid of a process that no definition of this agent has counts only with a file that
// is older than that process, or while the daemon itself runs: in other cases an administrator may mean it.
func (s *soak) falsify(r *rand.Rand, d *daemon) {
	path, old := d.pidFile(), false
	text, what := "", ""
	switch r.IntN(7) {
	case 0:
		if os.Remove(path) == nil {
			s.did(d, "pid file", 0, "pid file removed")
		}
		return
	case 1:
		what = "emptied"
	case 2:
		text, what = "4 geese\n", "garbage"
	case 3, 4: // a process of another definition on the same agent
		other := s.some(r, 1, ownSpace, kitSpace, jobSpace)[0]
		in, ok := s.watch.main(other.id)
		if !ok || other == d || other.host != d.host {
			return
		}
		old = r.IntN(2) == 0
		text, what = fmt.Sprintln(in.PID), "names "+other.id
	case 5: // a process that no definition names
		for name, pid := range s.bystanders {
			_, running := s.watch.main(d.id)
			old = !running || r.IntN(2) == 0
			text, what = fmt.Sprintln(pid), "names "+name
			break
		}
	case 6:
		old, what = true, "aged"
		b, err := os.ReadFile(path)
		if err != nil {
			return
		}
		text = string(b)
	}

	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return
	}
	if old {
		long := time.Now().Add(-24 * time.Hour)
		_ = os.Chtimes(path, long, long)
		what += ", a day old"
	}
	s.did(d, "pid file", 0, "pid file "+what)
}

// disturbDefinitions changes definitions while their processes run, and puts them back later.
func (s *soak) disturbDefinitions(r *rand.Rand) {
	for !s.over() {
		s.pause(r, 300*time.Millisecond, 2*time.Second)
		d := s.some(r, 1, ownSpace)[0]
		if s.over() || d.kind.name == "real" || !d.mu.TryLock() {
			continue
		}
		s.redefine(r, d)
		d.mu.Unlock()
	}
}

// redefine changes one definition for a while.
func (s *soak) redefine(r *rand.Rand, d *daemon) {
	s.mu.Lock()
	d.switched = append(d.switched, span{from: time.Now()})
	at := len(d.switched) - 1
	s.mu.Unlock()

	n := r.IntN(5)
	switch {
	case n == 3 && d.nopid, // GSE wants a pid file
		n == 2 && *ordinary: // only root can change accounts
		n = 0
	}
	switch n {
	case 0, 1:
		s.did(d, "definition", 0, "definition names another program")
		s.define(d, "update_proc_info", "gosling", "")
	case 2:
		s.did(d, "definition", 0, "definition names another account")
		s.define(d, "update_proc_info", "", "nobody")
	case 3: // an operation that carries another name
		s.did(d, "definition", 0, "operation with another program")
		q := &request{door: "GSE", action: []string{"stop", "start", "reload"}[r.IntN(3)], daemons: []*daemon{d}}
		s.send(q, d.spec("gosling", ""))
	case 4:
		_ = os.Remove(d.pidFile()) // once unregistered, no record says what is older; without a file this fails
		s.did(d, "unregistered", 0, "unregistered")
		s.undefine(d)
	}
	s.pause(r, time.Second, 8*time.Second)
	s.define(d, "register_proc_info", "", "")
	s.define(d, "update_proc_info", "", "")
	s.did(d, "definition", 0, "definition is as before")

	s.mu.Lock()
	d.switched[at].to = time.Now()
	s.mu.Unlock()
}
