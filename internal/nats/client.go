package nats

import (
	"errors"
	"fmt"
	"sync"

	natsgo "github.com/nats-io/nats.go"
)

// commonOptions are the options of hub and link. By default the library gives up after 60 attempts, repeats old
// messages after a reconnect, and connects to other servers that the current one names; the options prevent all three.
func commonOptions() []natsgo.Option {
	return []natsgo.Option{
		natsgo.MaxReconnects(-1),
		natsgo.ReconnectBufSize(-1),
		natsgo.IgnoreDiscoveredServers(),
		natsgo.IgnoreAuthErrorAbort(),
		natsgo.NoEcho(),
		natsgo.Timeout(dialTimeout),
		natsgo.PingInterval(-1), // the library pings without regard to what is received; see Link.follow
	}
}

// publisher encodes reports into buffers that it reuses.
type publisher struct{ buffers sync.Pool }

// publish encodes a message and sends it. The library copies the message before it returns.
func (p *publisher) publish(conn *natsgo.Conn, subject string, write func([]byte) []byte) error {
	buf, ok := p.buffers.Get().(*[]byte)
	if !ok {
		buf = new([]byte)
	}
	defer p.buffers.Put(buf)

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

// onceEach remembers which things were logged, up to a bound, so that agents cannot make the log grow.
type onceEach struct {
	mu   sync.Mutex
	seen map[string]struct{}
}

const maxLogged = 10_000

// first reports whether it is called with what for the first time. It reports false once the bound is reached.
func (o *onceEach) first(what string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.seen[what]; ok || len(o.seen) >= maxLogged {
		return false
	}
	if o.seen == nil {
		o.seen = make(map[string]struct{})
	}
	o.seen[what] = struct{}{}
	return true
}
