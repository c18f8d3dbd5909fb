package nats

import (
	"errors"
	"fmt"
	"sync"

	natsgo "github.com/nats-io/nats.go"
)

// commonOptions override what the library would give up, keep or believe by default: it ends after 60 attempts,
// repeats old messages after a reconnect, and goes to whatever other servers the present one names.
func commonOptions() []natsgo.Option {
	return []natsgo.Option{
		natsgo.MaxReconnects(-1),
		natsgo.ReconnectBufSize(-1),
		natsgo.IgnoreDiscoveredServers(),
		natsgo.IgnoreAuthErrorAbort(),
		natsgo.NoEcho(),
		natsgo.Timeout(dialTimeout),
		natsgo.PingInterval(pingInterval),
		natsgo.MaxPingsOutstanding(maxPingsOut),
	}
}

// outbox lends the buffers that reports are written into.
type outbox struct{ buffers sync.Pool }

// publish writes a message and sends it; the library copies it before it returns.
func (o *outbox) publish(conn *natsgo.Conn, subject string, write func([]byte) []byte) error {
	buf, ok := o.buffers.Get().(*[]byte)
	if !ok {
		buf = new([]byte)
	}

	defer o.buffers.Put(buf)
	*buf = write((*buf)[:0])
	if len(*buf) > MaxMessage {
		return fmt.Errorf("message has %d bytes, the fabric carries at most %d", len(*buf), MaxMessage)
	}

	err := conn.Publish(subject, *buf)
	if errors.Is(err, natsgo.ErrReconnectBufExceeded) || errors.Is(err, natsgo.ErrConnectionClosed) {
		return ErrDown
	}

	return err
}

// onceEach remembers what was said, up to a bound: a log must not grow because somebody wants it to.
type onceEach struct {
	mu   sync.Mutex
	seen map[string]struct{}
}

const maxSaid = 10_000

func (o *onceEach) first(what string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.seen[what]; ok || len(o.seen) >= maxSaid {
		return false
	}
	if o.seen == nil {
		o.seen = make(map[string]struct{})
	}
	o.seen[what] = struct{}{}
	return true
}
