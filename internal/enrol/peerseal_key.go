package enrol

import (
	"bytes"
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/hpke"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// keyAsk is a request for the key of a server that was not answered yet.
type keyAsk struct {
	at    time.Time
	nonce []byte
	key   hpke.PrivateKey // made for this request
}

// keyMessage is a request for a key, or the answer.
type keyMessage struct {
	Nonce  []byte `json:"nonce"`            // of the request
	Key    []byte `json:"key,omitempty"`    // of a request: public, to seal the answer for
	Sealed []byte `json:"sealed,omitempty"` // of an answer

	Certificate []byte `json:"certificate"` // of the sender, for peers
	Signature   []byte `json:"signature"`
}

// sealKEM is the algorithm that seals a key for a public one (RFC 9180).
func sealKEM() hpke.KEM { return hpke.DHKEM(ecdh.X25519()) }

// ask asks a server for its key, unless it was asked a moment ago. mu is held.
func (s *PeerSeal) ask(server string) ([]byte, error) {
	k, now := s.senders[server], time.Now()
	if k != nil && k.ask != nil && now.Sub(k.ask.at) < askPause || !s.proofs.Allow() {
		return nil, nil
	}
	if k == nil {
		if !s.room() {
			return nil, nil
		}
		k = &sender{}
		s.senders[server] = k
	}

	key, err := sealKEM().GenerateKey()
	if err != nil {
		return nil, err
	}
	k.ask = &keyAsk{at: now, nonce: make([]byte, 16), key: key}
	_, _ = rand.Read(k.ask.nonce) // never fails: it ends the program instead
	m := &keyMessage{Nonce: k.ask.nonce, Key: key.PublicKey().Bytes()}
	return s.signed(sealedAsk, m, s.about("ask", server, s.server), m.Key)
}

// answer answers a request for the key of this server. mu is held.
func (s *PeerSeal) answer(to, from string, b []byte) ([]byte, error) {
	var m keyMessage
	if err := s.verified(to, from, b, &m, func() (about, signed []byte) {
		return s.about("ask", s.server, from), m.Key
	}); err != nil {
		return nil, err
	}
	public, err := sealKEM().NewPublicKey(m.Key)
	if err != nil {
		return nil, err
	}

	// What is sealed for the one who asked: which run, its key, and where it is.
	text := append(s.run[:len(s.run):len(s.run)], s.key...)
	text = binary.BigEndian.AppendUint64(text, s.sent.Load())
	sealed, err := hpke.Seal(public, hpke.HKDFSHA256(), hpke.AES256GCM(), append(s.about("key", from, s.server), m.Nonce...), text)
	if err != nil {
		return nil, err
	}
	return s.signed(sealedAnswer, &keyMessage{Nonce: m.Nonce, Sealed: sealed}, s.about("answer", from, s.server), m.Key, sealed)
}

// learn takes in the key of another server. Only the answer to the newest request counts. mu is held.
func (s *PeerSeal) learn(to, from string, b []byte) error {
	k := s.senders[from]
	if k == nil || k.ask == nil {
		return nil // it was answered before
	}
	var m keyMessage
	if json.Unmarshal(b, &m) != nil {
		return errSealShort
	}
	if !bytes.Equal(m.Nonce, k.ask.nonce) {
		return nil // of an earlier request
	}
	if err := s.verified(to, from, b, &m, func() (about, signed []byte) {
		return s.about("answer", s.server, from), append(k.ask.key.PublicKey().Bytes(), m.Sealed...)
	}); err != nil {
		return err
	}

	text, err := hpke.Open(k.ask.key, hpke.HKDFSHA256(), hpke.AES256GCM(), append(s.about("key", s.server, from), m.Nonce...), m.Sealed)
	if err != nil || len(text) != runSize+32+8 {
		return errSealForged
	}
	box, err := newBox(text[runSize : runSize+32])
	if err != nil {
		return err
	}
	k.run, k.box, k.last, k.ask = [runSize]byte(text), box, binary.BigEndian.Uint64(text[runSize+32:]), nil
	return nil
}

// signed signs a message about a key with the certificate of this server for peers.
func (s *PeerSeal) signed(kind byte, m *keyMessage, about []byte, parts ...[]byte) ([]byte, error) {
	cert, err := s.own.get()
	if err != nil {
		return nil, err
	}
	signer, ok := cert.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, errors.New("the key of the certificate for peers cannot sign")
	}
	m.Certificate = cert.Leaf.Raw
	m.Signature, err = signer.Sign(rand.Reader, keyDigest(about, m.Nonce, parts...), crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("cannot sign a message to another server: %w", err)
	}

	b, err := json.Marshal(m)
	return append([]byte{kind}, b...), err
}

// verified reads a message about a key and checks that a server of the installation with the right id signed it. content
// says what was signed.
func (s *PeerSeal) verified(to, from string, b []byte, m *keyMessage, content func() (about, signed []byte)) error {
	if to != s.server {
		return errSealForged
	}
	if !s.proofs.Allow() {
		return errSealMany
	}
	if err := json.Unmarshal(b, m); err != nil {
		return errSealShort
	}
	cert, err := x509.ParseCertificate(m.Certificate)
	if err != nil {
		return fmt.Errorf("its certificate cannot be read: %w", err)
	}
	id, err := s.authority.peerOf(cert)
	if err != nil {
		return err
	}
	if id != from {
		return errSealForged
	}

	public, ok := cert.PublicKey.(*ecdsa.PublicKey)
	about, parts := content()
	if !ok || !ecdsa.VerifyASN1(public, keyDigest(about, m.Nonce, parts), m.Signature) {
		return errSealForged
	}
	return nil
}

// keyDigest is what is signed. All parts but the last one have a fixed length.
func keyDigest(about, nonce []byte, parts ...[]byte) []byte {
	h := sha256.New()
	h.Write(about)
	h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(nonce))))
	h.Write(nonce)
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}
