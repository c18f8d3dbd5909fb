package host

import (
	"sync"

	"github.com/gozzard/gozzard"
)

// shells are the shells of running commands. Only the waiting command collects its shell, and a shell does not
// count as the process before it became another program.
type shells struct {
	starting sync.RWMutex // held for reading while a shell exists that is not in pids yet
	mu       sync.Mutex
	pids     map[int]*command
}

// start runs fn, which starts the shell of c and returns its pid. Many can start at the same time.
func (s *shells) start(c *command, fn func() (int, error)) error {
	s.starting.RLock()
	defer s.starting.RUnlock()
	pid, err := fn()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pids[pid] = c
	return nil
}

// ended forgets the shell of c. Its pid may already belong to another process.
func (s *shells) ended(c *command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if pid := c.cmd.Process.Pid; s.pids[pid] == c {
		delete(s.pids, pid)
	}
}

// of returns the command whose shell has a pid, or nil. It waits for starts in progress, so that a shell that was
// seen elsewhere is known here.
func (s *shells) of(pid int) *command {
	if c := s.known(pid); c != nil {
		return c
	}
	s.starting.Lock()
	defer s.starting.Unlock()
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
