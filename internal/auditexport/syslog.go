package auditexport

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// Syslog sends rows as messages of RFC 5424 over TLS, each with its length before it (RFC 5425).
//
// The protocol has no acknowledgement: what was written may wait in a buffer of a receiver that is killed. So every
// batch has a connection of its own. The sender ends it, and the receiver answers with its own end of TLS
// (close_notify) after it has read everything. RFC 5425 requires that answer. Only then the batch counts as delivered.
type Syslog struct {
	address string
	config  *tls.Config
	host    string
	pid     string
}

// facility and severity of all messages: "log audit" and "informational".
const priority = 13*8 + 6

// enterprise is the example number of RFC 5612: Gozzard has no number of its own.
const enterprise = "gozzard@32473"

// SyslogOptions say where the receiver is.
type SyslogOptions struct {
	Address string // HOST:PORT; without a port 6514
	CA      string // file of the authorities that sign its certificate; "": those of the system
	Name    string // in its certificate; "": the host of Address
}

// NewSyslog makes a Syslog.
func NewSyslog(o SyslogOptions) (*Syslog, error) {
	host, _, err := net.SplitHostPort(o.Address)
	if err != nil {
		host, o.Address = o.Address, net.JoinHostPort(o.Address, "6514")
	}
	if host == "" || strings.Contains(host, "/") {
		return nil, fmt.Errorf("--audit-syslog %q: use HOST:PORT", o.Address)
	}

	pool, err := authorities(o.CA)
	if err != nil {
		return nil, fmt.Errorf("--audit-syslog-ca: %w", err)
	}
	if o.Name == "" {
		o.Name = host
	}
	name, err := os.Hostname()
	if err != nil || name == "" {
		name = "-"
	}
	return &Syslog{address: o.Address, host: headerWord(name, 255), pid: strconv.Itoa(os.Getpid()),
		config: &tls.Config{RootCAs: pool, ServerName: o.Name, MinVersion: tls.VersionTLS12,
			ClientSessionCache: tls.NewLRUClientSessionCache(1)}}, nil
}

// authorities reads a file of certificates; nil, the authorities of the system, without a file.
func authorities(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(b) {
		return nil, fmt.Errorf("%s has no certificate in PEM", file)
	}
	return pool, nil
}

// Close does nothing: no connection outlives its batch.
func (s *Syslog) Close() error { return nil }

// Send sends a batch.
func (s *Syslog) Send(ctx context.Context, list []Message) (err error) {
	// Connect.
	dialer := tls.Dialer{Config: s.config}
	conn, err := dialer.DialContext(ctx, "tcp", s.address)
	if err != nil {
		return fmt.Errorf("cannot connect to the syslog receiver %s: %w", s.address, err)
	}
	defer func() { _ = conn.Close() }() // the answer to the end of TLS counts, not this
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })
	defer stop()

	// Write the messages.
	w := bufio.NewWriter(conn)
	for i := range list {
		text := s.format(&list[i])
		if _, err := fmt.Fprintf(w, "%d %s", len(text), text); err != nil {
			return fmt.Errorf("cannot write to the syslog receiver %s: %w", s.address, err)
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("cannot write to the syslog receiver %s: %w", s.address, err)
	}

	// End the connection, and wait until the receiver has read everything.
	if err := conn.(*tls.Conn).CloseWrite(); err != nil {
		return fmt.Errorf("cannot end the connection to the syslog receiver %s: %w", s.address, err)
	}
	if _, err := io.Copy(io.Discard, io.LimitReader(conn, 1<<20)); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("it closed the connection without the close_notify that RFC 5425 requires, " +
				"so it may have lost rows; they are sent again")
		}
		return fmt.Errorf("the syslog receiver %s did not acknowledge: %w", s.address, err)
	}
	return nil
}

// format is a message of RFC 5424. Row and hash are also structured data, so that a receiver sees gaps without reading
// the JSON.
func (s *Syslog) format(m *Message) string {
	id, _, _ := strings.Cut(m.Act, ":")
	at := "-"
	if !m.At.IsZero() {
		at = m.At.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	return fmt.Sprintf(`<%d>1 %s %s gozzard %s %s [%s row="%d" hash="%s"] %s`, priority, at, s.host, s.pid,
		headerWord(id, 32), enterprise, m.Seq, m.Hash, m.JSON)
}

// headerWord makes a text fit for the header: printable ASCII without spaces, at most max bytes, "-" when nothing is
// left.
func headerWord(s string, max int) string {
	s = strings.Map(func(r rune) rune {
		if r < 33 || r > 126 {
			return -1
		}
		return r
	}, s)
	if s == "" {
		return "-"
	}
	return s[:min(len(s), max)]
}
