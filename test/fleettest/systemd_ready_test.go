//go:build linux

package fleettest_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gozzard/gozzard/test/fleettest"
)

// TestReadyForSystemd: the server says that it has started when the next command can rely on it, as the unit with
// Type=notify promises. A socket that nobody reads does not keep it from serving.
func TestReadyForSystemd(t *testing.T) {
	t.Parallel()

	// systemd's socket in a folder, and one without a file.
	path := filepath.Join(t.TempDir(), "notify")
	abstract := "@gozzard-test-" + strconv.Itoa(os.Getpid())
	for _, address := range []string{path, abstract} {
		systemd, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		data, server := startNotifying(t, address)
		if err := systemd.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		said := make([]byte, 100)
		n, err := systemd.Read(said)
		if err != nil || string(said[:n]) != "READY=1" {
			t.Fatalf("%s: the server said %q, %v: %s", address, said[:n], err, server.Output())
		}

		// The first try succeeds: nothing waits here.
		credentials := filepath.Join(data, "credentials.json")
		if out, err := exec.Command(fleettest.Binary(t), "hosts", "--credentials", credentials).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", address, err, out)
		}
		if _, err := os.Stat(filepath.Join(data, "join.secret")); err != nil {
			t.Error(err)
		}
		_ = systemd.Close()
	}

	// Nobody listens.
	_, server := startNotifying(t, filepath.Join(t.TempDir(), "nobody"))
	fleettest.Until(t, time.Minute, server.Output, func() bool { return strings.Contains(server.Output(), "server started") })
	if !strings.Contains(server.Output(), "systemd does not know") {
		t.Errorf("the server does not say that it cannot reach systemd: %s", server.Output())
	}
}

// TestAgentReadyForSystemd: an agent says that it has started when commands on the host reach it, without its server. It does
// not say it when a setting or the policy is wrong: then systemctl restart fails.
func TestAgentReadyForSystemd(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "notify")
	systemd, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer systemd.Close()

	// A server has been there, so that there is a secret; it is gone.
	data, server := startNotifying(t, path)
	said := make([]byte, 100)
	heard := func(limit time.Duration) string {
		t.Helper()
		if err := systemd.SetReadDeadline(time.Now().Add(limit)); err != nil {
			t.Fatal(err)
		}
		n, _ := systemd.Read(said)
		return string(said[:n])
	}
	if got := heard(time.Minute); got != "READY=1" {
		t.Fatalf("the server said %q: %s", got, server.Output())
	}
	server.Kill(syscall.SIGINT)

	// The first look at the socket succeeds: nothing waits here.
	state := filepath.Join(t.TempDir(), "agent")
	start := func(more ...string) *fleettest.Program {
		return fleettest.Start(t, "agent", []string{"NOTIFY_SOCKET=" + path}, append([]string{"agent", "--data", state,
			"--secret-file", filepath.Join(data, "join.secret"),
			"--server", "127.0.0.1:" + strconv.Itoa(fleettest.FreePort(t))}, more...)...)
	}
	for _, socket := range []string{"agent.sock", "none"} {
		agent := start("--socket", socket)
		if got := heard(time.Minute); got != "READY=1" {
			t.Fatalf("--socket %s: the agent said %q: %s", socket, got, agent.Output())
		}
		out, err := exec.Command(fleettest.Binary(t), "agent", "status", "--data", state).CombinedOutput()
		if (err == nil) != (socket != "none") {
			t.Errorf("--socket %s: %v: %s", socket, err, out)
		}
		agent.Kill(syscall.SIGINT)
	}

	// Wrong settings, and a wrong policy.
	ends := func(agent *fleettest.Program, why string) {
		t.Helper()
		fleettest.Until(t, time.Minute, agent.Output, func() bool { return strings.Contains(agent.Output(), why) })
		<-agent.Done()
		if got := heard(time.Millisecond); got != "" {
			t.Errorf("the agent said %q: %s", got, agent.Output())
		}
	}
	ends(start("--metrics-listen", "0.0.0.0:9436"), "callers need a token")
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte("allow_rot: true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ends(start("--policy", policy), "is not a setting")
}

// startNotifying starts a server with the socket of systemd in its environment.
func startNotifying(t *testing.T, socket string) (data string, server *fleettest.Program) {
	t.Helper()
	data = t.TempDir()
	server = fleettest.Start(t, "server", []string{"NOTIFY_SOCKET=" + socket}, "server", "--data", data,
		"--listen", "127.0.0.1:"+strconv.Itoa(fleettest.FreePort(t)), "--agent-listen", "127.0.0.1:"+strconv.Itoa(fleettest.FreePort(t)))
	return data, server
}
