package agent_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozzard/gozzard"
)

// TestServersOfTheSession: the server of the open session names the servers, in Welcome and in answers to heartbeats. A
// command of another session, or of another run of the agent, changes nothing.
func TestServersOfTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var got []string
		r.o.Servers = func(list []gozzard.ServerAddress) {
			for _, s := range list {
				got = append(got, s.Agents)
			}
		}
		r.start()
		r.connect()

		for _, c := range []gozzard.Command{
			{Kind: gozzard.CommandAck, Session: r.session, Servers: []gozzard.ServerAddress{{Agents: "a:1"}, {Agents: "b:1"}}},
			{Kind: gozzard.CommandAck, Session: r.session, Beat: 1, Servers: []gozzard.ServerAddress{{Agents: "c:1"}}},
			{Kind: gozzard.CommandAck, Session: r.session + 1, Servers: []gozzard.ServerAddress{{Agents: "later:1"}}},
			{Kind: gozzard.CommandAck, Session: 0, Servers: []gozzard.ServerAddress{{Agents: "before:1"}}},
			{Kind: gozzard.CommandWelcome, Session: r.session, Beat: 1, Servers: []gozzard.ServerAddress{{Agents: "other-run:1"}}},
			{Kind: gozzard.CommandGreet, Session: 0, Servers: []gozzard.ServerAddress{{Agents: "greet:1"}}},
			{Kind: gozzard.CommandAck, Session: r.session},
		} {
			c.Version = 1
			r.a.Receive(&c)
			pass(time.Second)
		}
		r.stop()
		if !slices.Equal(got, []string{"a:1", "b:1", "c:1"}) {
			t.Errorf("got %q", got)
		}
	})
}
