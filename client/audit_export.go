package client

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/gozzard/gozzard"
)

// What a message of the live export has of long lists. It stays below 8 KiB, the longest message that common receivers
// of syslog take.
const (
	exportHosts = 32
	exportItems = 8
	exportText  = 1024
)

// AuditExport is a row of the audit as the live export sends it. Prev is the hash of the row before: a receiver that
// does not have that row has a gap.
type AuditExport struct {
	AuditRow
	Prev      gozzard.AuditHash   `json:"prev"`
	Hosts     []gozzard.AuditHost `json:"hosts,omitempty"`
	HostsMore int                 `json:"hosts_more,omitempty"` // hosts that are not in the message
	Items     []gozzard.AuditItem `json:"items,omitempty"`
	ItemsMore int                 `json:"items_more,omitempty"`
	Text      string              `json:"text,omitempty"`
	TextMore  int                 `json:"text_more,omitempty"` // bytes of the text that are not in the message
}

// NewAuditExport makes a message of a row. text reads a text by its digest, as for NewAuditDetail.
func NewAuditExport(l *gozzard.AuditLink, prev gozzard.AuditHash, text func([32]byte) ([]byte, error)) (AuditExport, error) {
	e := AuditExport{AuditRow: NewAuditRow(l), Prev: prev}
	b, _, err := optional(text, l.HostsHash)
	if err != nil {
		return e, err
	}
	hosts := gozzard.ParseHostLines(b)
	e.Hosts = cut(hosts, 0, exportHosts)
	e.HostsMore = len(hosts) - len(e.Hosts)

	b, found, err := optional(text, l.Content)
	if err != nil || !found {
		return e, err
	}
	var content gozzard.AuditContent
	if err := json.Unmarshal(b, &content); err != nil {
		return e, fmt.Errorf("the content of audit row %d is not readable: %w", l.Seq, err)
	}
	e.Items = cut(content.Items, 0, exportItems)
	e.ItemsMore = len(content.Items) - len(e.Items)
	e.Text = content.Text
	if len(e.Text) > exportText {
		e.Text, e.TextMore = e.Text[:exportText], len(e.Text)-exportText
	}
	return e, nil
}

// complete checks the lists of a message against the digests of its row, where they are complete.
func (e *AuditExport) complete(l *gozzard.AuditLink) error {
	if len(e.Hosts) > 0 && e.HostsMore == 0 {
		var lines []byte
		for _, h := range e.Hosts {
			lines = fmt.Appendf(lines, "%s\t%s\n", h.Agent, h.Addr)
		}
		if sha256.Sum256(lines) != l.HostsHash {
			return fmt.Errorf("the hosts of row %d were changed", l.Seq)
		}
	}

	if (len(e.Items) > 0 || e.Text != "") && e.ItemsMore == 0 && e.TextMore == 0 {
		b, err := json.Marshal(gozzard.AuditContent{Items: e.Items, Text: e.Text})
		if err != nil {
			return err
		}
		if sha256.Sum256(b) != l.Content {
			return fmt.Errorf("the items or the text of row %d were changed", l.Seq)
		}
	}
	return nil
}

// exportMemory is how many rows a check remembers to know duplicates. The exporter repeats at most the rows since its
// last acknowledgement.
const exportMemory = 100_000

// ExportCheck verifies the lines of an export: from "gozzard audit export", from the file of a server, or from a
// receiver of syslog, which may have put its own words before each row. The zero value is ready to use.
type ExportCheck struct {
	Rows       int
	Duplicates int // rows that came again unchanged, as after a restart
	Lines      int
	First      gozzard.AuditHead // the first row; its Prev says whether rows before it are missing
	Start      bool              // the first row is the first of the audit
	Head       gozzard.AuditHead // the newest row
	Problems   []string          // gaps and changes, at most maxProblems
	Broken     int               // number of gaps and changes

	known map[int64]gozzard.AuditHash
	order []int64
}

const maxProblems = 100

func (c *ExportCheck) problem(format string, args ...any) {
	c.Broken++
	if len(c.Problems) < maxProblems {
		c.Problems = append(c.Problems, fmt.Sprintf("line %d: ", c.Lines)+fmt.Sprintf(format, args...))
	}
}

// Line verifies the next line. Empty lines are skipped.
func (c *ExportCheck) Line(line []byte) {
	c.Lines++
	if line = bytes.TrimSpace(line); len(line) == 0 {
		return
	}

	// Read the row.
	at := bytes.IndexByte(line, '{')
	if at < 0 {
		c.problem("there is no row of the audit in this line")
		return
	}
	var in struct {
		AuditExport
		Prev *gozzard.AuditHash `json:"prev"`
	}
	if err := json.Unmarshal(line[at:], &in); err != nil {
		c.problem("this is not a row of the audit: %v", err)
		return
	}
	l, err := in.Link()
	if err != nil {
		c.problem("%v", err)
		return
	}

	// Check it by itself. A row without Prev must follow the row before it.
	prev := c.Head.Hash
	if in.Prev != nil {
		prev = *in.Prev
	}
	if l.Chain(prev) != l.Hash || l.Legacy && !l.Plain() {
		c.problem("row %d was changed, or rows before it are missing", l.Seq)
		return
	}
	if err := in.complete(&l); err != nil {
		c.problem("%v", err)
		return
	}

	c.place(&l, prev)
}

// place checks where an intact row stands.
func (c *ExportCheck) place(l *gozzard.AuditLink, prev gozzard.AuditHash) {
	if hash, twice := c.known[l.Seq]; twice {
		if hash == l.Hash {
			c.Duplicates++
			return
		}
		c.problem("row %d came before with another hash: the audit was replaced or restored", l.Seq)
		return
	}

	switch {
	case c.Rows == 0:
		c.First, c.Start = gozzard.AuditHead{Seq: l.Seq, Hash: l.Hash}, prev == gozzard.AuditHash{}
	case l.Seq < c.Head.Seq:
		c.problem("row %d comes after row %d", l.Seq, c.Head.Seq)
		return
	case prev != c.Head.Hash:
		c.problem("rows are missing between row %d and row %d", c.Head.Seq, l.Seq)
	}

	c.Rows++
	c.Head = gozzard.AuditHead{Seq: l.Seq, Hash: l.Hash}
	if c.known == nil {
		c.known = map[int64]gozzard.AuditHash{}
	}
	c.known[l.Seq] = l.Hash
	if c.order = append(c.order, l.Seq); len(c.order) > exportMemory {
		delete(c.known, c.order[0])
		c.order = c.order[1:]
	}
}
