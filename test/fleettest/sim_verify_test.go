//go:build linux

package fleettest_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/signing"
	ft "github.com/gozzard/gozzard/test/fleettest"
	"github.com/gozzard/gozzard/test/sim"
)

// firstRejected is the line that a host logs when it rejects a command for the first time.
var firstRejected = regexp.MustCompile(`command rejected: it is not from this agent's server.*rejected"?[:=]1\b`)

// TestSimulatedHostsVerify: every simulated host that trusts another key rejects the commands of the server.
func TestSimulatedHostsVerify(t *testing.T) {
	t.Parallel() // it mostly waits
	const hosts = 60
	s := ft.StartServer(t, "", "--log-level", "warn")
	b, err := os.ReadFile(filepath.Join(s.Data, "join.secret"))
	if err != nil {
		t.Fatal(err)
	}
	secret, _, _ := strings.Cut(strings.TrimSpace(string(b)), " ")

	// The hosts can connect, but obey a server that nobody has.
	other := signing.Key{Epoch: 1}
	if _, err := rand.Read(other.Public[:]); err != nil {
		t.Fatal(err)
	}
	file, dir := filepath.Join(t.TempDir(), "join.secret"), t.TempDir()
	if err := os.WriteFile(file, []byte(secret+" "+other.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := s.StartSim(t, hosts, "--secret-file", file, "--data", dir)
	rejected := func() int { return len(firstRejected.FindAllString(p.Output(), -1)) }
	ft.Until(t, 2*time.Minute, func() string {
		return fmt.Sprintf("%d of %d hosts rejected a command: %s", rejected(), hosts, p.Output())
	},
		func() bool { return rejected() == hosts })

	// Nothing that they are asked for happens.
	task := ft.J{"meta": ft.J{"namespace": "sim", "name": "game"}, "op_type": 0, "hosts": simHosts(hosts), "spec": ft.J{
		"identity": ft.J{"proc_name": "game", "setup_path": "/srv", "pid_path": "/srv/game", "user": "root"},
		"control":  ft.J{"start_cmd": "note started", "stop_cmd": "ok"}, "resource": ft.J{"cpu": 10, "mem": 10}}}
	if ans, err := s.Try("operate_proc_v2", task); err != nil {
		t.Errorf("the server does not answer: %v, %+v", err, ans)
	}
	time.Sleep(3 * time.Second) // a host that obeyed would have done it by now
	if text, err := os.ReadFile(filepath.Join(dir, sim.Notes)); err == nil {
		t.Errorf("hosts obeyed a server that they do not trust: %.300s", text)
	}
}
