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

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/enrol"
	ft "github.com/gozzard/gozzard/test/fleettest"
	"github.com/gozzard/gozzard/test/ledger"
)

// C5: a server with the id of another one, a server of another installation, and strangers at the cluster port are
// rejected under load, and say or are told why. The servers go on.
func TestC5Strangers(t *testing.T) {
	t.Parallel() // it mostly waits
	f := newLoaded(t, newInstallation(t, 2))
	b := f.servers[1]
	for _, fault := range []struct {
		name   string
		happen func()
	}{
		{"a second server with the same id", func() { f.twin(b) }},
		{"a record of another installation", func() { f.foreigner(b) }},
		{"a peer that is not ours at the cluster port", func() { f.intruders(b) }},
	} {
		f.fresh(fewOps() / 10) // nothing breaks, so few of them show as much as many
		end := f.begin()
		fault.happen()
		end()
		f.judge(line{id: "C5", fault: fault.name, times: 1}, ledger.Floor{OK: 30, Percent: 80})
	}

	// They go on, also after one is started again.
	a := f.servers[0]
	a.Kill(syscall.SIGKILL)
	a.Again()
	a.answers()
	f.settle()
	for _, m := range f.servers {
		f.operable(m)
		var list client.ServerList
		m.native("/api/v1/servers", &list)
		if len(list.Servers) != len(f.servers) {
			t.Errorf("%s lists %+v", m.listen, list.Servers)
		}
	}
	fmt.Println("fault C5: a second server with the same id, keys of another installation and strangers at the cluster port: 0 accepted")
}

// twin starts a server on a copy of the data folder of another one, with its id.
func (f *loaded) twin(m *member) {
	f.t.Helper()
	f.refused("another server with the same id uses this record", f.copyOf(m))
}

// copyOf is a copy of the data folder of a server.
func (f *loaded) copyOf(m *member) string {
	f.t.Helper()
	dir := filepath.Join(f.t.TempDir(), "copy")
	if out, err := exec.Command("cp", "-a", m.data, dir).CombinedOutput(); err != nil {
		f.t.Fatalf("%v: %s", err, out)
	}
	return dir
}

// foreigner starts a server with the keys of another installation, without and with the id of a server of this one.
func (f *loaded) foreigner(m *member) {
	f.t.Helper()
	other := newInstallation(f.t, 1).servers[0]
	other.Kill(syscall.SIGTERM)
	f.refused("belongs to another installation", other.data)
	if err := os.WriteFile(filepath.Join(other.data, "server.json"), []byte(m.read("server.json")), 0o600); err != nil {
		f.t.Fatal(err)
	}
	f.refused("another server with the same id uses this record", other.data)
}

// intruders come to the cluster port of a server: without TLS, without a certificate, with that of a host, with that of a
// server of another installation, and silent.
func (f *loaded) intruders(m *member) {
	f.t.Helper()
	port := m.Flag("--cluster-listen")
	secured := func(conf *tls.Config) func(net.Conn) net.Conn {
		return func(c net.Conn) net.Conn { return tls.Client(c, conf) }
	}
	for name, wrap := range map[string]func(net.Conn) net.Conn{
		"without TLS":                    func(c net.Conn) net.Conn { return c },
		"without a certificate":          secured(as()),
		"with the certificate of a host": secured(as(f.identityOf(f.folders[f.agents[0]]))),
		"of another installation":        secured(unchecked(f.peerTLS(filepath.Join(f.t.TempDir(), "other")))),
	} {
		if told := visit(f.t, port, wrap); strings.Contains(told, "INFO ") || strings.Contains(told, "PONG") {
			f.t.Errorf("a stranger %s is told %q", name, told)
		}
	}

	// A server with the keys of this installation would be told what they are not.
	if told := visit(f.t, port, secured(f.peerTLS(f.copyOf(m)))); !strings.Contains(told, "INFO ") {
		f.t.Errorf("a peer is told %q", told)
	}

	silent, err := net.Dial("tcp", port)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = silent.Close() }) // it stays while the servers go on
}

// peerTLS is what a server shows that has the authority in a folder. A new authority is made where there is none.
func (f *loaded) peerTLS(dir string) *tls.Config {
	f.t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		f.t.Fatal(err)
	}
	authority, err := enrol.OpenAuthority(dir, time.Now)
	if err != nil {
		f.t.Fatal(err)
	}
	return authority.PeerTLS("stranger")
}

// unchecked is a configuration of a stranger, which does not check the other end.
func unchecked(conf *tls.Config) *tls.Config {
	conf.VerifyConnection = nil
	return conf
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

// visit connects, greets as a broker does, and returns what it is told first.
func visit(t *testing.T, address string, wrap func(net.Conn) net.Conn) string {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(15 * time.Second)); err != nil {
		t.Fatal(err)
	}
	talk := wrap(c)
	if _, err := talk.Write([]byte("INFO {}\r\nCONNECT {\"verbose\":false}\r\nPING\r\n")); err != nil {
		return "" // the handshake was rejected
	}
	told := make([]byte, 4096)
	n, _ := talk.Read(told) // it may close the connection
	return string(told[:n])
}
