package agentmetrics

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/gozzard/gozzard/internal/atomicfile"
)

// Path is where the metrics are.
const Path = "/metrics"

// The limits of the listener. A Prometheus server scrapes one after the other, and there are two of them at most sites.
const (
	maxScrapes     = 4  // that are answered at a time; a scrape beyond is answered with 503
	maxConnections = 32 // that are open at a time; the ones beyond are closed
	maxHeaderBytes = 8 << 10
	headerTime     = 5 * time.Second  // for the header of a request, and for the TLS handshake
	scrapeTime     = 15 * time.Second // for a request and its answer: a reader that is slower is cut off
	idleTime       = 2 * time.Minute
	listenAgain    = 10 * time.Second // after a try to listen that failed

	minTokenBytes = 16
	maxTokenBytes = 4 << 10
)

// ListenOptions say where and for whom the metrics of an agent are served.
type ListenOptions struct {
	Address   string // ADDRESS:PORT; "": nowhere
	TokenFile string // required when other machines can reach the address
	CertFile  string // with KeyFile: serve TLS
	KeyFile   string
}

// Listener serves metrics.
type Listener struct {
	o       ListenOptions
	addr    netip.AddrPort
	metrics prometheus.Gatherer
	log     *slog.Logger
	cert    certificate
}

// NewListener checks the options. It listens in Run.
func NewListener(o ListenOptions, metrics prometheus.Gatherer, log *slog.Logger) (*Listener, error) {
	l := &Listener{o: o, metrics: metrics, log: log, cert: certificate{certFile: o.CertFile, keyFile: o.KeyFile}}

	// Check the address.
	host, port, err := net.SplitHostPort(o.Address)
	switch {
	case err != nil:
	case host == "localhost":
		host = "127.0.0.1"
	case host == "":
		host = "0.0.0.0"
	}
	if err == nil {
		l.addr, err = netip.ParseAddrPort(net.JoinHostPort(host, port))
	}
	if err != nil || l.addr.Port() == 0 || l.addr.Addr().Zone() != "" {
		return nil, fmt.Errorf("--metrics-listen %q: use ADDRESS:PORT with an IP address, such as 127.0.0.1:9436", o.Address)
	}

	// Serve other machines only with a token.
	if o.TokenFile == "" && !l.addr.Addr().Unmap().IsLoopback() {
		return nil, fmt.Errorf("--metrics-listen %s: other machines can reach this address, so callers need a token: "+
			"give --metrics-token-file, or listen on 127.0.0.1", o.Address)
	}
	if o.TokenFile != "" {
		if _, err := l.readToken(); err != nil {
			return nil, err
		}
	}

	// Check the certificate.
	if (o.CertFile == "") != (o.KeyFile == "") {
		return nil, errors.New("--metrics-tls-cert and --metrics-tls-key belong together: give both or none")
	}
	if o.CertFile != "" {
		if _, err := l.cert.load(); err != nil {
			return nil, err
		}
	}

	return l, nil
}

// URL is where Prometheus finds the metrics. An address that stands for all addresses of this host becomes own.
func (l *Listener) URL(own netip.Addr) string {
	at := l.addr
	if at.Addr().IsUnspecified() {
		at = netip.AddrPortFrom(own, at.Port())
	}
	scheme := "http://"
	if l.o.CertFile != "" {
		scheme = "https://"
	}
	return scheme + netip.AddrPortFrom(at.Addr().Unmap(), at.Port()).String()
}

// Run serves until ctx ends. An agent whose metrics cannot be served supervises all the same, so a port that another
// program has is logged and tried again.
func (l *Listener) Run(ctx context.Context) error {
	for logged := false; ; {
		err := l.serve(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if !logged {
			l.log.Error("cannot serve metrics; the agent goes on and tries again", "address", l.o.Address, "err", err)
			logged = true
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(listenAgain):
		}
	}
}

// serve listens and answers until ctx ends.
func (l *Listener) serve(ctx context.Context) error {
	listener, err := net.Listen("tcp", l.addr.String())
	if err != nil {
		return err
	}
	if l.o.CertFile == "" && !l.addr.Addr().Unmap().IsLoopback() {
		l.log.Warn("metrics are served without TLS: their token crosses the network in clear text", "address", l.o.Address)
	}

	srv := &http.Server{
		Handler: l.Handler(), ReadHeaderTimeout: headerTime, ReadTimeout: scrapeTime, WriteTimeout: scrapeTime,
		IdleTimeout: idleTime, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: slog.NewLogLogger(l.log.Handler(), slog.LevelDebug),
	}
	bounded := newBounded(listener)
	done := make(chan error, 1)
	go func() {
		if l.o.CertFile == "" {
			done <- srv.Serve(bounded)
			return
		}
		srv.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: l.cert.get}
		done <- srv.ServeTLS(bounded, "", "")
	}()

	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	_ = srv.Close() // a scrape that is cut off is repeated
	<-done
	return nil
}

// Handler answers scrapes.
func (l *Listener) Handler() http.Handler {
	scrape := promhttp.HandlerFor(l.metrics, promhttp.HandlerOpts{
		MaxRequestsInFlight: maxScrapes,
		ErrorLog:            slog.NewLogLogger(l.log.Handler(), slog.LevelError),
	})
	mux := http.NewServeMux()
	mux.Handle("GET "+Path, scrape)

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := l.admit(r); err != nil {
			w.Header().Set("Connection", "close") // no stranger holds a place
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

var (
	errToken = errors.New("the metrics of this agent need its token: Authorization: Bearer TOKEN")
	errHost  = errors.New("the metrics of this agent are for this machine: ask for a loopback address")
)

// admit checks the token of a request. Without a token file it admits callers of this machine that ask for it by a
// loopback address: a page of another site whose name points here (DNS rebinding) sends its own name.
func (l *Listener) admit(r *http.Request) error {
	if l.o.TokenFile == "" {
		from, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil || !from.Addr().Unmap().IsLoopback() || !loopbackName(r.Host) {
			return errHost
		}
		return nil
	}

	want, err := l.readToken()
	if err != nil {
		l.log.Error("cannot check the token of the metrics, all scrapes are rejected", "err", err)
		return errToken
	}
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(want)) // equal lengths: the time says nothing about the token
	if !ok || subtle.ConstantTimeCompare(a[:], b[:]) != 1 {
		return errToken
	}
	return nil
}

func loopbackName(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// readToken reads the token at every scrape, so a new one needs no restart.
func (l *Listener) readToken() (string, error) {
	if err := atomicfile.Check(l.o.TokenFile); err != nil {
		return "", fmt.Errorf("--metrics-token-file: %w", err)
	}
	st, err := os.Stat(l.o.TokenFile)
	if err != nil {
		return "", fmt.Errorf("--metrics-token-file: %w", err)
	}
	if !st.Mode().IsRegular() || st.Size() > maxTokenBytes {
		return "", fmt.Errorf("--metrics-token-file %s: not a file of at most %d bytes", l.o.TokenFile, maxTokenBytes)
	}
	b, err := os.ReadFile(l.o.TokenFile)
	if err != nil {
		return "", fmt.Errorf("--metrics-token-file: %w", err)
	}
	token := strings.TrimSpace(string(b))
	if len(token) < minTokenBytes {
		return "", fmt.Errorf("--metrics-token-file %s: the token has %d bytes, at least %d are needed; run: "+
			"openssl rand -hex 32 > %[1]s", l.o.TokenFile, len(token), minTokenBytes)
	}
	return token, nil
}
