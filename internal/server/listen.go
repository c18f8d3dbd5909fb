package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// serve serves the API until ctx ends. Requests that are being answered then have a moment to finish.
func (s *Server) serve(ctx context.Context) error {
	l := framedListener{s.trust.wrap(s.plane.guard.Listener(&loggedListener{Listener: s.listener, log: s.options.Log}))}
	srv := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: 5 * time.Second, // package ratelimit limits the time of bodies and answers
		IdleTimeout:       60 * time.Second,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(s.options.Log.Handler(), slog.LevelDebug),
	}
	framed(srv, s.metrics.ReportRefused)
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()

	select {
	case err := <-done:
		return fmt.Errorf("cannot serve the API: %w", err)
	case <-ctx.Done():
	}

	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()

	if err := srv.Shutdown(grace); err != nil {
		_ = srv.Close() // what is still open now is a client that does not read
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		return err
	}

	return nil
}

// acceptLogEvery is how often the log says that no connection can be accepted.
const acceptLogEvery = time.Minute

// loggedListener logs when connections cannot be accepted. net/http tries again and says so in the debug log only.
type loggedListener struct {
	net.Listener
	log  *slog.Logger
	last time.Time
}

// Accept waits for a connection.
func (l *loggedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil && !errors.Is(err, net.ErrClosed) && time.Since(l.last) >= acceptLogEvery {
		l.last = time.Now()
		l.log.Error("cannot accept connections of callers: they wait. If too many files are open, raise the limit of open "+
			"files (ulimit -n, LimitNOFILE= in the unit) or lower --max-connections", "err", err)
	}
	return c, err
}

// openListener opens the address of the API: with TLS, or on loopback only, as requests carry secrets.
func (s *Server) openListener(context.Context) (err error) {
	addr := s.options.Listen
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return fmt.Errorf("--listen %q: use ADDRESS:PORT, such as 127.0.0.1:8080", addr)
	}
	if s.trust.api == nil && !isLoopbackAddr(addr) {
		return fmt.Errorf("--listen %s: the API is not served without TLS beyond this machine", addr)
	}

	if s.listener, err = net.Listen("tcp", addr); err != nil {
		return fmt.Errorf("cannot serve the API: %w", err)
	}
	s.onClose("cannot close the address of the API", func() error {
		if err := s.listener.Close(); !errors.Is(err, net.ErrClosed) { // serve closes it, too
			return err
		}
		return nil
	})
	return nil
}

// URL is where this machine reaches the API.
func (s *Server) URL() string {
	addr := s.listener.Addr().String()
	if host, port, err := net.SplitHostPort(addr); err == nil && net.ParseIP(host).IsUnspecified() {
		addr = net.JoinHostPort("127.0.0.1", port)
	}
	if s.trust.api != nil {
		return "https://" + addr
	}
	return "http://" + addr
}

// AgentAddr is where agents connect to; "" when they cannot.
func (s *Server) AgentAddr() string { return s.fabric.Addr() }

// isLoopbackAddr reports whether an address to listen on can only be reached from this machine.
func isLoopbackAddr(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return true // to listen on it fails with a better message
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}
