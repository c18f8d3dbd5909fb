package client

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/gozzard/gozzard"
)

// AuditDetail is a row of the audit with what it names by digests. Hosts and Items are pages of their lists.
type AuditDetail struct {
	Row         AuditRow                   `json:"row"`
	HostsTotal  int                        `json:"hosts_total"`
	Hosts       []HostRef                  `json:"hosts"`
	ItemsTotal  int                        `json:"items_total"`
	Items       []gozzard.AuditItem        `json:"items"`
	Definitions map[string]json.RawMessage `json:"definitions"` // of the items, by digest
	Text        string                     `json:"text"`        // what an act other than an operation was about
	Missing     string                     `json:"missing"`     // why there is no list of hosts; "" when there is one
}

// FindAudit lists at most limit rows that a filter chooses. Page.Next says where to go on.
func (c *Client) FindAudit(ctx context.Context, f gozzard.AuditFilter, limit int) (page AuditPage, err error) {
	q := url.Values{"limit": {strconv.Itoa(limit)}}
	for name, text := range map[string]string{"host": f.Host, "account": f.Account, "app": f.App, "user": f.User,
		"action": f.Action, "since": timeText(f.Since), "until": timeText(f.Until)} {
		if text != "" {
			q.Set(name, text)
		}
	}
	if f.Newest {
		q.Set("newest", "true")
	}
	for name, n := range map[string]int64{"after": f.After, "before": f.Before} {
		if n > 0 {
			q.Set(name, strconv.FormatInt(n, 10))
		}
	}
	return page, c.get(ctx, "/api/v1/audit", q, &page)
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// AuditDetail reads a row with a page of its hosts and items.
func (c *Client) AuditDetail(ctx context.Context, row int64, start, limit int) (d AuditDetail, err error) {
	q := url.Values{"start": {strconv.Itoa(start)}, "limit": {strconv.Itoa(limit)}}
	return d, c.get(ctx, "/api/v1/audit/"+strconv.FormatInt(row, 10), q, &d)
}

// NewAuditFound makes a row of what a filter found.
func NewAuditFound(f *gozzard.AuditFound) AuditRow {
	r := NewAuditRow(&f.AuditLink)
	r.Result, r.ResultRow = f.Result, f.ResultRow
	return r
}

// NewAuditDetail reads what a row names by digests. text reads a text by its digest and returns an error of the kind
// ErrNotFound for one that the record does not have.
func NewAuditDetail(row *gozzard.AuditFound, text func([32]byte) ([]byte, error), start, limit int) (d AuditDetail,
	err error) {
	d = AuditDetail{Row: NewAuditFound(row), Hosts: []HostRef{}, Items: []gozzard.AuditItem{},
		Definitions: map[string]json.RawMessage{}}

	// The hosts.
	b, found, err := optional(text, row.HostsHash)
	if err != nil {
		return d, err
	}
	hosts := gozzard.ParseHostLines(b)
	d.HostsTotal = len(hosts)
	for _, h := range cut(hosts, start, limit) {
		d.Hosts = append(d.Hosts, auditHost(h))
	}
	if !found && row.HostsHash != [32]byte{} {
		d.Missing = "this row was written by a version that kept only the digest of the hosts"
	}

	// What it was about.
	if b, found, err = optional(text, row.Content); err != nil || !found {
		return d, err
	}
	var content gozzard.AuditContent
	if err := json.Unmarshal(b, &content); err != nil {
		return d, fmt.Errorf("the content of audit row %d is not readable: %w", row.Seq, err)
	}
	d.Text, d.ItemsTotal = content.Text, len(content.Items)
	d.Items = append(d.Items, cut(content.Items, start, limit)...)

	// The definitions.
	for _, it := range d.Items {
		digest, ok := ParseDigest(it.Definition)
		if !ok {
			continue
		}
		if b, found, err = optional(text, digest); err != nil {
			return d, err
		}
		if found && json.Valid(b) {
			d.Definitions[it.Definition] = b
		}
	}
	return d, nil
}

// auditHost is a host of a row in the form of answers.
func auditHost(h gozzard.AuditHost) HostRef {
	ref := HostRef{Agent: gozzard.AgentID(h.Agent)}
	if addr, err := gozzard.ParseHostAddr(h.Addr); err == nil {
		ref.Cloud, ref.IP = addr.Cloud, addr.IP.String()
	}
	return ref
}

// optional reads a text that may be missing.
func optional(text func([32]byte) ([]byte, error), digest [32]byte) (b []byte, found bool, err error) {
	if digest == [32]byte{} {
		return nil, false, nil
	}
	b, err = text(digest)
	if err != nil && gozzard.KindOf(err) == gozzard.ErrNotFound {
		return nil, false, nil
	}
	return b, err == nil, err
}

// cut is the page of a list.
func cut[T any](list []T, start, limit int) []T {
	start = min(max(start, 0), len(list))
	return list[start:min(len(list), start+limit)]
}

// ParseDigest reads a SHA-256 in hexadecimal.
func ParseDigest(s string) (digest [32]byte, ok bool) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(digest) {
		return digest, false
	}
	return [32]byte(b), true
}
