package sqlstore

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// answerTimeout is how long a database that accepts connections may be silent when an answer is due. It is longer than
	// statement_timeout, by which a database that runs ends a statement itself.
	answerTimeout = 65 * time.Second

	// queueTimeout is how long a write waits for its turn, while the database does not answer the write before it.
	queueTimeout = 30 * time.Second

	// readerTimeout is how long a read waits for a connection, while all of them are in use.
	readerTimeout = 15 * time.Second
)

// limitAnswers makes every connection end when an answer does not come: without this, a database that is frozen would
// freeze the server. It is not for connections that wait for notifications.
func limitAnswers(cfg *pgx.ConnConfig) {
	dial := cfg.DialFunc
	cfg.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &answerConn{Conn: c}, nil
	}
}

// answerConn is a connection that waits for each answer for a limited time.
type answerConn struct {
	net.Conn

	mu    sync.Mutex
	limit time.Time // that the driver has set, for the context of a call; zero: none
}

// SetDeadline implements net.Conn.
func (c *answerConn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit = t
	return c.Conn.SetDeadline(t)
}

// SetReadDeadline implements net.Conn.
func (c *answerConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit = t
	return c.Conn.SetReadDeadline(t)
}

// Read implements net.Conn. The driver reads only when an answer is due.
func (c *answerConn) Read(b []byte) (int, error) {
	if err := c.within(c.Conn.SetReadDeadline); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

// Write implements net.Conn.
func (c *answerConn) Write(b []byte) (int, error) {
	if err := c.within(c.Conn.SetWriteDeadline); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// within sets the earlier one of the driver's limit and ours.
func (c *answerConn) within(set func(time.Time) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := time.Now().Add(answerTimeout)
	if !c.limit.IsZero() && c.limit.Before(t) {
		t = c.limit
	}
	return set(t)
}
