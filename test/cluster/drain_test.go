//go:build linux

package cluster_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gozzard/gozzard/client"
	ft "github.com/gozzard/gozzard/test/fleettest"
	"github.com/gozzard/gozzard/test/ledger"
)

// drainHosts is how many hosts the test of the drain has.
const drainHosts = 6

// C6: one of three servers is drained under load, killed when it is empty, started again and undrained. Nothing is lost, and
// the agents are spread over the servers that take them.
func TestC6Drain(t *testing.T) {
	t.Parallel()                                             // it mostly waits
	f := newLoaded(t, newInstallation(t, 3, "--rate-app=0")) // the load and the checks beside it are one app
	for n := len(f.agents); n < drainHosts; n++ {
		f.agents = append(f.agents, f.servers[n%3].join(faultHost(n+1)))
	}
	victim, survivor := f.homeOf(f.agents[0]), f.servers[0]
	if victim == survivor {
		survivor = f.servers[1]
	}
	behind := f.joinBehind(faultHost(drainHosts+1), victim)
	f.agents = append(f.agents, behind)
	f.settle()

	// Drain it.
	end := f.begin()
	if out := survivor.cli("servers", "drain", victim.id(), "--wait"); !strings.Contains(out, "has no agents and no leases") {
		t.Errorf("drain: %s", out)
	}
	if list := f.agentsOf(victim); len(list) > 0 || f.homeOf(behind) == nil {
		t.Errorf("the drained server has the hosts %v", list)
	}
	if v := survivor.server(victim); !v.Drained || v.Agents != 0 || len(v.Leases) > 0 {
		t.Errorf("the drained server is shown as %+v", v)
	}
	for _, m := range f.servers { // also the drained one answers
		f.operable(m)
	}

	// Kill the empty one. Nobody misses it, and it comes back as it was.
	victim.Kill(syscall.SIGKILL)
	took := f.served(f.hosts(), time.Now())
	victim.Again()
	victim.answers()
	end()
	f.spreads("while one is drained", slices.DeleteFunc(slices.Clone(f.servers), func(m *member) bool { return m == victim }))
	if v := survivor.server(victim); !v.Drained || v.Agents != 0 || len(f.agentsOf(victim)) > 0 {
		t.Errorf("the server is not drained any more after a restart: %+v", v)
	}

	// Undrain it under a lighter load, which lasts for minutes.
	var stops []func()
	for n := range drainHosts {
		stops = append(stops, f.l.Steady(n+1, 700*time.Millisecond))
	}
	survivor.cli("servers", "undrain", victim.id())
	if code, rows := survivor.Get(t, "/api/v1/audit?newest=true&limit=1000"); code != 200 ||
		!strings.Contains(rows, "server:undrain:"+victim.id()) {
		t.Errorf("the audit has %d %.300s", code, rows)
	}
	f.spreads("after the end of the drain", f.servers)
	for _, stop := range stops {
		stop()
	}

	f.judge(line{id: "C6", fault: "one of three servers drained, killed, started and undrained", times: 1, took: took,
		since: "the kill of the empty server, on all hosts"}, ledger.Floor{OK: 100, Percent: 80})
}

// id is the id of a server.
func (m *member) id() string {
	m.i.t.Helper()
	var file struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal([]byte(m.read("server.json")), &file); err != nil || file.ID == "" {
		m.i.t.Fatalf("server.json: %v", err)
	}
	return file.ID
}

// server is another server as this one lists it.
func (m *member) server(other *member) client.Server {
	m.i.t.Helper()
	var list client.ServerList
	if err := json.Unmarshal([]byte(m.cli("servers", "-o", "json")), &list); err != nil {
		m.i.t.Fatal(err)
	}
	i := slices.IndexFunc(list.Servers, func(v client.Server) bool { return v.ID == other.id() })
	if i < 0 {
		m.i.t.Fatalf("server %s is not listed", other.id())
	}
	return list.Servers[i]
}

// joinBehind enrols a host that reaches a server by an address which is on no list, as behind a load balancer.
func (f *loaded) joinBehind(ip string, m *member) *ft.Program {
	f.t.Helper()
	agent := m.join(ip)
	agent.Kill(syscall.SIGTERM)
	<-agent.Done()

	// Make it forget the servers, and give it the address.
	dir := f.folders[agent]
	_ = os.Remove(filepath.Join(dir, "servers.json")) // it may not be there
	path := filepath.Join(dir, "enrolment.json")
	b, err := os.ReadFile(path)
	if err != nil {
		f.t.Fatal(err)
	}
	file := map[string]any{}
	if err := json.Unmarshal(b, &file); err != nil {
		f.t.Fatal(err)
	}
	file["address"] = ft.NewProxy(f.t, m.agent).Addr()
	delete(file, "servers")
	if b, err = json.Marshal(file); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		f.t.Fatal(err)
	}

	agent.Again()
	ft.Until(f.t, time.Minute, agent.Output, func() bool { return f.knownTo(agent) == len(f.servers) })
	if home := f.homeOf(agent); home != nil {
		f.t.Fatalf("the host behind the load balancer is connected to %s itself", home.agent)
	}
	for _, s := range f.servers {
		s.online(ip, true)
	}
	return agent
}

// operable operates every host through a server.
func (f *loaded) operable(m *member) {
	f.t.Helper()
	for n := range f.agents {
		task := m.Operate("operate_proc_v2", ft.J{"meta": ft.J{"namespace": "drain", "name": "p"}, "op_type": 8,
			"hosts": []ft.J{host(faultHost(n + 1))}, "spec": ft.J{"identity": ft.J{"proc_name": "p", "setup_path": "/tmp",
				"pid_path": "/tmp/none.pid", "user": "root"}, "control": ft.J{"reload_cmd": "true"}}})
		for key, e := range m.Await(task) {
			if e.Code != 0 {
				f.t.Errorf("through %s: %s: %d %s", m.listen, key, e.Code, e.Msg)
			}
		}
	}
}

// spreads waits until the agents are spread evenly over servers, and stay so.
func (f *loaded) spreads(when string, servers []*member) {
	f.t.Helper()
	counts := func() (list []int) {
		for _, m := range servers {
			list = append(list, len(f.agentsOf(m)))
		}
		return list
	}
	even := func(list []int) bool {
		sum := 0
		for _, n := range list {
			sum += n
		}
		return sum == len(f.agents) && slices.Max(list)-slices.Min(list) <= 1
	}

	began := time.Now()
	ft.Until(f.t, 5*time.Minute, func() string { return fmt.Sprint("the agents are spread ", when, ": ", counts()) },
		func() bool { return even(counts()) })
	fmt.Printf("fault C6: agents are spread %v %s, after %.0f s\n", counts(), when, time.Since(began).Seconds())
}
