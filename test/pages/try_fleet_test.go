//go:build linux

package pages_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	ft "github.com/gozzard/gozzard/test/fleettest"
	"github.com/gozzard/gozzard/test/ledger"
)

// The addresses of docs/try-several-servers.md.
const (
	tryFolder   = "/srv/try"
	tryBalancer = "https://10.77.1.3:8443"
	tryHosts    = 5
)

func tryServer(n int) string { return fmt.Sprintf("https://10.77.1.1%d:8443", n) }

// try is the fleet of the page, as its admin sees it.
type try struct {
	*testing.T
	trusted  string // PEM
	balancer *client.Client
	servers  []*client.Client
	direct   *ledger.Ledger // hosts 1 and 2
	closed   *ledger.Ledger // hosts 3 to 5, behind the relay
	browser  *console

	restarts int          // of the process on all hosts
	reads    atomic.Int64 // that succeeded through the load balancer
	pardoned atomic.Bool  // calls through the load balancer may fail
}

// part is a program of the page that is killed.
type part struct {
	machine string
	signal  syscall.Signal
	again   string // the command of the page that starts it
	server  int    // its number, 0 if it is no server
	away    bool   // without it, calls through the load balancer fail
}

func newTry(t *testing.T) *try {
	x := &try{T: t}
	x.trusted = x.read("trusted.pem")
	x.balancer = x.client(tryBalancer)
	for n := 1; n <= 3; n++ {
		x.servers = append(x.servers, x.client(tryServer(n)))
	}
	x.direct = x.ledger("direct", 0, "10.77.1.2")
	x.closed = x.ledger("closed", 3, "10.77.2.2")
	return x
}

func (x *try) read(name string) string {
	x.Helper()
	b, err := os.ReadFile(filepath.Join(tryFolder, name))
	if err != nil {
		x.Fatal(err)
	}
	return string(b)
}

// client calls a server, or the load balancer, as the admin of the page.
func (x *try) client(url string) *client.Client {
	x.Helper()
	var me struct {
		Token string `json:"bk_token"`
	}
	if err := json.Unmarshal([]byte(x.read("me.json")), &me); err != nil {
		x.Fatal(err)
	}
	c, err := client.New(url, client.Credentials{Token: me.Token, CA: x.trusted})
	if err != nil {
		x.Fatal(err)
	}
	x.Cleanup(c.Close)
	return c
}

// transport trusts the servers and the load balancer.
func (x *try) transport() *http.Transport {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(x.trusted))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	x.Cleanup(transport.CloseIdleConnections)
	return transport
}

// ledger operates hosts of one network through the load balancer and through each server.
func (x *try) ledger(name string, cloud int, network string) *ledger.Ledger {
	x.Helper()
	var apis []*ft.API
	for _, url := range []string{tryBalancer, tryServer(1), tryServer(2), tryServer(3)} {
		api := (&ft.API{}).For(x.T)
		if err := json.Unmarshal([]byte(x.read("s1/credentials.json")), &api.Cred); err != nil {
			x.Fatal(err)
		}
		api.Cred.URL = url
		api.Client = &http.Client{Timeout: 4 * time.Second, Transport: x.transport()}
		apis = append(apis, api)
	}

	l := ledger.New(x.T, apis...)
	l.Dir, l.Prefix, l.Cloud, l.User = filepath.Join(tryFolder, "ledger-"+name), name+"-", cloud, "nobody"
	l.Addr = func(host int) string { return network + strconv.Itoa(host) }
	if err := os.Mkdir(l.Dir, 0o755); err != nil {
		x.Fatal(err)
	}
	ft.Chown(x.T, l.Dir, "nobody")
	return l
}

// kill kills a part, operates all hosts, and starts the part again by the command of the page.
func (x *try) kill(p part) {
	x.Helper()
	x.pardoned.Store(p.away)
	before, began := x.reads.Load(), time.Now()
	x.signal(p)

	// Restart the process everywhere meanwhile. Without a server, the others do it all.
	via := x.balancer
	if p.machine == "lb" {
		via = x.servers[0]
	}
	accepted, done := x.restart(via)
	switch {
	case p.server > 0:
		done()
		x.Logf("without %s, a restart on all hosts took %s", p.machine, time.Since(began).Round(time.Millisecond))
		fallthrough
	case !p.away:
		<-accepted
		ft.Until(x, time.Minute, func() string { return "no reads through the load balancer without " + p.machine },
			func() bool { return x.reads.Load() > before+10 })
		x.browser.holds()
	}

	// Start it again.
	x.fleet(p.again)
	done()
	x.settled()
	x.pardoned.Store(false)
	if p.server > 0 {
		_, done := x.restart(x.servers[p.server-1])
		done()
	}
}

// signal kills the program of a part.
func (x *try) signal(p part) {
	x.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(x.read(p.machine + ".pid")))
	if err == nil {
		err = syscall.Kill(pid, p.signal)
	}
	if err != nil {
		x.Fatalf("cannot kill %s: %v", p.machine, err)
	}
	x.Logf("killed %s", p.machine)
}

// fleet runs a command of the page.
func (x *try) fleet(command string) {
	x.Helper()
	if out, err := exec.Command("bash", "-c", ". "+tryFolder+"/fleet.sh && "+command).CombinedOutput(); err != nil {
		x.Fatalf("%s: %v\n%s", command, err, out)
	}
}

// settled waits until all servers, and the load balancer, know that all hosts are online.
func (x *try) settled() {
	x.Helper()
	for n, c := range append([]*client.Client{x.balancer}, x.servers...) {
		var page client.HostPage
		var err error
		ft.Until(x, 2*time.Minute, func() string { return fmt.Sprintf("server %d (0: load balancer): %+v, %v", n, page, err) },
			func() bool {
				page, err = c.Hosts(x.Context(), 0, 100)
				online := 0
				for _, h := range page.Hosts {
					if h.Online {
						online++
					}
				}
				return err == nil && online == tryHosts
			})
	}
}

// restart restarts the process of the page on all hosts. accepted is closed when the call is acknowledged; done waits for
// the verdicts, which must all be good.
func (x *try) restart(via *client.Client) (accepted chan struct{}, done func()) {
	x.restarts++
	key := "restart-" + strconv.Itoa(x.restarts)
	accepted = make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ctx, cancel := context.WithTimeout(x.Context(), 3*time.Minute)
		defer cancel()
		id := x.acknowledged(ctx, via, key)
		close(accepted)
		if id == "" {
			return
		}

		task, err := x.balancer.Wait(ctx, id, nil)
		if err != nil || len(task.Attempts) != tryHosts {
			x.Errorf("%s: %d hosts, %v", key, len(task.Attempts), err)
		}
		for _, a := range task.Attempts {
			if a.Verdict != client.Done {
				x.Errorf("%s on %s: %s %s %s", key, a.Host.IP, a.Verdict, a.Code, a.Message)
			}
		}
	}()
	return accepted, func() { <-ended }
}

// acknowledged sends a restart until it is acknowledged, always with the same key. The client itself repeats a call that
// got no answer; more is needed only while calls may fail.
func (x *try) acknowledged(ctx context.Context, via *client.Client, key string) (task string) {
	for {
		accepted, err := via.Operate(ctx, client.Operation{Action: "restart", IdempotencyKey: key,
			Selection: client.Selection{Namespace: "default", Names: []string{"web"}, All: true},
			Offline:   client.Offline{Wait: 2 * time.Minute}})
		switch {
		case err == nil:
			return accepted.TaskID
		case ctx.Err() != nil || gozzard.KindOf(err) != gozzard.ErrUnavailable || !x.pardoned.Load():
			x.Errorf("%s through %s: %v", key, via.URL(), err)
			return ""
		}
		time.Sleep(100 * time.Millisecond)
	}
}
