package gozzard

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"
)

// AuditRow says who asked for what, and where. Rows are only ever added; each is chained to the one before it.
type AuditRow struct {
	Seq         int64 // filled in by the record
	At          time.Time
	Caller      Caller
	Act         string // such as "operate:start,stop"
	TaskID      string // the task's name as the record keeps it: the chain covers these bytes; "" where there is none
	RequestHash [32]byte
	Targets     int
	HostsHash   [32]byte // HashHosts of the targets; zero where there are none
}

// AuditHash names a row and everything before it.
type AuditHash [sha256.Size]byte

func (h AuditHash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText gives the hash in hexadecimal.
func (h AuditHash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (h *AuditHash) UnmarshalText(b []byte) error {
	if n, err := hex.Decode(h[:], b[:min(len(b), 2*len(h))]); err != nil || n != len(h) || len(b) != 2*len(h) {
		return fmt.Errorf("%.70q is not a hash of the audit", b)
	}
	return nil
}

// AuditLink is a row with its place in the chain.
type AuditLink struct {
	AuditRow
	Hash AuditHash
}

// AuditHead is the newest row of a chain. Who has written one down elsewhere can tell later that nothing before it
// was changed, not even by somebody who can change the whole record.
type AuditHead struct {
	Seq  int64     `json:"seq"`
	Hash AuditHash `json:"hash"`
}

// Chain is the hash of a row that follows one with the hash prev. Texts are given with their lengths, so no two
// rows have the same bytes. Times count in milliseconds, as the record keeps them.
func (r *AuditRow) Chain(prev AuditHash) (sum AuditHash) {
	b := make([]byte, 0, 512)
	number := func(n int64) { b = binary.BigEndian.AppendUint64(b, uint64(n)) }
	text := func(s string) {
		number(int64(len(s)))
		b = append(b, s...)
	}

	text("gozzard audit 1")
	b = append(b, prev[:]...)
	number(r.Seq)

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

	text(r.Act)
	text(r.TaskID)
	b = append(b, r.RequestHash[:]...)
	number(int64(r.Targets))
	b = append(b, r.HostsHash[:]...)
	return sha256.Sum256(b)
}

// AuditCheck follows a chain from its first row. The zero value is ready.
type AuditCheck struct {
	Head AuditHead // of what was followed
	Rows int
}

// Follow takes the next row. It fails where the chain is broken: at the first row that was changed, or that follows
// one that was changed or removed.
func (c *AuditCheck) Follow(l *AuditLink) error {
	if l.Seq <= c.Head.Seq {
		return fmt.Errorf("audit row %d comes after row %d", l.Seq, c.Head.Seq)
	}
	if l.Chain(c.Head.Hash) != l.Hash {
		return fmt.Errorf("the audit is broken at row %d: it was changed, or what was before it was changed or removed (the last good row is %d)", l.Seq, c.Head.Seq)
	}
	c.Head = AuditHead{Seq: l.Seq, Hash: l.Hash}
	c.Rows++
	return nil
}

// End compares what was followed with what the record says is its newest row.
func (c *AuditCheck) End(head AuditHead) error {
	if c.Head != head {
		return fmt.Errorf("the audit ends with row %d, and the newest one was row %d with hash %s: rows were removed or changed", c.Head.Seq, head.Seq, head.Hash)
	}
	return nil
}

// HashHosts is what a row of the audit keeps of the hosts of an operation: which they were, in the order of its
// attempts.
func HashHosts(attempts []Attempt) (sum [32]byte) {
	h := sha256.New()
	line := make([]byte, 0, 128)
	for i := range attempts {
		a := &attempts[i]
		line = append(line[:0], a.Agent...)
		line = append(line, '\t')
		line = append(line, a.Addr.String()...)
		line = append(line, '\n')
		_, _ = h.Write(line) // a hash takes everything
	}
	h.Sum(sum[:0])
	return sum
}
