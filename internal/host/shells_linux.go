package host

import (
	"maps"
	"slices"
	"sync"

	"github.com/gozzard/gozzard"
)

// shells are the shells of running commands. Only the waiting command collects its shell, and a shell does not
// count as the process before it became another program.
type shells struct {
	mu       sync.Mutex
	pids     map[int]*command
	starting map[chan struct{}]bool // starts in progress: a shell may exist that is not in pids yet
}

// start runs fn, which starts the shell of c and returns its pid. Many can start at the same time.
func (s *shells) start(c *command, fn func() (int, error)) error {
	done := make(chan struct{})
	s.mu.Lock()
	s.starting[done] = true
	s.mu.Unlock()

	pid, err := fn()

	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.starting, done)
	close(done)
	if err == nil {
		s.pids[pid] = c
	}
	return err
}

// ended forgets the shell of c. Its pid may already belong to another process.
func (s *shells) ended(c *command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if pid := c.cmd.Process.Pid; s.pids[pid] == c {
		delete(s.pids, pid)
	}
}

// of returns the command whose shell has a pid, or nil. It waits for the starts that are in progress now, so that a shell
// that was seen elsewhere is known here. Later starts do not wait for it, nor it for them.
func (s *shells) of(pid int) *command {
	s.mu.Lock()
	c := s.pids[pid]
	var wait []chan struct{}
	if c == nil {
		wait = slices.Collect(maps.Keys(s.starting))
	}
	s.mu.Unlock()

	for _, done := range wait {
		<-done
	}
	if len(wait) == 0 {
		return c
	}
	return s.known(pid)
}

func (s *shells) known(pid int) *command {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pids[pid]
}

// leaders lists the shells of running commands that may start the process of a key.
func (s *shells) leaders(key gozzard.Key) (pids []int) {
	for _, c := range s.commands(key) {
		pids = append(pids, c.cmd.Process.Pid)
	}
	return pids
}

// commands lists the running commands that may start the process of a key.
func (s *shells) commands(key gozzard.Key) (all []*command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.pids {
		if c.run.Key == key && c.run.Keeps {
			all = append(all, c)
		}
	}
	return all
}

func (s *shells) has(pid int) bool { return s.of(pid) != nil }
