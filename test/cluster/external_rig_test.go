//go:build linux

package cluster_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// buildNATS builds nats-server, in the version that is embedded in the servers.
var buildNATS = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "nats-bin-")
	if err != nil {
		return "", err
	}
	ft.RemoveAtEnd(dir)
	out := filepath.Join(dir, "nats-server")
	cmd := exec.Command("go", "build", "-trimpath", "-o", out, "github.com/nats-io/nats-server/v2")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if b, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, b)
	}
	return out, nil
})

const natsPassword = "a password of the tests"

// natsCluster is three nats-server programs with the configuration of the page.
type natsCluster struct {
	t               *testing.T
	dir             string
	clients, routes []string // addresses
	nodes           []*ft.Program
	installation    string
	second          string // what the user "second" may publish and subscribe
	verify          bool   // clients need certificates, too
}

// newNATS prepares a cluster. It is not started.
func newNATS(t *testing.T, verify bool) *natsCluster {
	t.Helper()
	c := &natsCluster{t: t, dir: t.TempDir(), second: "other.>", verify: verify}
	for range 3 {
		c.clients, c.routes = append(c.clients, freeAddr(t)), append(c.routes, freeAddr(t))
	}
	c.certificates()
	return c
}

// certificates makes those of the brokers and of their authority.
func (c *natsCluster) certificates() {
	c.t.Helper()
	write := func(name, kind string, der []byte, err error) {
		c.t.Helper()
		if err == nil {
			err = os.WriteFile(filepath.Join(c.dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
		}
		if err != nil {
			c.t.Fatal(err)
		}
	}
	key := func() *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			c.t.Fatal(err)
		}
		return k
	}

	caKey, brokerKey := key(), key()
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "brokers"}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	write("ca.crt", "CERTIFICATE", der, err)
	broker := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "broker"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err = x509.CreateCertificate(rand.Reader, broker, ca, brokerKey.Public(), caKey)
	write("server.crt", "CERTIFICATE", der, err)
	der, err = x509.MarshalECPrivateKey(brokerKey)
	write("server.key", "EC PRIVATE KEY", der, err)
}

// configure writes the configuration of a broker: the block of the page, with addresses of this test and two more users.
func (c *natsCluster) configure(n int) string {
	c.t.Helper()
	page, err := os.ReadFile("../../docs/external-nats.md")
	if err != nil {
		c.t.Fatal(err)
	}
	_, text, found := strings.Cut(string(page), "```conf\n")
	text, _, ended := strings.Cut(text, "```")
	if !found || !ended {
		c.t.Fatal("the page has no configuration")
	}

	clients := "  timeout: 10\n}"
	if c.verify {
		clients = "  timeout: 10\n  verify: true\n  ca_file: \"/etc/nats/ca.crt\"\n}"
	}
	for _, r := range [][2]string{
		{"  timeout: 10\n}", clients},
		{"server_name: nats1", fmt.Sprint("server_name: nats", n+1)},
		{"0.0.0.0:4222", c.clients[n]}, {"0.0.0.0:6222", c.routes[n]},
		{"nats1.example.com:6222", c.routes[0]}, {"nats2.example.com:6222", c.routes[1]}, {"nats3.example.com:6222", c.routes[2]},
		{"/etc/nats/", c.dir + "/"},
		{"accounts {", `accounts { OTHER { users: [ { user: "elsewhere", password: "PASSWORD" } ] }`},
		{"users: [\n", `users: [ { user: "second", password: "PASSWORD", permissions { publish: { allow: ["SECOND"] }, ` +
			`subscribe: { allow: ["SECOND"] } } },` + "\n"},
		{"SECOND", c.second}, {"PASSWORD", natsPassword}, {"INSTALLATION", c.installation},
	} {
		if !strings.Contains(text, r[0]) {
			c.t.Fatalf("the configuration has no %q", r[0])
		}
		text = strings.ReplaceAll(text, r[0], r[1])
	}
	path := filepath.Join(c.dir, fmt.Sprintf("nats%d.conf", n))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return path
}

// start starts the brokers.
func (c *natsCluster) start(installation string) {
	c.t.Helper()
	program, err := buildNATS()
	if err != nil {
		c.t.Fatal(err)
	}
	c.installation = installation
	for n := range c.clients {
		c.nodes = append(c.nodes, ft.StartFile(c.t, fmt.Sprint("nats", n), program, "-c", c.configure(n)))
	}
}

// reload makes the brokers read their configuration again.
func (c *natsCluster) reload() {
	c.t.Helper()
	for n, p := range c.nodes {
		c.configure(n)
		if err := syscall.Kill(p.PID(), syscall.SIGHUP); err != nil {
			c.t.Fatal(err)
		}
	}
}

// urls are the addresses for clients.
func (c *natsCluster) urls() string { return "tls://" + strings.Join(c.clients, ",tls://") }

// of is the broker that a program is connected to; -1 for none.
func (c *natsCluster) of(p *ft.Program) int {
	for n, address := range c.clients {
		if connected(c.t, p.PID(), address) {
			return n
		}
	}
	return -1
}

// credentials has a user of the cluster.
func credentials(user, password string) string {
	b, _ := json.Marshal(map[string]string{"user": user, "password": password}) // texts can always be encoded
	return string(b)
}

// addExternal starts one more server that uses the cluster.
func (i *installation) addExternal(c *natsCluster) *member {
	i.t.Helper()
	flags := []string{"--cluster-nats", c.urls(), "--cluster-nats-ca", filepath.Join(c.dir, "ca.crt"),
		"--cluster-nats-credentials", i.file(credentials("gozzard", natsPassword))}
	if c.verify {
		flags = append(flags, "--cluster-nats-cert", filepath.Join(c.dir, "server.crt"),
			"--cluster-nats-key", filepath.Join(c.dir, "server.key"))
	}
	return i.add(flags...)
}

// newExternal starts two servers that use a NATS cluster, which comes after the first one: it needs the id of the
// installation.
func newExternal(t *testing.T, verify bool) (*installation, *natsCluster) {
	t.Helper()
	c, i := newNATS(t, verify), newInstallation(t, 0)
	a := i.addExternal(c)
	a.says("cannot connect to the NATS cluster")
	c.start(installationOf(a))
	a.says("connected to the NATS cluster")
	i.addExternal(c)
	i.hearEachOther(true)
	return i, c
}

// says waits until the log of a server has a text.
func (m *member) says(text string) {
	m.i.t.Helper()
	ft.Until(m.i.t, time.Minute, func() string { return m.listen + " does not say " + text }, func() bool {
		return strings.Contains(m.Output(), text)
	})
}

// restart starts a server again with another user of the NATS cluster.
func (m *member) restart(user, password string) {
	m.i.t.Helper()
	m.Kill(syscall.SIGTERM)
	m.login(user, password)
	m.Again()
	m.answers()
}

// login changes the user that a server has at the NATS cluster.
func (m *member) login(user, password string) {
	m.i.t.Helper()
	if err := os.WriteFile(m.Flag("--cluster-nats-credentials"), []byte(credentials(user, password)), 0o600); err != nil {
		m.i.t.Fatal(err)
	}
}

// hearEachOther waits until all servers hear each other, or none is shown as heard. The lag of a server that is not heard
// grows, so a small one counts when it stays small for longer than that.
func (i *installation) hearEachOther(want bool) {
	i.t.Helper()
	const small = 5 * time.Second
	since := time.Now()
	ft.Until(i.t, 2*time.Minute, func() string { return i.servers[0].cli("servers") + i.servers[1].cli("servers") }, func() bool {
		time.Sleep(500 * time.Millisecond)
		for _, m := range i.servers {
			if !want && !strings.Contains(m.cli("servers"), "has not heard everything from it for") {
				return false
			}
			for _, other := range i.servers {
				if want && other != m && time.Duration(m.server(other).Lag)*time.Second >= small {
					since = time.Now()
				}
			}
		}
		return !want || time.Since(since) > small+2*time.Second
	})
}

// installationOf is the id of the installation of a server.
func installationOf(m *member) string {
	m.i.t.Helper()
	var place struct {
		Installation string `json:"installation"`
	}
	if err := json.Unmarshal([]byte(m.read("record.json")), &place); err != nil || place.Installation == "" {
		m.i.t.Fatalf("record.json: %v", err)
	}
	return place.Installation
}
