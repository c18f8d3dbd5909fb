package host

import "sync"

// shells knows the shells of commands in flight. They belong to whoever waits for them: they are neither taken for the process nor collected
// by anybody else.
type shells struct {
	starting sync.RWMutex // held for reading while a shell exists that is not in pids yet
	mu       sync.Mutex
	pids     map[int]bool
}

// start runs fn, which starts a shell and gives its pid. Many can start at the same time.
func (s *shells) start(fn func() (int, error)) error {
	s.starting.RLock()
	defer s.starting.RUnlock()
	pid, err := fn()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pids[pid] = true
	return nil
}

func (s *shells) ended(pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pids, pid)
}

// has waits for starts under way, so that a shell which was seen elsewhere before is known here.
func (s *shells) has(pid int) bool {
	s.starting.Lock()
	defer s.starting.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pids[pid]
}
