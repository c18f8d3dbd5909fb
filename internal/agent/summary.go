package agent

import (
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
)

// Summary is what an agent says of itself to somebody on its host.
type Summary struct {
	Host    gozzard.HostInfo
	Session uint64    // the newest; 0 before the first
	Open    bool      // operations are taken in
	Opened  time.Time // when a session was last opened; zero: not since the agent began
	// when the newest thing that the server answered was sent; zero: nothing since the agent began
	Heard   time.Time
	Journal gozzard.JournalPos // what is durable
}

// Summary tells how the agent stands now. It waits neither for the disk nor for the main loop.
func (a *Agent) Summary() Summary {
	s := a.contact.standing(a.o.Now())
	s.Host = a.info
	s.Journal = gozzard.JournalPos{ID: a.journal.ID(), LSN: a.journal.Synced()}
	return s
}

// Lives tells of the processes that the agent keeps, see supervise.Supervisor.Lives.
func (a *Agent) Lives(most int) (lives []supervise.Life, total int) { return a.sup.Lives(most) }

func (c *contact) standing(now time.Time) Summary {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Summary{Session: c.session, Open: c.leased(now), Opened: c.opened, Heard: c.lastHeard}
}
