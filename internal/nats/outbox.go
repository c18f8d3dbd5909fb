package nats

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/gozzard/gozzard"
)

// Signer signs commands; LinkOptions.Open of an agent checks them. Signing has two steps, so that many commands can
// share the expensive one.
type Signer interface {
	// Begin appends the command that write appends, addressed to one agent, with everything but the proof.
	Begin(b []byte, to gozzard.AgentID, kind gozzard.CommandKind, write func([]byte) []byte) []byte
	// Sign appends the proof to each command that was begun. It empties those that it cannot sign.
	Sign(begun []*[]byte) error
}

// unsigned sends commands without a proof, for tests.
type unsigned struct{}

func (unsigned) Begin(b []byte, _ gozzard.AgentID, _ gozzard.CommandKind, write func([]byte) []byte) []byte {
	return write(b)
}

func (unsigned) Sign([]*[]byte) error { return nil }

const (
	outboxRoom  = 1024 // waiting messages; further callers of add block
	outboxBatch = 64   // messages that are signed together
	proofRoom   = 512  // bytes that Sign appends at most

	// outboxLinger is how long a message that is not urgent waits for others: an answer to a heartbeat, or the
	// confirmation that a verdict is durable. A fleet of thousands always has some, and most signed messages are of
	// this kind.
	outboxLinger = 20 * time.Millisecond
)

// outbox signs and sends commands in the order of their arrival. It signs all waiting commands together.
type outbox struct {
	conn    *natsgo.Conn
	signer  Signer
	log     *slog.Logger
	queue   chan message
	stop    <-chan struct{}
	done    chan struct{}
	sent    atomic.Uint64
	failed  atomic.Uint64
	buffers sync.Pool
}

// message is a command in the outbox.
type message struct {
	subject string
	data    *[]byte
	urgent  bool
}

func newOutbox(conn *natsgo.Conn, signer Signer, stop <-chan struct{}, log *slog.Logger) *outbox {
	if signer == nil {
		signer = unsigned{}
	}
	return &outbox{
		conn: conn, signer: signer, log: log,
		queue: make(chan message, outboxRoom), stop: stop, done: make(chan struct{}),
	}
}

// add puts a command into the outbox. It blocks while the outbox is full.
func (o *outbox) add(to gozzard.AgentID, subject string, kind gozzard.CommandKind, write func([]byte) []byte) error {
	if !o.conn.IsConnected() {
		return ErrDown
	}

	buf, ok := o.buffers.Get().(*[]byte)
	if !ok {
		buf = new([]byte)
	}
	*buf = o.signer.Begin((*buf)[:0], to, kind, write)
	if n := len(*buf) + proofRoom; n > MaxMessage {
		o.buffers.Put(buf)
		return fmt.Errorf("message has up to %d bytes, the fabric carries at most %d", n, MaxMessage)
	}

	select {
	case o.queue <- message{subject: subject, data: buf, urgent: kind != gozzard.CommandAck}:
		return nil
	case <-o.stop:
		return ErrDown
	}
}

// run signs and publishes messages until stop is closed.
func (o *outbox) run() {
	defer close(o.done)
	linger := time.NewTimer(0)
	defer linger.Stop()

	batch := make([]message, 0, outboxBatch)
	begun := make([]*[]byte, 0, outboxBatch)
	for {
		select {
		case m := <-o.queue:
			batch = o.collect(append(batch[:0], m), linger)
		case <-o.stop:
			return
		}

		begun = begun[:0]
		for i := range batch {
			begun = append(begun, batch[i].data)
		}
		err := o.signer.Sign(begun)

		for i := range batch {
			o.publish(&batch[i], err)
		}
	}
}

// collect adds the waiting messages to the batch. It waits a little for more while none of them is urgent.
func (o *outbox) collect(batch []message, linger *time.Timer) []message {
	urgent := batch[0].urgent
	linger.Reset(outboxLinger)

	for len(batch) < outboxBatch {
		select {
		case m := <-o.queue:
			batch = append(batch, m)
			urgent = urgent || m.urgent
			continue
		default:
		}
		if urgent {
			break
		}

		select {
		case m := <-o.queue:
			batch = append(batch, m)
			urgent = m.urgent
		case <-linger.C:
			urgent = true
		case <-o.stop:
			return batch
		}
	}

	return batch
}

// publish sends a command. unsigned is why some commands of its batch are not signed; those are empty.
func (o *outbox) publish(m *message, unsigned error) {
	var err error
	if len(*m.data) == 0 && unsigned != nil {
		err = unsigned
	} else {
		err = o.conn.Publish(m.subject, *m.data) // the library copies the data before it returns
	}
	o.buffers.Put(m.data)
	if err == nil {
		o.sent.Add(1)
		return
	}

	// The server repeats everything important until it is answered, so a line per power of two is enough.
	if n := o.failed.Add(1); n&(n-1) == 0 && !errors.Is(err, natsgo.ErrConnectionClosed) {
		o.log.Warn("cannot publish commands", "subject", m.subject, "count", n, "err", err)
	}
}
