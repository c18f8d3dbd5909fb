package signing

import (
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/gozzard/gozzard"
)

const envelopeMagic = "GZS1"

// Life is how long an envelope is valid. It is long because the clocks of hosts can be wrong by days. It is not what
// protects from old commands: the session inside of the command does that.
const Life = 7 * 24 * time.Hour

// Refusal is the error of Open: it says why an envelope was rejected.
type Refusal struct {
	Rule string // one of the rules below, for metrics
	Err  error
}

func (r *Refusal) Error() string { return r.Err.Error() }

// Unwrap is for errors.Is and errors.As.
func (r *Refusal) Unwrap() error { return r.Err }

// The rules by which envelopes are rejected, as the metrics count them.
const (
	RuleForm      = "seal_form"      // not an envelope
	RuleKey       = "seal_key"       // signed by a key that is not trusted
	RuleEpoch     = "seal_epoch"     // signed by a key that was replaced
	RuleSignature = "seal_signature" // not signed by the key that it names
	RuleAgent     = "seal_agent"     // for another agent
	RuleExpired   = "seal_expired"   // older than Life
	RuleKeep      = "seal_keep"      // the new key cannot be written to the disk
)

func reject(rule, format string, args ...any) error {
	return &Refusal{Rule: rule, Err: fmt.Errorf(format, args...)}
}

// envelope has the parts of an envelope. They are not verified.
type envelope struct {
	key       KeyID
	epoch     uint64
	notAfter  int64
	agent     gozzard.AgentID
	handOvers []byte
	payload   []byte
	signed    []byte // everything before the steps
	steps     []byte // to the signed root
	signature []byte
}

// saltBytes is the length of the random salt. Agents get the hashes of other envelopes as steps of their own; without
// the salt an agent could guess the content of another envelope and check the guess.
const saltBytes = 16

// appendHead appends everything before the length of the command.
func appendHead(b []byte, k KeyID, epoch uint64, notAfter int64, to gozzard.AgentID, handOvers, salt []byte) []byte {
	b = append(b, envelopeMagic...)
	b = append(b, k[:]...)
	b = binary.BigEndian.AppendUint64(b, epoch)
	b = binary.BigEndian.AppendUint64(b, uint64(notAfter))
	b = append(b, byte(len(to)))
	b = append(b, to...)
	b = append(b, byte(len(handOvers)/handOverBytes))
	b = append(b, handOvers...)
	return append(b, salt...)
}

// epochOf is the epoch of an envelope that appendHead began.
func epochOf(b []byte) uint64 {
	const at = len(envelopeMagic) + len(KeyID{})
	return binary.BigEndian.Uint64(b[at : at+8])
}

var errShort = errors.New("command is not in an envelope, or its envelope is truncated")

// parse splits an envelope into its parts. It rejects bytes that follow it.
func parse(b []byte) (e envelope, err error) {
	rest := b
	next := func(n int) []byte {
		if err != nil || n < 0 || n > len(rest) {
			err = errShort
			return make([]byte, min(max(n, 0), 8)) // long enough to read a number from it
		}
		part := rest[:n]
		rest = rest[n:]
		return part
	}

	// Read the head.
	if string(next(len(envelopeMagic))) != envelopeMagic {
		return envelope{}, errShort
	}

	copy(e.key[:], next(len(e.key)))
	e.epoch = binary.BigEndian.Uint64(next(8))
	e.notAfter = int64(binary.BigEndian.Uint64(next(8)))
	e.agent = gozzard.AgentID(next(int(next(1)[0])))
	count := int(next(1)[0])
	if count > maxHandOvers {
		return envelope{}, fmt.Errorf("envelope has %d hand-overs, at most %d are allowed", count, maxHandOvers)
	}

	// Read the command.
	e.handOvers = next(count * handOverBytes)
	next(saltBytes)
	e.payload = next(int(binary.BigEndian.Uint32(next(4))))
	e.signed = b[:len(b)-len(rest)]

	// Read the proof.
	steps, wrong := readSteps(next)
	if wrong != nil {
		return envelope{}, wrong
	}

	e.steps = steps
	e.signature = next(ed25519.SignatureSize)
	if err != nil {
		return envelope{}, err
	}
	if len(rest) > 0 {
		return envelope{}, fmt.Errorf("envelope is followed by %d bytes", len(rest))
	}

	return e, nil
}

func readSteps(next func(int) []byte) ([]byte, error) {
	count := int(next(1)[0])
	if count > maxSteps {
		return nil, fmt.Errorf("envelope has %d steps, at most %d are allowed", count, maxSteps)
	}
	steps := next(count * stepBytes)
	for i := 0; i+stepBytes <= len(steps); i += stepBytes {
		if steps[i] > 1 {
			return nil, errors.New("envelope has an invalid step")
		}
	}
	return steps, nil
}
