//go:build linux

package crowd

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

	natsgo "github.com/nats-io/nats.go"

	"github.com/gozzard/gozzard/bench/child"
)

// Patience is how long bare NATS may take for one thing.
const Patience = 30 * time.Second

// KeyPair is a certificate for both ends of bare connections, with its key.
type KeyPair struct{ Certificate, Key []byte }

// NewKeyPair makes a certificate that is its own authority.
func NewKeyPair() (*KeyPair, error) {
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
	return &KeyPair{cert, text}, err
}

// Config is the configuration of either end. Both ends show a certificate, as ours do.
func (k *KeyPair) Config() (*tls.Config, error) {
	key, err := x509.ParseECPrivateKey(k.Key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{k.Certificate}, PrivateKey: key}},
		MinVersion: tls.VersionTLS13, InsecureSkipVerify: true, ClientAuth: tls.RequireAnyClientCert}, nil
}

// AnswerAll makes a connection answer every message of a bare agent. queue: members of it share the messages.
func AnswerAll(conn *natsgo.Conn, queue string, size int) error {
	answer := make([]byte, size)
	sub, err := conn.QueueSubscribe("st.*", queue, func(m *natsgo.Msg) {
		_ = conn.Publish("op."+strings.TrimPrefix(m.Subject, "st."), answer) // an agent that gets none does not mind
	})
	if err != nil {
		return err
	}
	return errors.Join(sub.SetPendingLimits(-1, -1), conn.Flush())
}

// BareAgents is the order of a part with bare connections.
type BareAgents struct {
	Equal bool // as in Hosts

	Server    string // address, or several with commas between them: each agent begins with another one
	Dir       string // for the file that says that all are connected
	First, N  int
	PerSecond float64 // messages of all agents of the part
	Size      int     // bytes of a message
	TLS       *KeyPair
}

// ReadyFile appears when all are connected.
func (o *BareAgents) ReadyFile() string { return filepath.Join(o.Dir, "ready-"+strconv.Itoa(o.First)) }

// RunBareAgents is a part: connections that send messages, and get an answer to each. They answer requests.
func RunBareAgents(ctx context.Context, o BareAgents) error {
	if !o.Equal {
		if err := child.Yield(); err != nil {
			return err
		}
	}
	no := []natsgo.Option{natsgo.Timeout(Patience), natsgo.PingInterval(time.Minute), natsgo.MaxReconnects(-1),
		natsgo.ReconnectWait(250 * time.Millisecond), natsgo.ReconnectJitter(time.Second, time.Second), natsgo.DontRandomize()}
	if o.TLS != nil {
		c, err := o.TLS.Config()
		if err != nil {
			return err
		}
		no = append(no, natsgo.Secure(c), natsgo.TLSHandshakeFirst())
	}

	conns, err := o.connect(no)
	if err != nil {
		return err
	}
	if err := os.WriteFile(o.ReadyFile(), nil, 0o644); err != nil {
		return err
	}
	return o.send(ctx, conns)
}

// urls are the servers of the i-th agent, the one that it begins with first.
func (o *BareAgents) urls(i int) string {
	list := strings.Split(o.Server, ",")
	var out []string
	for n := range list {
		out = append(out, "nats://"+list[(i+n)%len(list)])
	}
	return strings.Join(out, ",")
}

func (o *BareAgents) connect(no []natsgo.Option) ([]*natsgo.Conn, error) {
	conns := make([]*natsgo.Conn, o.N)
	answer := make([]byte, o.Size)
	var next, failed atomic.Int64
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(o.N); i = next.Add(1) - 1 {
				conn, err := natsgo.Connect(o.urls(int(i)), append(slices.Clip(no), natsgo.Dialer(bareDialer(o.First+int(i))))...)
				if err == nil {
					_, err = conn.Subscribe("op."+strconv.Itoa(o.First+int(i)), func(m *natsgo.Msg) {
						if m.Reply != "" {
							_ = m.Respond(answer) // the other end misses it, and says so
						}
					})
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
		return nil, fmt.Errorf("%d connections failed", n)
	}
	return conns, nil
}

// bareDialer gives each agent a loopback address: one address has too few ports for all of them.
func bareDialer(agent int) *net.Dialer {
	return &net.Dialer{Timeout: Patience, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 2, byte(agent/250), byte(1+agent%250))}}
}

// send sends one message after the other, each of the next agent. What an agent sends without a connection waits.
func (o *BareAgents) send(ctx context.Context, conns []*natsgo.Conn) error {
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
