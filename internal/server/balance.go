package server

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// Agents choose a server at random when they connect, and stay. So a server that comes back, or is undrained, would have none
// until others die. A server with too many agents therefore moves some to those with few.
const (
	balanceEvery  = 20 * time.Second // agents go within 10 s, and servers count them every 3 s
	balanceMax    = 30 * time.Minute // between two rounds, if agents do not go
	balanceAgain  = time.Hour        // an agent that was asked is left alone for as long
	balanceShare  = 10               // a round moves at most one in so many agents
	balanceFresh  = 15 * time.Second // servers that were not seen for as long do not count
	balanceLag    = 5 * time.Second  // servers that were not heard for as long do not count
	balanceMargin = 10               // differences below one in so many of the mean stay
)

// balance moves agents from this server to others that have fewer.
type balance struct {
	s     *Server
	next  time.Time // of the next round
	pause time.Duration
	had   int // agents at the last round that moved some; 0: none did
	asked map[gozzard.AgentID]time.Time
}

// tick moves some agents if this server has too many.
func (b *balance) tick(list []record.Server, now time.Time) {
	if now.Before(b.next) || b.s.plane.IsSpreading() {
		return
	}
	b.next = now.Add(balanceEvery + rand.N(balanceEvery/4))
	n, to := surplus(heard(list, b.s.id, b.s.plane.Lag()), b.s.id)
	if n == 0 {
		b.had, b.pause = 0, 0
		return
	}

	// Agents that cannot go are not asked again and again.
	here := b.s.plane.Here()
	if b.had > 0 && len(here) >= b.had {
		b.pause = min(max(2*b.pause, balanceEvery), balanceMax)
	} else {
		b.pause = 0
	}
	b.had, b.next = len(here), b.next.Add(b.pause)
	agents := b.choose(here, n, now)
	if len(agents) == 0 {
		return
	}
	b.s.options.Log.Info("this server has more agents than others and moves some", "agents", len(here), "moved", len(agents), "to", to)
	b.s.plane.Move(agents, to)
}

// heard are this server and those that it hears. One that it does not hear may be cut off from the record, too, since it was
// last seen there: it could do nothing for agents.
func heard(list []record.Server, id string, lag map[string]time.Duration) []record.Server {
	return slices.DeleteFunc(slices.Clone(list), func(v record.Server) bool {
		d, known := lag[v.ID]
		return v.ID != id && (!known || d > balanceLag)
	})
}

// choose chooses agents that were not asked lately.
func (b *balance) choose(here map[gozzard.AgentID]int, n int, now time.Time) []gozzard.AgentID {
	if b.asked == nil {
		b.asked = map[gozzard.AgentID]time.Time{}
	}
	maps.DeleteFunc(b.asked, func(_ gozzard.AgentID, at time.Time) bool { return now.Sub(at) > balanceAgain })
	agents := slices.DeleteFunc(slices.Collect(maps.Keys(here)), func(a gozzard.AgentID) bool {
		_, ok := b.asked[a]
		return ok || b.s.isRelayed(here[a])
	})
	rand.Shuffle(len(agents), func(i, j int) { agents[i], agents[j] = agents[j], agents[i] })
	agents = agents[:min(n, len(agents))]
	for _, a := range agents {
		b.asked[a] = now
	}
	return agents
}

// surplus is how many agents a server moves in a round, and to which servers: those with fewer than the mean. A drained
// server moves none this way: its agents leave it by themselves.
func surplus(list []record.Server, id string) (n int, to []gozzard.ServerAddress) {
	list = slices.DeleteFunc(slices.Clone(list), func(v record.Server) bool {
		return v.Drained || v.AgentAddress == "" || v.Ago >= balanceFresh
	})
	own, ok := ownRow(list, id)
	if !ok || len(list) < 2 {
		return 0, nil
	}
	all, least := 0, own.Agents
	for i := range list {
		all += list[i].Agents
		least = min(least, list[i].Agents)
	}
	mean := all / len(list)
	if own.Agents <= mean || own.Agents-least < max(2, mean/balanceMargin) {
		return 0, nil
	}

	for i := range list {
		a := gozzard.ServerAddress{Agents: list[i].AgentAddress, API: list[i].URL}
		if list[i].ID != id && list[i].Agents <= mean && list[i].Agents < own.Agents-1 && a.Validate() == nil {
			to = append(to, a)
		}
	}
	if len(to) == 0 {
		return 0, nil
	}
	return min(own.Agents-mean, max(1, own.Agents/balanceShare)), to
}
