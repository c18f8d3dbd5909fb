package relay

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gozzard/gozzard/internal/enrol"
)

// callTimeout is how long a server may take to answer a relay.
const callTimeout = 15 * time.Second

// upstream is the connection to one server. All connections of hosts are streams of it and end with it.
type upstream struct {
	at          string // HOST:PORT
	conn        *http.ClientConn
	lost        chan struct{} // closed when the connection is lost
	life        context.Context
	end         context.CancelFunc
	authorities string // as the server named them last
}

// dial connects to a server, which must prove itself. Its result can be closed also after an error.
func dial(ctx context.Context, at string, c *tls.Config) (*upstream, error) {
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	dialer := &net.Dialer{Timeout: dialTimeout}
	transport := &http.Transport{
		DialContext: dialer.DialContext, TLSClientConfig: c, TLSHandshakeTimeout: dialTimeout, Protocols: protocols,
		DisableCompression: true,
		HTTP2:              &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout, WriteByteTimeout: stuckAfter},
	}

	conn, err := transport.NewClientConn(ctx, "https", at)
	if err != nil {
		return nil, err
	}
	u := &upstream{at: at, conn: conn, lost: make(chan struct{})}
	u.life, u.end = context.WithCancel(context.WithoutCancel(ctx))
	var once sync.Once
	conn.SetStateHook(func(c *http.ClientConn) {
		if c.Err() != nil {
			once.Do(func() { close(u.lost) })
		}
	})
	return u, nil
}

// close ends the connection, and all streams of it.
func (u *upstream) close() {
	if u != nil {
		u.end()
		_ = u.conn.Close() // there is nothing to do about an error
	}
}

// request makes a request to the server.
func (u *upstream) request(ctx context.Context, path string, body io.Reader) (*http.Request, error) {
	return http.NewRequestWithContext(ctx, http.MethodPost, "https://"+enrol.ServerName+path, body)
}

// call sends a request in JSON and reads the answer.
func (u *upstream) call(ctx context.Context, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := u.request(ctx, path, bytes.NewReader(body))
	if err != nil {
		return err
	}

	res, err := u.conn.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("cannot read the answer: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answers %d: %s", res.StatusCode, strings.TrimSpace(string(b[:min(len(b), 500)])))
	}
	if err := json.Unmarshal(b, out); err != nil {
		return fmt.Errorf("cannot read the answer: %w", err)
	}
	return nil
}

// carry makes the connection of a host a stream, until one of them ends. It closes the connection.
func (u *upstream) carry(c net.Conn, path string) {
	defer func() { _ = c.Close() }()
	ctx, cancel := context.WithCancel(u.life)
	defer cancel()

	req, err := u.request(ctx, path, hostBody{c})
	if err != nil {
		return
	}
	req.Header.Set(enrol.RelayFromHeader, c.RemoteAddr().String())
	res, err := u.conn.RoundTrip(req)
	if err != nil {
		return
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return
	}
	_ = copyChunks(c, res.Body, c.SetWriteDeadline) // the end of either is the end of both
}

// hostBody is what a host sends, as the body of a request. The library closes it when the server is lost, and waits for the
// end of the read. It also closes it when the server has answered everything: what is still on its way to the host must arrive.
type hostBody struct{ net.Conn }

// Close ends reads, and not the connection.
func (b hostBody) Close() error { return b.SetReadDeadline(time.Unix(1, 0)) }
