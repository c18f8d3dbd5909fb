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

// checkpointMagic begins a checkpoint and what is signed of it, so that it is never taken for an envelope or a
// hand-over.
const checkpointMagic = "gzc1"

// Checkpoint is a server's word that its audit had a certain newest row at a certain time. Whoever keeps one
// elsewhere can show later that nothing before that row was changed, also to somebody who trusts neither the record
// nor the file that it was kept in, only the key.
type Checkpoint struct {
	Head gozzard.AuditHead
	At   time.Time // seconds
	Key  KeyID

	signature [ed25519.SignatureSize]byte
}

// Checkpoint signs the newest row of the audit.
func (s *Signer) Checkpoint(head gozzard.AuditHead) Checkpoint {
	c := Checkpoint{Head: head, At: s.now().UTC().Truncate(time.Second), Key: s.id}
	c.signature = [ed25519.SignatureSize]byte(ed25519.Sign(s.private, c.text()))
	return c
}

func (c *Checkpoint) text() []byte {
	return fmt.Appendf(nil, "%s.%d.%x.%d.%s", checkpointMagic, c.Head.Seq, c.Head.Hash[:], c.At.Unix(), c.Key)
}

// String is what ParseCheckpoint reads: one word, fit for a line of a log.
func (c Checkpoint) String() string {
	return string(c.text()) + "." + base64.RawURLEncoding.EncodeToString(c.signature[:])
}

// ParseCheckpoint accepts only what String writes. Nothing of it is proven.
func ParseCheckpoint(s string) (c Checkpoint, err error) {
	w := strings.Split(s, ".")
	if len(w) != 6 || w[0] != checkpointMagic {
		return c, fmt.Errorf("checkpoint is not of the form %s.<row>.<hash>.<time>.<key>.<signature>", checkpointMagic)
	}

	var seconds int64

	if c.Head.Seq, err = strconv.ParseInt(w[1], 10, 64); err == nil {
		seconds, err = strconv.ParseInt(w[3], 10, 64)
	}
	if err != nil {
		return Checkpoint{}, errors.New("checkpoint has a wrong number")
	}

	c.At = time.Unix(seconds, 0).UTC()
	signature, err := base64.RawURLEncoding.DecodeString(w[5])
	if n, _ := hex.Decode(c.Key[:], []byte(w[4])[:min(len(w[4]), 2*len(c.Key))]); n != len(c.Key) || err != nil ||
		copy(c.signature[:], signature) != len(signature) {
		return Checkpoint{}, errors.New("checkpoint has a wrong key or signature")
	}

	if err := c.Head.Hash.UnmarshalText([]byte(w[2])); err != nil {
		return Checkpoint{}, err
	}
	if c.String() != s {
		return Checkpoint{}, errors.New("checkpoint is not written as it should be")
	}

	return c, nil
}

// Verify reports whether one of the keys signed it.
func (c *Checkpoint) Verify(keys []Key) error {
	for _, k := range keys {
		if k.ID() == c.Key && k.verify(c.text(), c.signature[:]) {
			return nil
		}
	}
	return fmt.Errorf("checkpoint of row %d was not signed by a key of this server (it names key %s)", c.Head.Seq,
		c.Key)
}
