package agent

import (
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
)

// Summary is the state of an agent, for a reader on the same host.
type Summary struct {
	Host    gozzard.HostInfo
	Session uint64             // the newest session; 0 before the first
	Open    bool               // the agent accepts operations
	Opened  time.Time          // when a session was last opened; zero if none was since the agent started
	Heard   time.Time          // when the newest message that the server has answered was sent; zero if none was
	Journal gozzard.JournalPos // the durable position
	Fault   string             // why the state folder cannot be written; "" if it can
}

// Summary returns the present state of the agent. It waits neither for the disk nor for the main loop.
func (a *Agent) Summary() Summary {
	s := a.contact.summary(a.o.Now())
	s.Host = a.hostInfo()
	s.Fault = a.stateFault()
	s.Journal = gozzard.JournalPos{ID: a.journal.ID(), LSN: a.journal.Synced()}
	return s
}

// Lives returns the managed processes. See supervise.Supervisor.Lives.
func (a *Agent) Lives(most int) (lives []supervise.Life, total int) { return a.sup.Lives(most) }

func (c *contact) summary(now time.Time) Summary {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Summary{Session: c.session, Open: c.leased(now), Opened: c.opened, Heard: c.lastHeard}
}
