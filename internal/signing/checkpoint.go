package signing

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
)

// checkpointMagic is the start of a checkpoint and of the signed text, so that a checkpoint cannot be mistaken for an
// envelope or a hand-over.
const checkpointMagic = "gzc1"

// Checkpoint is the server's signed statement that its audit had a certain newest row at a certain time. A checkpoint
// that is stored elsewhere proves later that nothing before that row was changed. The proof needs trust in the key
// only, not in the record or in the file with the checkpoint.
type Checkpoint struct {
	Head gozzard.AuditHead
	At   time.Time // seconds
	Key  KeyID

	signature [ed25519.SignatureSize]byte
}

// Checkpoint signs the newest row of the audit.
func (s *Signer) Checkpoint(head gozzard.AuditHead) (Checkpoint, error) {
	st := s.state.Load()
	c := Checkpoint{Head: head, At: s.o.Now().UTC().Truncate(time.Second), Key: st.id}
	signature, err := st.sign(c.text())
	if err != nil {
		return Checkpoint{}, fmt.Errorf("cannot sign a checkpoint: %w", err)
	}
	c.signature = [ed25519.SignatureSize]byte(signature)
	return c, nil
}

func (c *Checkpoint) text() []byte {
	return fmt.Appendf(nil, "%s.%d.%x.%d.%s", checkpointMagic, c.Head.Seq, c.Head.Hash[:], c.At.Unix(), c.Key)
}

// String is the text that ParseCheckpoint reads: one word without spaces, fit for a line of a log.
func (c Checkpoint) String() string {
	return string(c.text()) + "." + base64.RawURLEncoding.EncodeToString(c.signature[:])
}

// ParseCheckpoint accepts only what String writes. It does not verify the signature.
func ParseCheckpoint(s string) (c Checkpoint, err error) {
	w := strings.Split(s, ".")
	if len(w) != 6 || w[0] != checkpointMagic {
		return c, fmt.Errorf("checkpoint is not of the form %s.<row>.<hash>.<time>.<key>.<signature>", checkpointMagic)
	}

	// The numbers.
	var seconds int64
	if c.Head.Seq, err = strconv.ParseInt(w[1], 10, 64); err == nil {
		seconds, err = strconv.ParseInt(w[3], 10, 64)
	}
	if err != nil {
		return Checkpoint{}, errors.New("checkpoint has an invalid number")
	}

	c.At = time.Unix(seconds, 0).UTC()

	// The key and the signature.
	signature, err := base64.RawURLEncoding.DecodeString(w[5])
	n, _ := hex.Decode(c.Key[:], []byte(w[4])[:min(len(w[4]), 2*len(c.Key))])
	if n != len(c.Key) || err != nil || copy(c.signature[:], signature) != len(signature) {
		return Checkpoint{}, errors.New("checkpoint has an invalid key or signature")
	}

	// The hash. Then the text must be the one that String writes.
	if err := c.Head.Hash.UnmarshalText([]byte(w[2])); err != nil {
		return Checkpoint{}, err
	}
	if c.String() != s {
		return Checkpoint{}, errors.New("checkpoint is not in its standard form")
	}

	return c, nil
}

// Verify returns an error unless one of the keys signed the checkpoint.
func (c *Checkpoint) Verify(keys []Key) error {
	for _, k := range keys {
		if k.ID() == c.Key && k.verify(c.text(), c.signature[:]) {
			return nil
		}
	}
	return fmt.Errorf("checkpoint of row %d was not signed by a key of this server (it names key %s)",
		c.Head.Seq, c.Key)
}
