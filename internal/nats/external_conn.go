package nats

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	natsgo "github.com/nats-io/nats.go"
)

// permissionPause is after a subscription that was denied. The broker does not say when it would be allowed.
const permissionPause = 10 * time.Second

// checkExternal checks the addresses of brokers and reports whether they need TLS. Without TLS anyone on the way could take
// the password, so that is for brokers on the same machine only.
func checkExternal(list []string) (secure bool, err error) {
	schemes := map[string]bool{}
	for _, text := range list {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.Port() == "" || u.Hostname() == "" {
			return false, fmt.Errorf("%q is not of the form tls://HOST:PORT", redacted(text))
		}
		if u.User != nil {
			return false, fmt.Errorf("%q has a user or a password, which others can read there: use a file with credentials",
				u.Redacted())
		}
		_, _, local, err := loopback(net.JoinHostPort(u.Hostname(), u.Port()))
		switch {
		case err != nil:
			return false, fmt.Errorf("%q is not of the form tls://HOST:PORT: %w", text, err)
		case u.Scheme == "nats" && !local:
			return false, fmt.Errorf("%q is beyond this machine: use tls://%s", text, u.Host)
		case u.Scheme != "nats" && u.Scheme != "tls":
			return false, fmt.Errorf("%q is not of the form tls://HOST:PORT", text)
		}
		schemes[u.Scheme] = true
	}
	if len(schemes) != 1 {
		return false, errors.New("the addresses of brokers begin either all with tls:// or all with nats://")
	}
	return schemes["tls"], nil
}

// redacted is an address that cannot be read, without what may be a password.
func redacted(text string) string {
	if i := strings.LastIndexByte(text, '@'); i >= 0 {
		return "…" + text[i:]
	}
	return text
}

// connOptions are the options of the connection.
func (e *External) connOptions() ([]natsgo.Option, error) {
	o := &e.o
	secure, err := checkExternal(o.URLs)
	if err != nil {
		return nil, err
	}
	if !secure && o.CA+o.Cert+o.Key != "" {
		return nil, errors.New("certificates need addresses that begin with tls://")
	}

	list := append(commonOptions(), func(n *natsgo.Options) error { n.Servers = o.URLs; return nil },
		natsgo.Name("gozzard server "+o.Server), natsgo.SetCustomDialer(&endingDialer{life: e.life}),
		natsgo.RetryOnFailedConnect(true), natsgo.Timeout(externalDial), natsgo.FlusherTimeout(externalDial),
		natsgo.PingInterval(externalPing), natsgo.MaxPingsOutstanding(externalPingsOut),
		natsgo.ReconnectWait(externalPause), natsgo.ReconnectJitter(externalPause, externalPause),
		natsgo.ConnectHandler(e.connected), natsgo.ReconnectHandler(e.connected),
		natsgo.ReconnectErrHandler(e.failedToConnect), natsgo.DisconnectErrHandler(e.disconnected),
		natsgo.ErrorHandler(e.complained), natsgo.ClosedHandler(e.gaveUp))
	if secure {
		list = append(list, natsgo.Secure(&tls.Config{MinVersion: tls.VersionTLS12}))
	}
	if o.CA != "" {
		list = append(list, natsgo.RootCAs(o.CA))
	}
	if o.Cert != "" {
		list = append(list, natsgo.ClientCert(o.Cert, o.Key))
	}
	if o.Creds != "" {
		list = append(list, natsgo.UserCredentials(o.Creds))
	}
	if o.User != nil {
		list = append(list, natsgo.UserInfoHandler(o.User))
	}
	return list, nil
}

// connected is called for each connection.
func (e *External) connected(c *natsgo.Conn) {
	e.failed.Store(0)
	e.o.Log.Info("connected to the NATS cluster", "broker", c.ConnectedUrlRedacted(), "subjects", e.prefix+">")
	if most := c.MaxPayload(); most < MaxMessage {
		e.o.Log.Warn("max_payload of the NATS cluster is too small: large messages between servers will be lost", "max_payload", most,
			"needed", MaxMessage)
	}
}

// failedToConnect is called for each attempt that fails. The log has a line per power of two.
func (e *External) failedToConnect(_ *natsgo.Conn, err error) {
	if n := e.failed.Add(1); n&(n-1) == 0 && e.life.Err() == nil {
		e.o.Log.Warn("cannot connect to the NATS cluster, trying again: until then this server finds what others do in the record only",
			"tries", n, "err", err)
	}
}

// disconnected is called when a connection is lost.
func (e *External) disconnected(_ *natsgo.Conn, err error) {
	if err != nil && e.life.Err() == nil {
		e.o.Log.Warn("connection to the NATS cluster was lost", "err", err)
	}
}

// complained is called for errors that do not end the connection.
func (e *External) complained(c *natsgo.Conn, _ *natsgo.Subscription, err error) {
	switch {
	case e.life.Err() != nil:
	case errors.Is(err, natsgo.ErrPermissionViolation):
		if n := e.denied.Add(1); n&(n-1) == 0 {
			e.o.Log.Error("the NATS cluster denies what servers need: allow the user of this server to publish and to subscribe",
				"subjects", e.prefix+">", "count", n, "err", err)
		}
		e.subscribeAgain(c, err)
	case errors.Is(err, natsgo.ErrAuthorization), errors.Is(err, natsgo.ErrAuthExpired), errors.Is(err, natsgo.ErrAuthRevoked):
		e.failedToConnect(c, err)
	case errors.Is(err, natsgo.ErrSlowConsumer):
		e.drop("messages of other servers were dropped: they come faster than this server takes them in")
	default:
		e.o.Log.Warn("the NATS cluster reports an error", "err", err)
	}
}

// subscribeAgain connects anew some time after a subscription was denied: it may be allowed then.
func (e *External) subscribeAgain(c *natsgo.Conn, err error) {
	if !strings.Contains(strings.ToLower(err.Error()), "subscription") || !e.again.CompareAndSwap(false, true) {
		return
	}
	time.AfterFunc(permissionPause+rand.N(permissionPause), func() {
		e.again.Store(false)
		if e.life.Err() == nil {
			_ = c.ForceReconnect() // it fails when the connection was given up, and then there is a new one
		}
	})
}

// gaveUp is called when a connection is closed for good.
func (e *External) gaveUp(c *natsgo.Conn) {
	defer e.closed.Done()
	if e.life.Err() == nil {
		e.o.Log.Warn("connection to the NATS cluster was given up, opening a new one", "err", c.LastError())
		e.lose()
	}
}

// endingDialer opens connections that end with a life, also while the library waits for the first word of a broker. One ends
// before the next one is opened, because the library does not close one whose handshake fails.
type endingDialer struct {
	life context.Context
	last atomic.Pointer[endingConn]
}

// Dial implements natsgo.CustomDialer.
func (d *endingDialer) Dial(network, address string) (net.Conn, error) {
	if last := d.last.Load(); last != nil {
		_ = last.Close() // it is of no use, and mostly closed already
	}
	dialer := net.Dialer{Timeout: externalDial}
	c, err := dialer.DialContext(d.life, network, address)
	if err != nil {
		return nil, err
	}
	made := &endingConn{Conn: c, cancel: context.AfterFunc(d.life, func() { _ = c.Close() })}
	d.last.Store(made)
	return made, nil
}

// endingConn is a connection that ends with a life.
type endingConn struct {
	net.Conn
	cancel func() bool
}

// Close implements net.Conn.
func (c *endingConn) Close() error {
	c.cancel()
	return c.Conn.Close()
}
