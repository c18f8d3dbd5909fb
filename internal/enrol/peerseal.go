package enrol

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// The kinds of messages between servers, as their first byte.
const (
	sealedText   = 1
	sealedAsk    = 2
	sealedAnswer = 3
)

const (
	runSize  = 16
	sealHead = 1 + runSize + 8 // kind, run, number

	askPause    = time.Second // between two requests to one server for its key
	mostSenders = 1024        // names of senders that are remembered; anyone on the way can make them up
)

var (
	errSealShort  = errors.New("it is too short")
	errSealKind   = errors.New("it is of an unknown kind")
	errSealForged = errors.New("it was not sealed by that server for this one, or was changed")
	errSealAgain  = errors.New("it was sent before")
	errSealMany   = errors.New("too many servers ask for keys at once")
)

// PeerSeal closes what servers of an installation tell each other to everybody else, where others carry it.
//
// A server has a random key for each run, with which it seals all that it sends, each message with a number of its own. A
// receiver that does not know the key asks for it, and gets it sealed for a key that it made for this one request. Both
// prove with their certificates for peers that they are servers of the installation. The answer has the number of the
// newest message, so what was sent before, in this run or in an earlier one, never counts again.
type PeerSeal struct {
	authority            *Authority
	own                  *serverCertificate
	installation, server string

	run  [runSize]byte
	key  []byte
	box  cipher.AEAD
	sent atomic.Uint64

	proofs *rate.Limiter // of signatures that others can cause

	mu      sync.Mutex
	senders map[string]*sender
}

// sender is another server.
type sender struct {
	run  [runSize]byte
	box  cipher.AEAD // nil: its key is not known
	last uint64      // number of the newest message
	ask  *keyAsk     // nil: none is open
}

// NewPeerSeal makes the seal of one run of a server.
func (a *Authority) NewPeerSeal(installation, server string) (*PeerSeal, error) {
	s := &PeerSeal{authority: a, installation: installation, server: server, key: make([]byte, 32),
		proofs: rate.NewLimiter(50, 100), senders: map[string]*sender{}}
	s.own = &serverCertificate{authority: a, create: func() (*tls.Certificate, error) { return a.peerCertificate(server) }}
	_, _ = rand.Read(s.key) // never fails: it ends the program instead
	_, _ = rand.Read(s.run[:])
	var err error
	s.box, err = newBox(s.key)
	return s, err
}

func newBox(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// Seal seals a message to a server, or to all. The messages of a run must be sent in the order in which they were sealed.
func (s *PeerSeal) Seal(to string, text []byte) []byte {
	n := s.sent.Add(1)
	out := make([]byte, 0, sealHead+len(text)+s.box.Overhead())
	out = append(out, sealedText)
	out = append(out, s.run[:]...)
	out = binary.BigEndian.AppendUint64(out, n)
	return s.box.Seal(out, sealNonce(n), text, s.about("text", to, s.server))
}

// Open opens a message. It may return what to send back to its sender, as it is: the message is then lost.
func (s *PeerSeal) Open(to, from string, b []byte) (text, reply []byte, err error) {
	if len(b) == 0 {
		return nil, nil, errSealShort
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch b[0] {
	case sealedText:
		return s.openText(to, from, b)
	case sealedAsk:
		reply, err = s.answer(to, from, b[1:])
	case sealedAnswer:
		err = s.learn(to, from, b[1:])
	default:
		err = errSealKind
	}
	return nil, reply, err
}

// openText opens what Seal made. mu is held.
func (s *PeerSeal) openText(to, from string, b []byte) (text, reply []byte, err error) {
	if len(b) < sealHead {
		return nil, nil, errSealShort
	}
	run, n := [runSize]byte(b[1:1+runSize]), binary.BigEndian.Uint64(b[1+runSize:])

	// A server that was started again has another key. So has a message of an earlier run: the answer will show it.
	k := s.senders[from]
	if k == nil || k.box == nil || k.run != run {
		reply, err = s.ask(from)
		return nil, reply, err
	}

	if n <= k.last {
		return nil, nil, errSealAgain
	}
	text, err = k.box.Open(nil, sealNonce(n), b[sealHead:], s.about("text", to, from))
	if err != nil {
		return nil, nil, errSealForged
	}
	k.last = n
	return text, nil, nil
}

// sealNonce is that of the message with a number. A key is used in one run only, so it never comes twice.
func sealNonce(n uint64) []byte { return binary.BigEndian.AppendUint64(make([]byte, 4, 12), n) }

// about is what a message is bound to. None of the words has a space.
func (s *PeerSeal) about(what, to, from string) []byte {
	return []byte("gozzard servers 1 " + what + " " + s.installation + " " + to + " " + from + " ")
}

// room makes room for one more sender. It reports false if there is none: then all are servers of the installation.
func (s *PeerSeal) room() bool {
	if len(s.senders) < mostSenders {
		return true
	}
	for name, k := range s.senders {
		if k.box == nil {
			delete(s.senders, name)
			return true
		}
	}
	return false
}
