package client

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
)

// AuditRow is a row of the audit: which caller did what, and where. It has everything that its hash covers, so a
// reader can check the chain.
type AuditRow struct {
	Seq         int64             `json:"seq"`
	At          Time              `json:"at"` // null when not known
	App         string            `json:"app"`
	User        string            `json:"user"`
	Asserted    bool              `json:"asserted"` // the app named the user; the user did not log in
	Act         string            `json:"act"`
	TaskID      string            `json:"task_id"`
	RequestHash string            `json:"request_hash"`
	Targets     int               `json:"targets"`
	HostsHash   string            `json:"hosts_hash"`
	Rule        int               `json:"rule,omitempty"` // by which it is hashed; rows of earlier versions have none, which means 1
	Door        string            `json:"door,omitempty"`
	Source      string            `json:"source,omitempty"` // address of the caller
	RequestID   string            `json:"request_id,omitempty"`
	Accounts    []string          `json:"accounts,omitempty"` // OS accounts of the definitions
	Outcome     string            `json:"outcome,omitempty"`
	Ref         int64             `json:"ref,omitempty"`     // the row that this one adds something to
	Count       int               `json:"count,omitempty"`   // of equal events; missing: one
	Content     string            `json:"content,omitempty"` // SHA-256 of what it was about
	Hash        gozzard.AuditHash `json:"hash"`

	// The hash does not cover these: they come from the row that refers to this one.
	Result    string `json:"result,omitempty"` // counts of verdicts by code
	ResultRow int64  `json:"result_row,omitempty"`
}

// AuditPage is one page of the audit in the order of its chain. Head is the newest row of all, as it was before the
// rows were read.
type AuditPage struct {
	Rows []AuditRow        `json:"rows"`
	Head gozzard.AuditHead `json:"head"`
	Next int64             `json:"next,omitempty"` // the value of after, or of before, for the next page; 0 at the end
}

// Audit lists at most limit rows that follow the row with the number after.
func (c *Client) Audit(ctx context.Context, after int64, limit int) (page AuditPage, err error) {
	q := url.Values{"after": {strconv.FormatInt(after, 10)}, "limit": {strconv.Itoa(limit)}}
	return page, c.get(ctx, "/api/v1/audit", q, &page)
}

// NewAuditRow makes a row of a link of the chain.
func NewAuditRow(l *gozzard.AuditLink) AuditRow {
	row := AuditRow{
		Seq: l.Seq, At: At(l.At), App: l.Caller.App, User: l.Caller.User, Asserted: l.Caller.Asserted, Act: l.Act,
		TaskID:      l.TaskID,
		RequestHash: hex.EncodeToString(l.RequestHash[:]), Targets: l.Targets,
		HostsHash: hex.EncodeToString(l.HostsHash[:]), Hash: l.Hash,
		Door: l.Door, Source: l.Source, RequestID: l.RequestID, Outcome: l.Outcome, Ref: l.Ref, Count: l.Count,
	}
	if !l.Legacy { // rows of earlier versions stay as those versions showed them
		row.Rule = newRule
	}
	if l.Accounts != "" {
		row.Accounts = strings.Split(l.Accounts, ",")
	}
	if l.Content != [32]byte{} {
		row.Content = hex.EncodeToString(l.Content[:])
	}
	return row
}

// newRule is the rule of the chain that covers Door and the fields after it. Rule 1 does not; a row without a rule has
// rule 1.
const newRule = 2

// noHash stands for a content that is missing.
const noHash = "0000000000000000000000000000000000000000000000000000000000000000"

// Link is the inverse of NewAuditRow, for gozzard.AuditCheck.
func (r *AuditRow) Link() (l gozzard.AuditLink, err error) {
	l.Seq, l.At, l.Act, l.TaskID, l.Targets, l.Hash = r.Seq, r.At.Time, r.Act, r.TaskID, r.Targets, r.Hash
	l.Caller = gozzard.Caller{App: r.App, User: r.User, Asserted: r.Asserted}

	l.Origin = gozzard.Origin{Door: r.Door, Source: r.Source, RequestID: r.RequestID}
	l.Accounts, l.Outcome, l.Ref, l.Count = strings.Join(r.Accounts, ","), r.Outcome, r.Ref, r.Count
	if r.Rule > newRule {
		return l, fmt.Errorf("audit row %d is hashed by rule %d, which this program does not know: use a newer version",
			r.Seq, r.Rule)
	}
	l.Legacy = r.Rule < newRule

	for to, text := range map[*[32]byte]string{&l.RequestHash: r.RequestHash, &l.HostsHash: r.HostsHash,
		&l.Content: cmp.Or(r.Content, noHash)} {
		b, err := hex.DecodeString(text)
		if err != nil || len(b) != len(to) {
			return l, fmt.Errorf("audit row %d: %.70q is not a hash", r.Seq, text)
		}
		copy(to[:], b)
	}

	return l, nil
}
