//go:build linux

package fleettest_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
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

// startNotifying starts a server with the socket of systemd in its environment.
func startNotifying(t *testing.T, socket string) (data string, server *fleettest.Program) {
	t.Helper()
	data = t.TempDir()
	server = fleettest.Start(t, "server", []string{"NOTIFY_SOCKET=" + socket}, "server", "--data", data,
		"--listen", "127.0.0.1:"+strconv.Itoa(fleettest.FreePort(t)), "--agent-listen", "127.0.0.1:"+strconv.Itoa(fleettest.FreePort(t)))
	return data, server
}
