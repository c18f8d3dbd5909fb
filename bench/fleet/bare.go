//go:build linux

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"

	"github.com/gozzard/gozzard/bench/child"
	"github.com/gozzard/gozzard/bench/profile"
)

const patience = 30 * time.Second

// keyPair is a certificate for both ends of bare connections, with its key.
type keyPair struct{ Certificate, Key []byte }

func newKeyPair() (*keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		return nil, err
	}
	text, err := x509.MarshalECPrivateKey(key)
	return &keyPair{cert, text}, err
}

// config is the configuration of either end. Both ends show a certificate, as ours do.
func (k *keyPair) config() (*tls.Config, error) {
	key, err := x509.ParseECPrivateKey(k.Key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{k.Certificate}, PrivateKey: key}},
		MinVersion: tls.VersionTLS13, InsecureSkipVerify: true, ClientAuth: tls.RequireAnyClientCert}, nil
}

// runBareServer is a part: NATS alone, and one client that answers every message of an agent. The client connects inside
// the process, as our hub does. The address is written to the folder of the order.
func runBareServer(ctx context.Context, o order) error {
	profile.Serve(ctx, o.Profile, writeHolding)
	so := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, MaxPending: 64 << 20}
	if o.TLS != nil {
		var err error
		if so.TLSConfig, err = o.TLS.config(); err != nil {
			return err
		}
		so.TLSTimeout, so.TLSHandshakeFirst = patience.Seconds(), true
	}
	s, err := server.NewServer(so)
	if err != nil {
		return fmt.Errorf("cannot set up NATS: %w", err)
	}
	s.Start()
	defer s.Shutdown()
	if !s.ReadyForConnections(patience) {
		return errors.New("cannot start NATS")
	}

	conn, err := natsgo.Connect("", natsgo.InProcessServer(s))
	if err != nil {
		return fmt.Errorf("cannot connect to NATS: %w", err)
	}
	defer conn.Close()
	answer := make([]byte, o.Size)
	sub, err := conn.Subscribe("st.*", func(m *natsgo.Msg) {
		_ = conn.Publish("op."+strings.TrimPrefix(m.Subject, "st."), answer) // an agent that gets none does not mind
	})
	if err != nil {
		return err
	}
	if err := errors.Join(sub.SetPendingLimits(-1, -1), conn.Flush()); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(o.Dir, "address"), []byte(s.Addr().String()), 0o644); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// runBareAgents is a part: connections that send messages, and get an answer to each. A file in the folder of the order
// says that all are connected.
func runBareAgents(ctx context.Context, o order) error {
	no := []natsgo.Option{natsgo.Timeout(patience), natsgo.PingInterval(time.Minute)}
	if o.TLS != nil {
		c, err := o.TLS.config()
		if err != nil {
			return err
		}
		no = append(no, natsgo.Secure(c), natsgo.TLSHandshakeFirst())
	}

	// Connect.
	conns := make([]*natsgo.Conn, o.N)
	var next, failed atomic.Int64
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(o.N); i = next.Add(1) - 1 {
				conn, err := natsgo.Connect("nats://"+o.Server, append(slices.Clip(no), natsgo.Dialer(bareDialer(o.First+int(i))))...)
				if err == nil {
					_, err = conn.Subscribe("op."+strconv.Itoa(o.First+int(i)), func(*natsgo.Msg) {})
				}
				if err != nil {
					fmt.Fprintln(os.Stderr, "connection", i, err)
					failed.Add(1)
					return
				}
				conns[i] = conn
			}
		})
	}
	wg.Wait()
	if n := failed.Load(); n > 0 {
		return fmt.Errorf("%d connections failed", n)
	}
	if err := os.WriteFile(readyFile(o), nil, 0o644); err != nil {
		return err
	}

	// Send one message after the other, each of the next agent.
	message := make([]byte, o.Size)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	began, sent := time.Now(), 0
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for due := int(time.Since(began).Seconds() * o.PerSecond); sent < due; sent++ {
			i := sent % o.N
			if err := conns[i].Publish("st."+strconv.Itoa(o.First+i), message); err != nil {
				return err
			}
		}
	}
}

// bareDialer gives each agent a loopback address: one address has too few ports for all of them.
func bareDialer(agent int) *net.Dialer {
	return &net.Dialer{Timeout: patience, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 2, byte(agent/250), byte(1+agent%250))}}
}

func readyFile(o order) string { return filepath.Join(o.Dir, "ready-"+strconv.Itoa(o.First)) }

// measureBare measures NATS alone with as many agents and messages.
func (b *bench) measureBare(ctx context.Context, way string, n int, perSecond float64) (c cost, err error) {
	dir, err := os.MkdirTemp(b.dir, "bare-")
	if err != nil {
		return c, err
	}
	o := order{Way: way, Dir: dir, Size: 120, Profile: b.profiles}
	if way == wayTLS {
		if o.TLS, err = newKeyPair(); err != nil {
			return c, err
		}
	}

	// Start the server.
	var parts []*child.Process
	defer func() { stopAll(parts) }()
	s, err := b.startPart("bare-server", o)
	if err != nil {
		return c, err
	}
	parts = append(parts, s)
	err = child.Until(ctx, patience, "bare NATS", func() (bool, error) {
		text, err := os.ReadFile(filepath.Join(dir, "address"))
		o.Server = string(text)
		return len(text) > 0, err
	}, s)
	if err != nil {
		return c, err
	}
	if c.empty, err = s.RSS(); err != nil {
		return c, err
	}

	// Start the agents.
	for o.First = 0; o.First < n; o.First += maxAgents {
		o.N = min(maxAgents, n-o.First)
		o.PerSecond = perSecond * float64(o.N) / float64(n)
		p, err := b.startPart("bare-agents", o)
		if err != nil {
			return c, err
		}
		parts = append(parts, p)
		err = child.Until(ctx, 5*time.Minute, "bare agents", func() (bool, error) {
			_, err := os.Stat(readyFile(o))
			return err == nil, err
		}, p, s)
		if err != nil {
			return c, err
		}
	}

	return c, b.profile(s, profileName("bare", way, n), func() error { return b.atRest(ctx, s, &c) })
}
