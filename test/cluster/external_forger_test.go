//go:build linux

package cluster_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/nats"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// forger is a program with the credentials of the servers at their NATS cluster, but without keys of the installation.
type forger struct {
	t      *testing.T
	conn   *natsgo.Conn
	prefix string

	mu   sync.Mutex
	seen []*natsgo.Msg
}

// newForger records everything.
func newForger(t *testing.T, c *natsCluster) *forger {
	t.Helper()
	f := &forger{t: t, prefix: "gozzard." + c.installation + ".sv."}
	var err error
	f.conn, err = natsgo.Connect(c.urls(), natsgo.UserInfo("gozzard", natsPassword), natsgo.NoEcho(),
		natsgo.RootCAs(filepath.Join(c.dir, "ca.crt")),
		natsgo.ClientCert(filepath.Join(c.dir, "server.crt"), filepath.Join(c.dir, "server.key")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.conn.Close)
	if _, err := f.conn.Subscribe(f.prefix+">", func(m *natsgo.Msg) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.seen = append(f.seen, m)
	}); err != nil {
		t.Fatal(err)
	}
	return f
}

// recorded is what was seen of a server so far.
func (f *forger) recorded(server string) (list []*natsgo.Msg) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.seen {
		if strings.HasSuffix(m.Subject, "."+server) {
			list = append(list, m)
		}
	}
	return list
}

func (f *forger) publish(subject string, data []byte) {
	f.t.Helper()
	if err := f.conn.Publish(f.prefix+subject, data); err != nil {
		f.t.Fatal(err)
	}
}

// replay sends messages again and again, until the function that it returns is called.
func (f *forger) replay(list []*natsgo.Msg) (stop func()) {
	ctx, cancel := context.WithCancel(f.t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			for _, m := range list {
				_ = f.conn.Publish(m.Subject, m.Data) // the test ends
			}
			time.Sleep(200 * time.Millisecond)
		}
	})
	return func() { cancel(); wg.Wait() }
}

// TestTS20ForgerInTheNATSCluster: another program with the credentials of the servers can neither read nor change what they
// know of each other.
func TestTS20ForgerInTheNATSCluster(t *testing.T) {
	t.Parallel() // it mostly waits
	i, c := newExternal(t, true)
	a, b := i.servers[0], i.servers[1]
	f := newForger(t, c)
	a.join(faultHost(1))
	for _, m := range i.servers {
		m.online(faultHost(1), true)
	}
	i.operate(faultHost(1), "unreadable")

	// Nothing can be read.
	for _, m := range i.servers {
		ft.Until(t, time.Minute, func() string { return "nothing was recorded" }, func() bool { return len(f.recorded(m.id())) > 5 })
		for _, s := range f.recorded(m.id()) {
			for _, text := range []string{faultHost(1), "unreadable", `"From"`, `"Run"`} {
				if bytes.Contains(s.Data, []byte(text)) {
					t.Fatalf("%s can be read in a message of %d bytes on %s", text, len(s.Data), s.Subject)
				}
			}
		}
	}

	f.noise(a, b)
	a.says("messages between servers were rejected")
	time.Sleep(2 * time.Second) // for an effect
	i.hearEachOther(true)
	for _, m := range i.servers {
		m.online(faultHost(1), true)
	}
	i.operate(faultHost(1), "after-noise")

	// What a server has sent does not make it live after its end: not for those that knew it, and not for a new one.
	list := f.recorded(b.id())
	b.Kill(syscall.SIGKILL)
	stop := f.replay(list)
	defer stop()
	a.says(`"msg":"another server is silent","server":"` + b.id())
	fresh := i.addExternal(c)
	a.says(`"msg":"another server is there","server":"` + fresh.id())
	ft.Until(t, time.Minute, func() string { return a.cli("servers") }, func() bool { return a.server(b).Lag > 20 })
	if strings.Contains(fresh.Output(), `"msg":"another server is there","server":"`+b.id()) {
		t.Error("a new server takes old messages for a server that lives")
	}
	a.online(faultHost(1), true)

	// It is heard again when it is back, beside them.
	b.Again()
	b.answers()
	i.hearEachOther(true)
	i.operate(faultHost(1), "after-replays")
	fmt.Printf("attack TS20: %d recorded messages read, forged and replayed in the NATS cluster of the servers: 0 accepted\n", len(list))
}

// noise sends what servers do not send, in the names of both.
func (f *forger) noise(a, b *member) {
	f.t.Helper()
	forged, err := nats.EncodeNews(&gozzard.PeerNews{From: b.id(), Run: 1, Seq: 1, Snapshot: true, Last: true})
	if err != nil {
		f.t.Fatal(err)
	}
	random := make([]byte, 2000)
	_, _ = rand.Read(random) // never fails
	for _, to := range []string{"all", a.id()} {
		for _, from := range []string{b.id(), "made-up"} {
			f.publish(to+"."+from, forged)
			f.publish(to+"."+from, nil)
			for kind := range byte(5) {
				f.publish(to+"."+from, append([]byte{kind}, random...))
				f.publish(to+"."+from, append([]byte{kind}, `{"nonce":"AAAA","key":"AAAA","certificate":"AAAA","signature":"AAAA"}`...))
			}
		}
	}

	// Messages in the name of the other server, for another receiver, and cut off.
	for _, m := range f.recorded(b.id()) {
		f.publish("all."+a.id(), m.Data)
		f.publish(b.id()+"."+a.id(), m.Data)
		f.publish(a.id()+"."+b.id(), m.Data)
		f.publish("all."+b.id(), m.Data[:len(m.Data)-1])
	}
	if err := f.conn.FlushTimeout(10 * time.Second); err != nil {
		f.t.Fatal(err)
	}
}
