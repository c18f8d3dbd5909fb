package gozzard

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"
)

// AuditRow says which caller did what, and on which hosts. Rows are only added, and each row is chained to the one
// before it.
type AuditRow struct {
	Seq         int64 // set by the record
	At          time.Time
	Caller      Caller
	Act         string // such as "operate:start,stop"
	TaskID      string // the task's name as the record keeps it: the chain covers these bytes; "" where there is none
	RequestHash [32]byte
	Targets     int
	HostsHash   [32]byte // HashHosts of the targets; zero when there are none
}

// AuditHash identifies a row and all rows before it.
type AuditHash [sha256.Size]byte

// String is the hash in hexadecimal.
func (h AuditHash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText writes the hash in hexadecimal.
func (h AuditHash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (h *AuditHash) UnmarshalText(b []byte) error {
	if n, err := hex.Decode(h[:], b[:min(len(b), 2*len(h))]); err != nil || n != len(h) || len(b) != 2*len(h) {
		return fmt.Errorf("%.70q is not an audit hash", b)
	}
	return nil
}

// AuditLink is a row with its hash.
type AuditLink struct {
	AuditRow
	Hash AuditHash
}

// AuditHead is the newest row of a chain. A copy of it that is kept elsewhere proves later that no earlier row was
// changed, even if the reader does not trust the administrator of the record.
type AuditHead struct {
	Seq  int64     `json:"seq"`
	Hash AuditHash `json:"hash"`
}

// Chain is the hash of a row that follows a row with the hash prev. Every text goes in with its length, so two
// different rows never have the same bytes. Times go in as milliseconds, because the record stores milliseconds.
func (r *AuditRow) Chain(prev AuditHash) (sum AuditHash) {
	b := make([]byte, 0, 512)
	number := func(n int64) { b = binary.BigEndian.AppendUint64(b, uint64(n)) }
	text := func(s string) {
		number(int64(len(s)))
		b = append(b, s...)
	}

	// The place in the chain.
	text("gozzard audit 1")
	b = append(b, prev[:]...)
	number(r.Seq)

	// The time and the caller.
	if r.At.IsZero() {
		number(0)
	} else {
		number(r.At.UnixMilli())
	}

	text(r.Caller.App)
	text(r.Caller.User)

	if r.Caller.Asserted {
		number(1)
	} else {
		number(0)
	}

	// What was done, and where.
	text(r.Act)
	text(r.TaskID)
	b = append(b, r.RequestHash[:]...)
	number(int64(r.Targets))
	b = append(b, r.HostsHash[:]...)
	return sha256.Sum256(b)
}

// AuditCheck verifies a chain from its first row. The zero value is ready to use.
type AuditCheck struct {
	Head AuditHead // the last row that was verified
	Rows int
}

// Follow verifies the next row. It fails where the chain is broken: at the first row that was changed, or before
// which a row was changed or removed.
func (c *AuditCheck) Follow(l *AuditLink) error {
	if l.Seq <= c.Head.Seq {
		return fmt.Errorf("audit row %d comes after row %d", l.Seq, c.Head.Seq)
	}
	if l.Chain(c.Head.Hash) != l.Hash {
		return fmt.Errorf("the audit is broken at row %d (last good row %d): "+
			"this row or one before it was changed or removed", l.Seq, c.Head.Seq)
	}
	c.Head = AuditHead{Seq: l.Seq, Hash: l.Hash}
	c.Rows++
	return nil
}

// End compares the last verified row with the newest row according to the record.
func (c *AuditCheck) End(head AuditHead) error {
	if c.Head != head {
		return fmt.Errorf("the audit ends with row %d, but its newest row was %d (hash %s): rows were removed or changed",
			c.Head.Seq, head.Seq, head.Hash)
	}
	return nil
}

// HashHosts is the digest of the hosts of an operation, in the order of its attempts. It is what an audit row stores
// of them.
func HashHosts(attempts []Attempt) (sum [32]byte) {
	h := sha256.New()
	line := make([]byte, 0, 128)
	for i := range attempts {
		a := &attempts[i]
		line = append(line[:0], a.Agent...)
		line = append(line, '\t')
		line = append(line, a.Addr.String()...)
		line = append(line, '\n')
		_, _ = h.Write(line) // writing to a hash never fails
	}
	h.Sum(sum[:0])
	return sum
}
