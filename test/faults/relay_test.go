//go:build linux

package faults_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// TestClosedNetwork: a host that reaches nothing but a relay joins, is operated, and renews its certificate through it.
func TestClosedNetwork(t *testing.T) {
	t.Parallel() // it mostly waits
	n := ft.NewNetwork(t, 2)
	s := n.StartServer("--relay-listen", "0.0.0.0:4240", "--certificate-life", "12s")

	// Host 1 is the relay. Host 2 has no way to the server.
	n.In(2, "route", "add", "blackhole", n.Addr(0)+"/32")
	if out, err := n.Run(2, ft.Binary(t), "agent", "join", "--server", "https://"+n.Addr(0)+":8443", "--token-file",
		secret(t, n.CLI(s, "token", "create", "--cloud", "3")), "--data", t.TempDir()); err == nil {
		t.Fatalf("host 2 reaches the server: %s", out)
	}
	data := filepath.Join(t.TempDir(), "relay")
	if out, err := n.Run(1, ft.Binary(t), "relay", "join", "--server", "https://"+n.Addr(0)+":8443", "--token-file",
		secret(t, n.CLI(s, "relays", "token", "plant", "--areas", "3")), "--data", data); err != nil {
		t.Fatalf("the relay cannot join: %v: %s", err, out)
	}
	relay := n.Start(1, "relay", "relay", "--data", data)
	connected := func(times int) {
		t.Helper()
		ft.Until(t, time.Minute, relay.Output, func() bool { return strings.Count(relay.Output(), "connected to a server") >= times })
	}
	connected(1)

	// The host joins through it. The token is for addresses of the network: the relay says which one the host has.
	dir := filepath.Join(t.TempDir(), "agent")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	ft.AllowEverything(t, dir)
	if out, err := n.Run(2, ft.Binary(t), "agent", "join", "--server", "https://"+n.Addr(1)+":8443", "--token-file",
		secret(t, n.CLI(s, "token", "create", "--cloud", "3", "--cidr", n.Addr(2)+"/32")), "--data", dir); err != nil {
		t.Fatalf("the host cannot join: %v: %s", err, out)
	}
	agent := n.Start(2, "agent", "agent", "--data", dir)
	online := func() {
		t.Helper()
		ft.Until(t, time.Minute, agent.Output, func() bool {
			return strings.Contains(n.CLI(s, "hosts", "-o", "json"), `"online": true`)
		})
	}
	online()
	d := ft.NewDaemon(t, t.TempDir(), "web")
	operate := func(op int) {
		t.Helper()
		for key, e := range s.Await(s.Operate("operate_proc_v2", ft.J{"meta": ft.J{"namespace": "net", "name": d.Name}, "op_type": op,
			"spec": d.Spec(nil), "hosts": []ft.J{{"ip": n.Addr(2), "bk_cloud_id": 3}}})) {
			if e.Code != 0 {
				t.Errorf("operation %d: %s: %d %s", op, key, e.Code, e.Msg)
			}
		}
	}
	operate(0)

	// Both renew their certificates, and neither connection is lost by that of the relay.
	ft.Until(t, 2*time.Minute, func() string { return agent.Output() + relay.Output() }, func() bool {
		return strings.Contains(agent.Output(), "certificate of this host renewed") &&
			strings.Count(relay.Output(), "certificate of this relay renewed") >= 2
	})
	if times := strings.Count(relay.Output(), "connected to a server"); times != 1 {
		t.Errorf("the relay has connected %d times", times)
	}

	// It is back after a kill, also with a certificate that has expired meanwhile.
	sessions := agent.Sessions()
	relay.Kill(syscall.SIGKILL)
	time.Sleep(14 * time.Second) // longer than its certificate is valid
	relay.Again()
	connected(2)
	ft.Until(t, 2*time.Minute, agent.Output, func() bool { return agent.Sessions() > sessions })
	online()
	operate(1)
	if starts, stops := d.Count("start"), d.Count("stop"); starts != 1 || stops != 1 {
		t.Errorf("%d starts and %d stops, want 1 of each", starts, stops)
	}
}

// secret is a file with a secret that only its owner can read.
func secret(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
