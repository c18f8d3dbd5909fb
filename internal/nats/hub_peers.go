package nats

import (
	"errors"
	"fmt"
	"strings"

	natsgo "github.com/nats-io/nats.go"
)

const (
	// The bounds of waiting messages of peers, in bytes, and how many the library may hold. Peers number what they tell,
	// so a message that was dropped is noticed.
	perPeer      = 64 << 20
	peersTotal   = 256 << 20
	peersWaiting = 8192
)

// Tell sends a message to another server of the cluster, or to all others if peer is "". It does not wait for the peer
// and does not know whether it is connected. Messages to one peer stay in order, those to all included. Outside of a
// cluster there are no others.
//
// Peers prove to each other that they are servers of this installation, and no agent can send or receive these messages.
// Which server has sent a message is not proven: servers believe each other.
func (h *Hub) Tell(peer string, payload []byte) error {
	c := h.opts.Broker.cluster
	switch {
	case c == nil && peer == "":
		return nil
	case c == nil:
		return fmt.Errorf("cannot send to server %s: this server is in no cluster", peer)
	case peer == "":
		peer = everyPeer
	default:
		if err := validateServer(peer); err != nil {
			return fmt.Errorf("cannot send to a peer: %w", err)
		}
	}
	if len(payload) > MaxMessage {
		return fmt.Errorf("cannot send to server %s: message has %d bytes, the fabric carries at most %d", peer, len(payload),
			MaxMessage)
	}

	err := h.conn.Publish(subjectServer+peer+"."+c.opts.Server, payload)
	if errors.Is(err, natsgo.ErrReconnectBufExceeded) || errors.Is(err, natsgo.ErrConnectionClosed) {
		err = ErrDown
	}
	if err != nil {
		return fmt.Errorf("cannot send to server %s: %w", peer, err)
	}
	return nil
}

// subscribePeers subscribes to messages of other servers. Both subscriptions share one channel, so that messages
// to all and to this server stay in order.
func (h *Hub) subscribePeers() error {
	c := h.opts.Broker.cluster
	if c == nil || h.opts.Peer == nil {
		return nil
	}

	in := make(chan *natsgo.Msg, peersWaiting)
	for _, to := range []string{everyPeer, c.opts.Server} {
		if _, err := h.conn.ChanSubscribe(subjectServer+to+".*", in); err != nil {
			return err
		}
	}

	h.subsDone.Go(func() {
		for {
			select {
			case m := <-in:
				h.heard(c.opts.Server, m)
			case <-h.stop:
				return
			}
		}
	})
	return h.conn.FlushTimeout(readyTimeout)
}

// heard puts a message of a peer into its queue.
func (h *Hub) heard(own string, m *natsgo.Msg) {
	from := m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]
	if from == own { // two servers have the same id; the record rejects one of them
		return
	}
	if !h.peers.push(from, m.Data) {
		h.countDropped(m.Subject)
	}
}

// workPeers hands over messages of peers until the queues are closed.
func (h *Hub) workPeers() {
	for {
		from, data, ok := h.peers.next()
		if !ok {
			return
		}
		h.opts.Peer(from.subject, data)
		h.peers.done(from)
	}
}
