//go:build linux

package cluster_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// C5: a server with the id of another one, a server of another installation, and strangers at the cluster port are
// rejected, and say or are told why. The servers go on.
func TestC5Strangers(t *testing.T) {
	t.Parallel() // it mostly waits
	i := newInstallation(t, 2)
	a, b := i.servers[0], i.servers[1]
	a.join(faultHost(1))

	// A copy of a data folder, with the id.
	twin := filepath.Join(t.TempDir(), "twin")
	if out, err := exec.Command("cp", "-a", b.data, twin).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	i.refused("another server with the same id uses this record", twin)

	// The keys of another installation, with and without that id.
	other := newInstallation(t, 1).servers[0]
	other.Kill(syscall.SIGTERM)
	i.refused("belongs to another installation", other.data)
	id, err := os.ReadFile(filepath.Join(b.data, "server.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other.data, "server.json"), id, 0o600); err != nil {
		t.Fatal(err)
	}
	i.refused("another server with the same id uses this record", other.data)

	// Strangers at the cluster port: no TLS, no certificate, silence.
	port := b.Flag("--cluster-listen")
	for name, talk := range map[string]func(net.Conn) error{
		"without TLS": func(c net.Conn) error {
			_, err := c.Write([]byte("INFO {}\r\nCONNECT {\"verbose\":false}\r\nPING\r\n"))
			return err
		},
		"without a certificate": func(c net.Conn) error {
			return tls.Client(c, &tls.Config{InsecureSkipVerify: true}).Handshake() // a stranger checks nothing
		},
	} {
		if got := visit(t, port, talk); strings.Contains(got, "PONG") {
			t.Errorf("a stranger %s is answered: %q", name, got)
		}
	}
	silent, err := net.Dial("tcp", port)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()

	// They go on, also after one is started again beside the silent stranger.
	a.Kill(syscall.SIGKILL)
	a.Again()
	a.answers()
	for _, m := range i.servers {
		m.online(faultHost(1), true)
		for key, e := range m.Await(m.Operate("operate_proc_v2", ft.J{"meta": ft.J{"namespace": "shop", "name": "web"}, "op_type": 8,
			"hosts": []ft.J{host(faultHost(1))}, "spec": ft.J{"identity": ft.J{"proc_name": "web", "setup_path": "/tmp",
				"pid_path": "/tmp/none.pid", "user": "root"}, "control": ft.J{"reload_cmd": "true"}}})) {
			if e.Code != 0 {
				t.Errorf("through %s: %s: %d %s", m.listen, key, e.Code, e.Msg)
			}
		}
	}
	fmt.Println("fault C5: a second server with the same id, keys of another installation and strangers at the cluster port: 0 accepted")
}

// refused starts a server on the record that must not start.
func (i *installation) refused(want, data string) {
	i.t.Helper()
	p := ft.Start(i.t, "refused", nil, "server", "--data", data, "--listen", freeAddr(i.t), "--agent-listen", freeAddr(i.t), "--enrol",
		"--record", i.pg.URL("fleet"), "--cluster-listen", freeAddr(i.t))
	select {
	case <-p.Done():
	case <-time.After(time.Minute):
		i.t.Fatalf("it did not end: %s", p.Output())
	}
	if p.ExitCode() == 0 || !strings.Contains(p.Output(), want) {
		i.t.Errorf("exit code %d, no %q in %s", p.ExitCode(), want, p.Output())
	}
}

// visit connects as a stranger and returns what it is told within a second.
func visit(t *testing.T, address string, talk func(net.Conn) error) string {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if err := talk(c); err != nil {
		return err.Error()
	}
	told := make([]byte, 4096)
	n, _ := c.Read(told) // it may close the connection
	return string(told[:n])
}
