//go:build linux

package cluster_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// TestTS7CopyAtAnotherServer: a copy of the state folder of a host runs on the same machine and connects to another server
// than the original. Both are cut off at all servers until a person decides. An agent that goes from server to server, and
// starts again there, is no copy.
func TestTS7CopyAtAnotherServer(t *testing.T) {
	t.Parallel() // it mostly waits
	i := newInstallation(t, 2)
	a, b := i.servers[0], i.servers[1]
	const ip = "10.77.0.1"
	original := a.join(ip)
	ft.Until(t, time.Minute, original.Output, func() bool { return i.knownTo(original) == 2 })

	// An honest agent moves, and is killed at each server.
	for _, m := range i.servers {
		other := i.other(m)
		m.cli("servers", "drain", m.id())
		ft.Until(t, time.Minute, original.Output, func() bool { return i.homeOf(original) == other })
		m.cli("servers", "undrain", m.id())

		sessions := original.Sessions()
		original.Kill(syscall.SIGKILL)
		original.Again()
		ft.Until(t, time.Minute, original.Output, func() bool { return original.Sessions() > sessions })
	}
	for _, m := range i.servers {
		m.online(ip, true)
		if got := m.trust(ip); got != "active" {
			t.Fatalf("%s: a host that moved between servers is %s", m.listen, got)
		}
	}

	// The copy knows only the server that the original does not use.
	var home *member
	ft.Until(t, time.Minute, original.Output, func() bool { home = i.homeOf(original); return home != nil })
	folder := filepath.Join(t.TempDir(), "copy")
	if out, err := exec.Command("cp", "-a", i.folders[original], folder).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	onlyServer(t, filepath.Join(folder, "servers.json"), a, i.other(home))
	begin := time.Now()
	thief := ft.Start(t, "copy", nil, "agent", "--data", folder, "--socket", "none")

	// Both are cut off, and every server says so.
	for _, m := range []*member{a, b} {
		ft.Until(t, 2*time.Minute, func() string { return m.listen + " has it as " + m.trust(ip) + "\n" + thief.Output() },
			func() bool { return m.trust(ip) == "quarantined" })
		m.online(ip, false)
	}
	t.Logf("quarantine after %s", time.Since(begin).Round(time.Millisecond))
	ft.Until(t, time.Minute, original.Output, func() bool { return i.homeOf(original) == nil && i.homeOf(thief) == nil })

	// A person ends the copy and approves the original.
	thief.Kill(syscall.SIGKILL)
	b.cli("hosts", "approve", ip)
	for _, m := range i.servers {
		m.online(ip, true)
	}
}

// onlyServer makes the list of servers of an agent that joined a server name only one.
func onlyServer(t *testing.T, path string, joined, m *member) {
	t.Helper()
	text, err := json.Marshal(ft.J{"joined": joined.Cred.URL, "servers": []ft.J{{"agents": m.agent, "api": m.Cred.URL}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// other is the other one of two servers.
func (i *installation) other(m *member) *member {
	if i.servers[0] == m {
		return i.servers[1]
	}
	return i.servers[0]
}

// trust is the trust state of a host as a server says it.
func (m *member) trust(ip string) string {
	var page struct {
		Hosts []struct {
			Trust string `json:"trust"`
			Addrs []struct {
				IP string `json:"ip"`
			} `json:"addrs"`
		} `json:"hosts"`
	}
	m.native("/api/v1/hosts", &page)
	for _, h := range page.Hosts {
		for _, addr := range h.Addrs {
			if addr.IP == ip {
				return h.Trust
			}
		}
	}
	return "not known"
}
