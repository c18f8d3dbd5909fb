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

// Sealer makes of commands what an agent's Open undoes. It does so in two steps, so that many commands can share
// the costly one.
type Sealer interface {
	// Begin appends a command for one agent, which write appends, with all that surrounds it but for the proof.
	Begin(b []byte, to gozzard.AgentID, kind gozzard.CommandKind, write func([]byte) []byte) []byte
	// Sign appends the proof to each of what was begun.
	Sign(begun []*[]byte)
}

// unsealed is how commands go when nobody seals them, in tests.
type unsealed struct{}

func (unsealed) Begin(b []byte, _ gozzard.AgentID, _ gozzard.CommandKind, write func([]byte) []byte) []byte {
	return write(b)
}

func (unsealed) Sign([]*[]byte) {}

const (
	postRoom  = 1024 // letters that wait; who brings more waits too
	postBatch = 64   // that are signed together
	// postLinger is how long a letter that is in no hurry waits for others: the answer to a heartbeat, or that a
	// verdict is durable. A fleet of thousands has always some, and they are most of all that is signed.
	postLinger = 5 * time.Millisecond
	proofRoom  = 512 // for what Sign appends
)

// post signs and sends what goes down: one after the other in the order of their coming, as many at a time as are
// there.
type post struct {
	conn    *natsgo.Conn
	sealer  Sealer
	log     *slog.Logger
	queue   chan letter
	stop    <-chan struct{}
	done    chan struct{}
	sent    atomic.Uint64
	failed  atomic.Uint64
	buffers sync.Pool
}

// letter is a command on its way.
type letter struct {
	subject string
	begun   *[]byte
	hurry   bool
}

func newPost(conn *natsgo.Conn, sealer Sealer, stop <-chan struct{}, log *slog.Logger) *post {
	if sealer == nil {
		sealer = unsealed{}
	}
	return &post{conn: conn, sealer: sealer, log: log, queue: make(chan letter, postRoom), stop: stop,
		done: make(chan struct{})}
}

// hand takes a command.
func (p *post) hand(to gozzard.AgentID, subject string, kind gozzard.CommandKind, write func([]byte) []byte) error {
	if !p.conn.IsConnected() {
		return ErrDown
	}

	buf, ok := p.buffers.Get().(*[]byte)
	if !ok {
		buf = new([]byte)
	}

	*buf = p.sealer.Begin((*buf)[:0], to, kind, write)
	if n := len(*buf) + proofRoom; n > MaxMessage {
		p.buffers.Put(buf)
		return fmt.Errorf("message has up to %d bytes, the fabric carries at most %d", n, MaxMessage)
	}

	select {
	case p.queue <- letter{subject: subject, begun: buf, hurry: kind != gozzard.CommandAck}:
		return nil
	case <-p.stop:
		return ErrDown
	}
}

func (p *post) run() {
	defer close(p.done)
	linger := time.NewTimer(0)
	defer linger.Stop()
	batch := make([]letter, 0, postBatch)
	begun := make([]*[]byte, 0, postBatch)
	for {
		select {
		case l := <-p.queue:
			batch = p.gather(append(batch[:0], l), linger)
		case <-p.stop:
			return
		}
		begun = begun[:0]
		for i := range batch {
			begun = append(begun, batch[i].begun)
		}
		p.sealer.Sign(begun)
		for i := range batch {
			p.publish(&batch[i])
		}
	}
}

// gather adds what is there already, and waits a little for more when none of it is in a hurry.
func (p *post) gather(batch []letter, linger *time.Timer) []letter {
	hurry := batch[0].hurry
	linger.Reset(postLinger)

	for len(batch) < postBatch {
		select {
		case l := <-p.queue:
			batch = append(batch, l)
			hurry = hurry || l.hurry
			continue
		default:
		}
		if hurry {
			break
		}
		select {
		case l := <-p.queue:
			batch = append(batch, l)
			hurry = l.hurry
		case <-linger.C:
			hurry = true
		case <-p.stop:
			return batch
		}
	}

	return batch
}

func (p *post) publish(l *letter) {
	err := p.conn.Publish(l.subject, *l.begun) // the library copies it before it returns
	p.buffers.Put(l.begun)
	if err == nil {
		p.sent.Add(1)
		return
	}
	// Everything that matters is repeated until it is answered.
	if n := p.failed.Add(1); n&(n-1) == 0 && !errors.Is(err, natsgo.ErrConnectionClosed) {
		p.log.Warn("commands were not taken by the fabric", "subject", l.subject, "count", n, "err", err)
	}
}
