package agentmetrics

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/gozzard/gozzard/internal/atomicfile"
)

// bounded is a listener with at most maxConnections open connections. It closes those beyond at once.
type bounded struct {
	net.Listener
	places chan struct{}
}

func newBounded(l net.Listener) *bounded { return &bounded{l, make(chan struct{}, maxConnections)} }

// Accept waits for a connection for which there is a place.
func (b *bounded) Accept() (net.Conn, error) {
	for {
		c, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case b.places <- struct{}{}:
			return &placed{Conn: c, leave: sync.OnceFunc(func() { <-b.places })}, nil
		default:
			_ = c.Close()
		}
	}
}

// placed is a connection that has a place until it is closed.
type placed struct {
	net.Conn
	leave func()
}

// Close closes the connection and frees its place.
func (p *placed) Close() error {
	defer p.leave()
	return p.Conn.Close()
}

// certificate is a certificate in files, which may be replaced at any time.
type certificate struct {
	certFile, keyFile string

	mu     sync.Mutex
	loaded *tls.Certificate
	at     [2]time.Time // when the files were changed
}

// get returns the certificate, and reads the files again when they have changed. While they cannot be read, the last one
// counts.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.load() }

func (c *certificate) load() (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	var at [2]time.Time
	for i, path := range []string{c.certFile, c.keyFile} {
		if st, err := os.Stat(path); err == nil {
			at[i] = st.ModTime()
		}
	}
	if c.loaded != nil && at == c.at {
		return c.loaded, nil
	}

	err := atomicfile.Check(c.keyFile)
	var pair tls.Certificate
	if err == nil {
		pair, err = tls.LoadX509KeyPair(c.certFile, c.keyFile)
	}
	switch {
	case err == nil:
		c.loaded, c.at = &pair, at
		return c.loaded, nil
	case c.loaded != nil:
		return c.loaded, nil
	}
	return nil, fmt.Errorf("cannot read the certificate of --metrics-tls-cert and --metrics-tls-key: %w", err)
}
