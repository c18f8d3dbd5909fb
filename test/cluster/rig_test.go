//go:build linux

package cluster_test

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
	"github.com/gozzard/gozzard/test/pgtest"
)

// installation is several servers on one record, on loopback.
type installation struct {
	t       *testing.T
	pg      *pgtest.Server
	servers []*member
	folders map[*ft.Program]string // of agents
	flags   []string               // of all servers
	env     []string               // of the next server
	cloud   int                    // cloud area of the hosts
	program string                 // of servers and agents that are started from now on; "": the one that is tested
}

// member is one of the servers.
type member struct {
	*ft.Program
	*ft.API
	i             *installation
	data          string
	file          string // its program, which an upgrade replaces; "": the one that is tested
	credentials   string // file of the admin
	listen, agent string
}

// newInstallation starts PostgreSQL and servers.
func newInstallation(t *testing.T, servers int, flags ...string) *installation {
	t.Helper()
	i := &installation{t: t, pg: pgtest.Start(t, "off"), flags: flags, folders: map[*ft.Program]string{}}
	i.pg.Exec("postgres", "CREATE DATABASE fleet")
	for range servers {
		i.add()
	}
	return i
}

// shortDir makes a folder with a path that is short enough for sockets in it.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "gzcable")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // there is only a socket in it
	return dir
}

func freeAddr(t *testing.T) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(ft.FreePort(t)))
}

// add starts one more server. extra has flags for its part in the cluster, unless they do not matter.
func (i *installation) add(extra ...string) *member {
	i.t.Helper()
	if len(extra) == 0 {
		extra = []string{"--cluster-listen", freeAddr(i.t)}
	}
	m := &member{i: i, data: filepath.Join(i.t.TempDir(), "server"), listen: freeAddr(i.t), agent: freeAddr(i.t), API: &ft.API{}}
	m.credentials = filepath.Join(m.data, "credentials.json")
	if len(i.servers) > 0 {
		m.getKeys(i.servers[0])
	}
	args := []string{"server", "--data", m.data, "--listen", m.listen, "--agent-listen", m.agent, "--enrol", "--record", i.pg.URL("fleet")}
	args = slices.Concat(args, extra, i.flags)
	if i.program == "" {
		m.Program = ft.Start(i.t, "server", i.env, args...)
	} else {
		m.file = filepath.Join(i.t.TempDir(), "gozzard")
		m.install(i.program)
		m.Program = ft.StartFile(i.t, "server", m.file, args...)
	}
	m.await()
	i.servers = append(i.servers, m)
	return m
}

// getKeys gives a new server the keys of another one, by the commands that an admin uses, and the credentials of its admin.
func (m *member) getKeys(from *member) {
	m.i.t.Helper()
	m.cliLocal("server", "join", "--server", from.Cred.URL, "--token-file", from.token(), "--data", m.data)
	b, err := os.ReadFile(from.credentials)
	if err != nil {
		m.i.t.Fatal(err)
	}
	m.credentials = m.i.file(strings.ReplaceAll(string(b), from.listen, m.listen))
}

// await waits until the server answers.
func (m *member) await() {
	m.i.t.Helper()
	ft.Until(m.i.t, time.Minute, m.Output, func() bool {
		select {
		case <-m.Done():
			m.i.t.Fatalf("the server ended: %s", m.Output())
		default:
		}
		return strings.Contains(m.Output(), `"msg":"server started"`)
	})
	m.readCredentials()
}

// readCredentials makes the client that calls the server.
func (m *member) readCredentials() {
	m.i.t.Helper()
	b, err := os.ReadFile(m.credentials)
	if err != nil {
		m.i.t.Fatal(err)
	}

	// The file has the authority beside what ft.API reads.
	var file struct {
		CA string `json:"ca"`
	}
	m.API = (&ft.API{}).For(m.i.t)
	if err := json.Unmarshal(b, &m.Cred); err != nil {
		m.i.t.Fatal(err)
	}
	if err := json.Unmarshal(b, &file); err != nil {
		m.i.t.Fatal(err)
	}

	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(file.CA))
	m.Client = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	m.i.t.Cleanup(m.Client.CloseIdleConnections)
}

// cli runs a command against this server.
func (m *member) cli(args ...string) string {
	m.i.t.Helper()
	out, err := m.try(args...)
	if err != nil {
		m.i.t.Fatalf("gozzard %v at %s: %v: %s", args, m.listen, err, out)
	}
	return out
}

func (m *member) try(args ...string) (string, error) {
	cmd := exec.Command(ft.Binary(m.i.t), append([]string{args[0], "--credentials", m.credentials}, args[1:]...)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// join enrols a host at this server and starts its agent.
func (m *member) join(ip string) *ft.Program {
	m.i.t.Helper()
	dir := filepath.Join(m.i.t.TempDir(), "agent")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		m.i.t.Fatal(err)
	}
	ft.AllowEverything(m.i.t, dir)
	token := filepath.Join(m.i.t.TempDir(), "token")
	secret, err := exec.Command(ft.Binary(m.i.t), "token", "create", "--credentials", m.credentials).Output()
	if err != nil {
		m.i.t.Fatal(err)
	}
	if err := os.WriteFile(token, secret, 0o600); err != nil {
		m.i.t.Fatal(err)
	}
	m.cliLocal("agent", "join", "--server", m.Cred.URL, "--token-file", token, "--data", dir, "--ip", ip)
	p := ft.StartFile(m.i.t, "agent-"+ip, cmp.Or(m.i.program, ft.Binary(m.i.t)), "agent", "--data", dir)
	m.i.folders[p] = dir
	ft.Until(m.i.t, time.Minute, p.Output, func() bool { return p.Sessions() > 0 })
	return p
}

// cliLocal runs a command that calls no API.
func (m *member) cliLocal(args ...string) {
	m.i.t.Helper()
	if out, err := exec.Command(cmp.Or(m.i.program, ft.Binary(m.i.t)), args...).CombinedOutput(); err != nil {
		m.i.t.Fatalf("gozzard %v: %v: %s", args, err, out)
	}
}

// online waits until a server knows that a host is online, or that it is not.
func (m *member) online(ip string, want bool) {
	m.i.t.Helper()
	ft.Until(m.i.t, time.Minute, func() string { return m.listen + " has another opinion of " + ip + ": " + m.Output() }, func() bool {
		var d map[string]struct {
			Alive int `json:"bk_agent_alive"`
		}
		ans, err := m.Try("get_agent_status", ft.J{"hosts": []ft.J{{"ip": ip, "bk_cloud_id": m.i.cloud}}})
		return err == nil && json.Unmarshal(ans.Data, &d) == nil && (d[strconv.Itoa(m.i.cloud)+":"+ip].Alive == 1) == want
	})
}

// homeOf is the server that an agent is connected to.
func (i *installation) homeOf(agent *ft.Program) *member {
	for _, m := range i.servers {
		if connected(i.t, agent.PID(), m.agent) {
			return m
		}
	}
	return nil
}

// connected reports whether a process has a TCP connection to an address on loopback.
func connected(t *testing.T, pid int, address string) bool {
	t.Helper()
	out, err := exec.Command("ss", "-Htnp", "state", "established", "dst", address).CombinedOutput()
	if err != nil {
		t.Fatalf("ss: %v: %s", err, out)
	}
	return strings.Contains(string(out), "pid="+strconv.Itoa(pid)+",")
}

// knownTo is how many servers an agent knows. What it learned at its enrolment and never changed is in that file only.
func (i *installation) knownTo(agent *ft.Program) int {
	for _, name := range []string{"servers.json", "enrolment.json"} {
		if b, err := os.ReadFile(filepath.Join(i.folders[agent], name)); err == nil {
			return strings.Count(string(b), `"agents"`)
		}
	}
	return 0
}

func host(ip string) ft.J { return ft.J{"ip": ip, "bk_cloud_id": 0} }
