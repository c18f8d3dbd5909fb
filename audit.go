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

	Origin
	Accounts string   // the OS accounts of the definitions, sorted, with commas; see AuditItem.Account
	Outcome  string   // what became of it, such as "ok=3,refused=1"; "" where the act itself is the outcome
	Ref      int64    // the row that this one adds something to; 0 where there is none
	Count    int      // how many equal events the row stands for; 0 means one
	Content  [32]byte // SHA-256 of the AuditContent in JSON; zero when there is none

	// Legacy marks a row that was written before Origin and the fields after it existed. Its hash does not cover them.
	Legacy bool
	// Texts go into the record with the row, and are found by their SHA-256 as long as the audit is kept. They are not
	// read back with the row.
	Texts [][]byte
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
	if r.Legacy {
		text("gozzard audit 1")
	} else {
		text("gozzard audit 2")
	}
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
	if r.Legacy {
		return sha256.Sum256(b)
	}

	// Where it came from, and what became of it.
	text(r.Door)
	text(r.Source)
	text(r.RequestID)
	text(r.Accounts)
	text(r.Outcome)
	number(r.Ref)
	number(int64(r.Count))
	b = append(b, r.Content[:]...)
	return sha256.Sum256(b)
}

// Plain reports whether a row says nothing that rule 1 of the chain does not cover, as every row of that rule. A value
// there was added later, by hand.
func (r *AuditRow) Plain() bool {
	return r.Origin == Origin{} && r.Accounts == "" && r.Outcome == "" && r.Ref == 0 && r.Count == 0 &&
		r.Content == [32]byte{}
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
	if l.Chain(c.Head.Hash) != l.Hash || l.Legacy && !l.Plain() {
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

// HashHosts is the digest of the hosts of an operation, in the order of its attempts.
func HashHosts(attempts []Attempt) [32]byte { return sha256.Sum256(HostLines(attempts)) }
