package notify

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/wneessen/go-mail"

	"github.com/gozzard/gozzard/internal/record"
)

// The ways to encrypt mail.
const (
	mailSTARTTLS = "starttls"
	mailTLS      = "tls"
	mailNone     = "none" // to this machine only
)

// mailLines is how many alerts a mail lists.
const mailLines = 50

// mailer sends messages by SMTP.
type mailer struct {
	r    *record.Receiver
	w    *words
	dial *dialer
	host string
	port int
	tls  *tls.Config
}

func newMail(e *Engine, r *record.Receiver) (sink, error) {
	host, port, ok := mailServer(r.Settings.Server)
	if !ok {
		return nil, fmt.Errorf("the mail server %q: use HOST:PORT", r.Settings.Server)
	}
	config, err := tlsConfig(r.Settings.CA, host)
	if err != nil {
		return nil, err
	}
	return &mailer{r: r, w: e.wordsOf(r.Settings.Language), dial: e.dial, host: host, port: port, tls: config}, nil
}

func (s *mailer) Close() {}

func (s *mailer) Repeat(context.Context, []Message) error { return nil }

// Send sends a mail to all addresses of the receiver.
func (s *mailer) Send(ctx context.Context, m *Message) error {
	msg, err := s.message(m)
	if err != nil {
		return rejected{err}
	}
	c, err := s.client()
	if err != nil {
		return err
	}
	if err := c.DialAndSendWithContext(ctx, msg); err != nil {
		var failed *mail.SendError
		if errors.As(err, &failed) && !failed.IsTemp() && failed.ErrorCode() >= 500 {
			return rejected{fmt.Errorf("the mail server rejects the mail: %w", err)}
		}
		return fmt.Errorf("cannot send the mail: %w", err)
	}
	return nil
}

// message makes the mail. Its texts are one line each and have no control characters, so none of them ends a header.
func (s *mailer) message(m *Message) (*mail.Msg, error) {
	msg := mail.NewMsg(mail.WithCharset(mail.CharsetUTF8), mail.WithNoDefaultUserAgent())
	if err := msg.From(s.r.Settings.From); err != nil {
		return nil, fmt.Errorf("the sender of the mail: %w", err)
	}
	if err := msg.To(s.r.Settings.To...); err != nil {
		return nil, fmt.Errorf("the addresses of the mail: %w", err)
	}
	msg.Subject(title(s.w, m, 300))
	msg.SetDate()
	domain := "gozzard.invalid"
	if _, after, ok := strings.Cut(s.r.Settings.From, "@"); ok {
		domain = strings.TrimRight(after, "> ")
	}
	msg.SetMessageIDWithValue(m.ID + "@" + domain) // a mail that comes twice has the same id
	msg.SetGenHeader("Auto-Submitted", "auto-generated")
	msg.SetGenHeader("X-Gozzard-Message", m.ID)
	msg.SetBodyString(mail.TypeTextPlain, title(s.w, m, maxText)+"\n\n"+
		strings.Join(lines(s.w, m, mailLines), "\n")+"\n")
	return msg, nil
}

// client makes a connection's settings. Without TLS nothing goes beyond this machine, whatever the server's name means.
func (s *mailer) client() (*mail.Client, error) {
	dial := bounded(s.dial.DialContext)
	base := dial
	options := []mail.Option{mail.WithPort(s.port), mail.WithTimeout(connectTime), mail.WithTLSConfig(s.tls), mail.WithoutNoop()}
	switch s.r.Settings.TLS {
	case mailTLS:
		options = append(options, mail.WithSSL())
		dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			plain, err := base(ctx, network, address)
			if err != nil {
				return nil, err
			}
			conn := tls.Client(plain, s.tls)
			if err := conn.HandshakeContext(ctx); err != nil {
				return nil, errors.Join(err, plain.Close())
			}
			return conn, nil
		}
	case mailNone:
		options = append(options, mail.WithTLSPolicy(mail.NoTLS))
		dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := base(ctx, network, address)
			if err != nil {
				return nil, err
			}
			if at, err := netip.ParseAddrPort(conn.RemoteAddr().String()); err != nil || !at.Addr().Unmap().IsLoopback() {
				return nil, errors.Join(errors.New("mail beyond this machine needs STARTTLS or TLS"), conn.Close())
			}
			return conn, nil
		}
	default:
		options = append(options, mail.WithTLSPolicy(mail.TLSMandatory))
	}
	options = append(options, mail.WithDialContextFunc(dial))
	if s.r.Settings.User != "" {
		options = append(options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(s.r.Settings.User),
			mail.WithPassword(s.r.Settings.Password))
	}
	return mail.NewClient(s.host, options...)
}

// bounded makes connections that end after the time of one delivery, and that read no more than a mail server may answer.
func bounded(dial mail.DialContextFunc) mail.DialContextFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &boundedConn{Conn: conn, left: 1 << 20, end: time.Now().Add(sendTime)}, nil
	}
}

// boundedConn is a connection with a limit of bytes and time.
type boundedConn struct {
	net.Conn
	left int
	end  time.Time
}

// Read fails when the other side has sent too much.
func (c *boundedConn) Read(b []byte) (int, error) {
	if c.left <= 0 {
		return 0, errors.New("the mail server sends too much")
	}
	if len(b) > c.left {
		b = b[:c.left]
	}
	n, err := c.Conn.Read(b)
	c.left -= n
	return n, err
}

// SetDeadline never allows more time than one delivery has.
func (c *boundedConn) SetDeadline(t time.Time) error {
	if t.IsZero() || t.After(c.end) {
		t = c.end
	}
	return c.Conn.SetDeadline(t)
}
