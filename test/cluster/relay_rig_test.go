//go:build linux

package cluster_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// relayArea is the cloud area of the hosts behind relays.
const relayArea = 3

// relay is a relay of an installation.
type relay struct {
	*ft.Program
	i                 *installation
	data, agents, api string
}

// newRelayed starts PostgreSQL and servers that relays connect to.
func newRelayed(t *testing.T, servers int, flags ...string) *installation {
	t.Helper()
	i := newInstallation(t, 0, flags...)
	i.cloud = relayArea
	for range servers {
		i.add("--cluster-listen", freeAddr(t), "--relay-listen", freeAddr(t))
	}
	return i
}

// relay joins a relay with a token of a server, and starts it.
func (m *member) relay(name string, areas ...int) *relay {
	m.i.t.Helper()
	r := &relay{i: m.i, data: filepath.Join(m.i.t.TempDir(), "relay"), agents: freeAddr(m.i.t), api: freeAddr(m.i.t)}
	r.join(m, name, areas...)
	r.Program = ft.Start(m.i.t, "relay-"+name, nil, "relay", "--data", r.data, "--listen", r.agents, "--api-listen", r.api)
	r.connects(0)
	return r
}

// join joins a relay with a token of a server.
func (r *relay) join(m *member, name string, areas ...int) {
	r.i.t.Helper()
	var list []string
	for _, a := range areas {
		list = append(list, strconv.Itoa(a))
	}
	token := m.token("relays", "token", name, "--areas", strings.Join(list, ","))
	m.cliLocal("relay", "join", "--server", m.Cred.URL, "--token-file", token, "--data", r.data)
}

// connections is how often the relay has connected to a server.
func (r *relay) connections() int { return strings.Count(r.Output(), `"msg":"connected to a server"`) }

// connects waits until the relay has connected to a server once more.
func (r *relay) connects(before int) {
	r.i.t.Helper()
	ft.Until(r.i.t, time.Minute, r.Output, func() bool { return r.connections() > before })
}

// again starts the relay again and waits until it is connected.
func (r *relay) again() {
	r.i.t.Helper()
	before := r.connections()
	r.Again()
	r.connects(before)
}

// id is the id of the relay.
func (r *relay) id() string {
	r.i.t.Helper()
	return r.state().Member.ID
}

// relayState is what a relay has in its folder.
type relayState struct {
	Member struct {
		ID        string `json:"id"`
		Authority string `json:"authority"`
		Identity  string `json:"identity"`
	} `json:"member"`
	Servers []string `json:"servers"`
}

func (r *relay) state() (s relayState) {
	r.i.t.Helper()
	b, err := os.ReadFile(filepath.Join(r.data, "relay.json"))
	if err != nil {
		r.i.t.Fatal(err)
	}
	if err := json.Unmarshal(b, &s); err != nil {
		r.i.t.Fatal(err)
	}
	return s
}

// knows waits until the relay knows so many servers.
func (r *relay) knows(servers int) {
	r.i.t.Helper()
	ft.Until(r.i.t, time.Minute, r.Output, func() bool { return len(r.state().Servers) == servers })
}

// upstream is the server that the relay is connected to.
func (r *relay) upstream() *member {
	for _, m := range r.i.servers {
		if connected(r.i.t, r.PID(), m.Flag("--relay-listen")) {
			return m
		}
	}
	return nil
}

// host enrols a host through the relay and starts its agent.
func (r *relay) host(m *member, ip string) *ft.Program {
	r.i.t.Helper()
	dir := filepath.Join(r.i.t.TempDir(), "agent")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		r.i.t.Fatal(err)
	}
	ft.AllowEverything(r.i.t, dir)
	token := m.token("token", "create", "--cloud", strconv.Itoa(relayArea))
	m.cliLocal("agent", "join", "--server", "https://"+r.api, "--token-file", token, "--data", dir, "--ip", ip)
	p := ft.Start(r.i.t, "agent-"+ip, nil, "agent", "--data", dir)
	r.i.folders[p] = dir
	ft.Until(r.i.t, time.Minute, p.Output, func() bool { return p.Sessions() > 0 })
	return p
}

// through reports whether an agent is connected to the relay.
func (r *relay) through(agent *ft.Program) bool { return connected(r.i.t, agent.PID(), r.agents) }
