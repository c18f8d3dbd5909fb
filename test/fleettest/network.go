//go:build linux

package fleettest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Network is a server and hosts on one bridge, each in its own network namespace. It does not touch the network of the
// machine.
type Network struct {
	t      testing.TB
	prefix string
}

// networks counts the networks of this process, so that each has namespaces of its own.
var networks atomic.Int64

// NewNetwork makes the namespaces of a server (0) and of hosts from 1 on.
func NewNetwork(t testing.TB, hosts int) *Network {
	t.Helper()
	n := &Network{t: t, prefix: fmt.Sprintf("gz%dx%dx", os.Getpid(), networks.Add(1))}
	n.ip("netns", "add", n.name(0))
	n.In(0, "link", "add", "br0", "type", "bridge")
	n.In(0, "addr", "add", n.Addr(0)+"/24", "dev", "br0")
	n.In(0, "link", "set", "br0", "up")
	n.In(0, "link", "set", "lo", "up")

	for i := 1; i <= hosts; i++ {
		n.ip("netns", "add", n.name(i))
		port := n.Port(i)
		n.ip("link", "add", port, "netns", n.name(0), "type", "veth", "peer", "name", "eth0", "netns", n.name(i))
		n.In(0, "link", "set", port, "master", "br0", "up")
		n.In(i, "addr", "add", n.Addr(i)+"/24", "dev", "eth0")
		n.In(i, "link", "set", "lo", "up")
		n.In(i, "link", "set", "eth0", "up")
	}

	return n
}

func (n *Network) name(i int) string { return n.prefix + strconv.Itoa(i) }

// Addr is the address of the server (0) or of a host.
func (n *Network) Addr(i int) string {
	if i == 0 {
		return "198.18.77.1"
	}
	return "198.18.77." + strconv.Itoa(10+i)
}

// Port is the server's end of the cable to a host.
func (n *Network) Port(i int) string { return "port" + strconv.Itoa(i) }

// In runs the ip command in a namespace.
func (n *Network) In(i int, args ...string) {
	n.t.Helper()
	n.ip(append([]string{"-n", n.name(i)}, args...)...)
}

func (n *Network) ip(args ...string) {
	n.t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		n.t.Fatalf("ip %v: %v: %s", args, err, out)
	}
	if len(args) == 3 && args[1] == "add" && args[0] == "netns" {
		n.t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", args[2]).Run() })
	}
}

// enter is the beginning of a command line that runs in a namespace.
func (n *Network) enter(i int) []string {
	return []string{"nsenter", "--net=/run/netns/" + n.name(i)}
}

// Run runs a program in a namespace until it ends and returns its output.
func (n *Network) Run(i int, args ...string) (string, error) {
	all := append(n.enter(i), args...)
	out, err := exec.Command(all[0], all[1:]...).CombinedOutput()
	return string(out), err
}

// Start starts gozzard in a namespace, see the function Start.
func (n *Network) Start(i int, name string, args ...string) *Program {
	n.t.Helper()
	return start(n.t, name, Binary(n.t), n.enter(i), nil, args...)
}

// dial connects from inside a namespace. A socket belongs to the namespace of the thread that made it. The thread is
// discarded afterwards.
func (n *Network) dial(ctx context.Context, i int, network, address string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		f, err := os.Open("/run/netns/" + n.name(i))
		if err != nil {
			done <- result{err: err}
			return
		}

		defer f.Close()

		if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- result{err: err}
			return
		}

		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		done <- result{conn, err}
	}()

	r := <-done
	return r.conn, r.err
}

// StartServer runs `gozzard server` in its namespace, open to the whole network, and waits until it answers.
func (n *Network) StartServer(extra ...string) *Server {
	n.t.Helper()
	return n.StartServerIn(n.t.TempDir(), extra...)
}

// StartServerIn is StartServer on a data folder.
func (n *Network) StartServerIn(data string, extra ...string) *Server {
	n.t.Helper()
	s := &Server{Data: data, API: &API{t: n.t}}
	args := append([]string{"server", "--data", s.Data, "--listen", "0.0.0.0:8443", "--agent-listen", "0.0.0.0:4230"},
		noLimits(n.t)...)
	s.Program = n.Start(0, "server", append(args, extra...)...)
	awaitCredentials(s.Program, s.API, filepath.Join(s.Data, "credentials.json"))
	s.Client = n.Client(s, 0)
	s.AwaitReady()
	return s
}

// Client calls the API of a server from a namespace, over TLS.
func (n *Network) Client(s *Server, i int) *http.Client {
	n.t.Helper()
	path := filepath.Join(s.Data, "credentials.json")
	b, err := os.ReadFile(path)
	if err != nil {
		n.t.Fatal(err)
	}

	var file struct {
		CA string `json:"ca"`
	}
	if err := json.Unmarshal(b, &file); err != nil {
		n.t.Fatal(err)
	}

	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(file.CA)) {
		n.t.Fatalf("%s names no authority", path)
	}

	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return n.dial(ctx, i, network, address)
		}}

	n.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 30 * time.Second}
}

// CLI runs a gozzard command on the server's machine and returns its output.
func (n *Network) CLI(s *Server, args ...string) string {
	n.t.Helper()
	all := slices.Concat(n.enter(0), []string{Binary(n.t)}, args,
		[]string{"--credentials", filepath.Join(s.Data, "credentials.json")})
	cmd := exec.Command(all[0], all[1:]...)
	out, err := cmd.Output()
	if err != nil {
		n.t.Fatalf("gozzard %v: %v: %s", args, err, out)
	}
	return string(out)
}

// Join enrols a host and starts its agent.
func (n *Network) Join(s *Server, i int, dir string) *Program {
	n.t.Helper()
	token := filepath.Join(n.t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(n.CLI(s, "token", "create", "--cidr", "198.18.77.0/24")), 0o600); err != nil {
		n.t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		n.t.Fatal(err)
	}

	AllowEverything(n.t, dir)
	out, err := n.Run(i, Binary(n.t), "agent", "join", "--server", "https://"+n.Addr(0)+":8443", "--token-file",
		token, "--data", dir)
	if err != nil {
		n.t.Fatalf("host %d cannot join: %v: %s", i, err, out)
	}

	return n.Start(i, "agent"+strconv.Itoa(i), "agent", "--data", dir)
}

// Alive reports whether the server considers a host online.
func (n *Network) Alive(s *Server, i int) bool {
	ans, err := s.Try("get_agent_status", J{"hosts": []J{n.Host(i)}})
	if err != nil || ans.Code != 0 {
		return false
	}
	var d map[string]struct {
		Alive int `json:"bk_agent_alive"`
	}
	return decode(ans.Data, &d) && d["0:"+n.Addr(i)].Alive == 1
}

// Host names a host as V1 callers do.
func (n *Network) Host(i int) J {
	return J{"ip": n.Addr(i), "bk_cloud_id": 0, "bk_supplier_id": 0}
}

// Operate starts (0), stops (1) or otherwise operates a daemon on a host and waits for the verdict.
func (n *Network) Operate(s *Server, i int, d *Daemon, op int) Entry {
	n.t.Helper()
	task := s.Operate("operate_proc_v2", J{"meta": J{"namespace": "net", "name": d.Name}, "op_type": op,
		"spec": d.Spec(nil), "hosts": []J{n.Host(i)}})
	return s.Await(task)[fmt.Sprintf("0:%s:net:%s", n.Addr(i), d.Name)]
}
