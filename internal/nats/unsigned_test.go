package nats_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/nats"
	"github.com/gozzard/gozzard/internal/wire"
)

// signer appends no proof.
type signer func(b []byte, to gozzard.AgentID, kind gozzard.CommandKind, write func([]byte) []byte) []byte

func (s signer) Begin(b []byte, to gozzard.AgentID, kind gozzard.CommandKind, write func([]byte) []byte) []byte {
	return s(b, to, kind, write)
}

func (signer) Sign([]*[]byte) error { return nil }

// TestTT1NothingIsReadUnopened: an attacker that controls the fabric cannot give commands. An agent neither decodes nor
// carries out a message that the server did not sign for it, and counts it.
func TestTT1NothingIsReadUnopened(t *testing.T) {
	b := broker(t, "127.0.0.1:0")
	proof := []byte("signed for ")
	h := hub(t, nats.HubOptions{Broker: b, Receive: new(inbox).receive,
		Signer: signer(func(b []byte, to gozzard.AgentID, kind gozzard.CommandKind, write func([]byte) []byte) []byte {
			if kind != gozzard.CommandAck {
				t.Errorf("kind %d was signed", kind)
			}
			return write(append(append(b, proof...), to...))
		})})

	injector := hub(t, nats.HubOptions{Broker: b, Receive: new(inbox).receive}) // has all rights but no key
	var lines logLines
	a := link(t, nats.LinkOptions{URL: b.Addr(), Agent: "a1", Log: lines.logger(),
		Open: func(b []byte) ([]byte, error) {
			if rest, ok := bytes.CutPrefix(b, append(proof, "a1"...)); ok {
				return rest, nil
			}
			return nil, errors.New("no proof")
		}})

	eventually(t, "the link", a.isUp)

	for range 100 {
		if err := injector.Send("a1", 0, &gozzard.Command{Kind: gozzard.CommandOperate, Session: 1}); err != nil {
			t.Fatal(err)
		}
	}

	eventually(t, "the refusals", func() bool { return a.Stats().Refused == 100 })
	cmd := &gozzard.Command{Kind: gozzard.CommandAck, Session: 5}
	if err := h.Send("a1", 0, cmd); err != nil {
		t.Fatal(err)
	}

	eventually(t, "the command", func() bool { return len(a.got()) == 1 })

	if got := a.got()[0]; !bytes.Equal(wire.AppendCommand(nil, got), wire.AppendCommand(nil, cmd)) {
		t.Errorf("got %+v", got)
	}
	if s := a.Stats(); s.Malformed+s.Newer != 0 || s.Refused != 100 {
		t.Errorf("got %+v", s)
	}
	if n := lines.count("command rejected"); n != 7 { // at 1, 2, 4 ... 64
		t.Errorf("logged %d times", n)
	}
}
