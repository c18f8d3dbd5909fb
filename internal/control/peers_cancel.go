package control

import (
	"context"
	"time"

	"github.com/gozzard/gozzard"
)

const (
	cancelMost  = 4096                   // attempts in one request to another server
	cancelAgain = 500 * time.Millisecond // a request to another server may be lost on the way
)

// peerCancel is a request of another server.
type peerCancel struct {
	from string
	gozzard.PeerCancel
}

// serverOf is the server that is the home of an agent, also of one that is silent; "" if it is this one, or if there is none.
func (s *peers) serverOf(agent gozzard.AgentID) string {
	if s == nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.homes[agent].server
}

// askCancel makes the home of agents cancel those of the attempts that it has not sent. When it returns without an error, the
// record has their verdicts, and the others were sent or are missing there. It asks until the answer comes, or ctx ends.
func (s *peers) askCancel(ctx context.Context, server string, task gozzard.TaskSeq, list []gozzard.Attempt) (missing []int32,
	err error) {
	ask := gozzard.PeerCancel{ID: gozzard.NewOpID(), Task: task}
	for i := range list {
		ask.Attempts = append(ask.Attempts, list[i].Ref.Index)
	}

	answer := make(chan gozzard.PeerCancelled, 1)
	s.mu.Lock()
	s.answers[ask.ID] = answer
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.answers, ask.ID)
	}()

	for {
		s.send(server, &gozzard.PeerNews{Cancel: []gozzard.PeerCancel{ask}})
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case a := <-answer:
			return a.Missing, nil
		case <-time.After(cancelAgain):
		}
		if s.serverOf(list[0].Agent) != server { // the agents have another home: look again
			return ask.Attempts, nil
		}
	}
}

// hearCancels takes in requests of other servers, and answers to those of this one.
func (s *peers) hearCancels(n *gozzard.PeerNews) {
	for _, c := range n.Cancel {
		select {
		case s.cancels <- peerCancel{n.From, c}:
		default: // it asks again
		}
	}
	for _, a := range n.Cancelled {
		s.mu.Lock()
		answer := s.answers[a.ID]
		delete(s.answers, a.ID)
		s.mu.Unlock()
		if answer != nil {
			answer <- a // deleted once: there is room
		}
	}
}

// cancelLoop cancels what other servers ask for. The same request may come twice: that changes nothing.
func (s *peers) cancelLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case ask := <-s.cancels:
			c := &cancelling{p: s.p, task: ask.Task, chosen: map[int32]bool{}, sent: map[gozzard.OpID]uint64{}}
			for _, i := range ask.Attempts {
				c.chosen[i] = true
			}
			if err := c.run(ctx); err != nil {
				if ctx.Err() == nil {
					s.o.Log.Warn("cannot cancel operations for another server; it asks again", "server", ask.from, "err", err)
				}
				continue
			}
			s.send(ask.from, &gozzard.PeerNews{Cancelled: []gozzard.PeerCancelled{{ID: ask.ID, Missing: c.missing}}})
		}
	}
}
