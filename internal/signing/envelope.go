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

// Life is how long an envelope is good. It is long because hosts' clocks are wrong by days, and because it is not
// what keeps old commands out: that is the session inside.
const Life = 7 * 24 * time.Hour

// Refusal says why an envelope was not opened.
type Refusal struct {
	Rule string // a word of this program, for counters
	Err  error
}

func (r *Refusal) Error() string { return r.Err.Error() }

// Unwrap makes it an error chain.
func (r *Refusal) Unwrap() error { return r.Err }

// The rules of refusals.
const (
	RuleForm      = "seal_form"      // not an envelope
	RuleKey       = "seal_key"       // of a key that is not trusted
	RuleEpoch     = "seal_epoch"     // of a key that was replaced
	RuleSignature = "seal_signature" // not signed by the key it names
	RuleAgent     = "seal_agent"     // for another agent
	RuleExpired   = "seal_expired"
	RuleKeep      = "seal_keep" // the new key could not be kept on the disk
)

func refuse(rule, format string, args ...any) error {
	return &Refusal{Rule: rule, Err: fmt.Errorf(format, args...)}
}

// envelope is one that was taken apart; nothing of it is proven.
type envelope struct {
	key       KeyID
	epoch     uint64
	notAfter  int64
	agent     gozzard.AgentID
	handOvers []byte
	payload   []byte
	signed    []byte // all before the steps
	steps     []byte // to the root that is signed
	signature []byte
}

// Unproven gives the command of an envelope without asking who signed it. It is for simulated hosts, whose machines
// do not exist and which would otherwise have one processor do the work of thousands; nothing that can start a
// process may use it.
func Unproven(b []byte) ([]byte, error) {
	e, err := parse(b)
	if err != nil {
		return nil, &Refusal{Rule: RuleForm, Err: err}
	}
	return e.payload, nil
}

// saltBytes hide an envelope from whoever gets the hash of it as a step of his own: without them he could try what
// it may say.
const saltBytes = 16

// appendHead writes everything before the command but for its length.
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

var errShort = errors.New("command is not in an envelope, or its envelope is cut off")

// parse takes an envelope apart to the last byte.
func parse(b []byte) (e envelope, err error) {
	rest := b
	take := func(n int) []byte {
		if err != nil || n < 0 || n > len(rest) {
			err = errShort
			return make([]byte, min(max(n, 0), 8)) // enough for whoever reads a number out of it
		}
		part := rest[:n]
		rest = rest[n:]
		return part
	}

	if string(take(len(envelopeMagic))) != envelopeMagic {
		return envelope{}, errShort
	}

	copy(e.key[:], take(len(e.key)))
	e.epoch = binary.BigEndian.Uint64(take(8))
	e.notAfter = int64(binary.BigEndian.Uint64(take(8)))
	e.agent = gozzard.AgentID(take(int(take(1)[0])))
	count := int(take(1)[0])
	if count > maxHandOvers {
		return envelope{}, fmt.Errorf("envelope has %d hand-overs, at most %d are allowed", count, maxHandOvers)
	}

	e.handOvers = take(count * handOverBytes)
	take(saltBytes)
	e.payload = take(int(binary.BigEndian.Uint32(take(4))))
	e.signed = b[:len(b)-len(rest)]
	steps, wrong := takeSteps(take)
	if wrong != nil {
		return envelope{}, wrong
	}

	e.steps = steps
	e.signature = take(ed25519.SignatureSize)

	if err != nil {
		return envelope{}, err
	}
	if len(rest) > 0 {
		return envelope{}, fmt.Errorf("envelope is followed by %d bytes", len(rest))
	}

	return e, nil
}

func takeSteps(take func(int) []byte) ([]byte, error) {
	count := int(take(1)[0])
	if count > maxSteps {
		return nil, fmt.Errorf("envelope has %d steps, at most %d are allowed", count, maxSteps)
	}
	steps := take(count * stepBytes)
	for i := 0; i+stepBytes <= len(steps); i += stepBytes {
		if steps[i] > 1 {
			return nil, errors.New("envelope has a step to neither side")
		}
	}
	return steps, nil
}
