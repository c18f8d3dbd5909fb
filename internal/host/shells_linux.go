package host

import "sync"

// shells knows the shells of commands in flight. They belong to whoever waits for them: they are not collected by
// anybody else, nor taken for the process before they have become another program.
type shells struct {
	starting sync.RWMutex // held for reading while a shell exists that is not in pids yet
	mu       sync.Mutex
	pids     map[int]*command
}

// start runs fn, which starts the shell of c and gives its pid. Many can start at the same time.
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

// ended forgets the shell of c. Its pid may already be that of another.
func (s *shells) ended(c *command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if pid := c.cmd.Process.Pid; s.pids[pid] == c {
		delete(s.pids, pid)
	}
}

// of gives the command whose shell a pid is, nil for all others. It waits for starts under way, so that a shell
// which was seen elsewhere before is known here.
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

func (s *shells) has(pid int) bool { return s.of(pid) != nil }
