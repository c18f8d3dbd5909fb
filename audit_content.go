package gozzard

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
)

// Origin says where a request came from. The listener and the router put it into the context of a request, and the
// record writes it into every audit row that is made with that context.
type Origin struct {
	Door      string // the API; "" for what the server does by itself
	Source    string // the address of the caller
	RequestID string // connects the row with the answer and with lines of the log
}

type originKey struct{}

// WithOrigin adds an origin to a context.
func WithOrigin(ctx context.Context, o Origin) context.Context {
	return context.WithValue(ctx, originKey{}, o)
}

// OriginOf is the origin in a context, the zero value when there is none.
func OriginOf(ctx context.Context) Origin {
	o, _ := ctx.Value(originKey{}).(Origin)
	return o
}

// RequestIDOf is the id of the request in a context, or a new one.
func RequestIDOf(ctx context.Context) string {
	if id := OriginOf(ctx).RequestID; id != "" {
		return id
	}
	return NewRequestID()
}

// AuditContent is what an act was about. The record keeps it as long as the audit.
type AuditContent struct {
	Items []AuditItem `json:"items,omitempty"` // of an operation
	Text  string      `json:"text,omitempty"`  // of any other act, without secrets
}

// AuditItem is one action on one process.
type AuditItem struct {
	Action     string `json:"action"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	Definition string `json:"definition,omitempty"` // SHA-256 of the definition, in hexadecimal
	Account    string `json:"account,omitempty"`    // AgentAccount when the definition names none; "" when there is no definition
	Hosts      int    `json:"hosts"`                // how many attempts it has
}

// AgentAccount stands in the audit for the default account of the host: the definition names none. Rows of earlier versions mean
// the account of the agent, mostly root.
const AgentAccount = "(agent)"

// AuditHost is a host of an audit row.
type AuditHost struct {
	Agent string `json:"agent"`
	Addr  string `json:"addr"`
}

// Is reports whether a host has this agent id or this address, with or without its cloud area.
func (h AuditHost) Is(name string) bool {
	if name == "" {
		return false
	}
	_, ip, _ := strings.Cut(h.Addr, ":")
	return h.Agent == name || h.Addr == name || ip == name
}

// HostLines are the hosts of an operation as the audit keeps them, in the order of its attempts.
func HostLines(attempts []Attempt) []byte {
	lines := make([]byte, 0, 48*len(attempts))
	for i := range attempts {
		lines = appendHost(lines, attempts[i].Agent, attempts[i].Addr)
	}
	return lines
}

func appendHost(lines []byte, agent AgentID, addr HostAddr) []byte {
	lines = append(lines, agent...)
	lines = append(lines, '\t')
	lines = append(lines, addr.String()...)
	return append(lines, '\n')
}

// SetHost makes a host with its addresses the hosts of a row.
func (r *AuditRow) SetHost(agent AgentID, addrs ...HostAddr) {
	var lines []byte
	for _, a := range addrs {
		lines = appendHost(lines, agent, a)
	}
	if len(addrs) == 0 {
		lines = append(append(lines, agent...), "\t\n"...)
	}
	r.SetHosts(lines)
}

// SetHosts gives a row the hosts in lines, which are made by HostLines.
func (r *AuditRow) SetHosts(lines []byte) {
	r.HostsHash = sha256.Sum256(lines)
	r.Texts = append(r.Texts, lines)
}

// SetText gives a row a content: what the act was about, in words and without secrets.
func (r *AuditRow) SetText(text string) error {
	if text == "" {
		return nil
	}
	b, err := json.Marshal(AuditContent{Text: strings.ToValidUTF8(text, "\uFFFD")})
	if err != nil {
		return fmt.Errorf("cannot encode the content of an audit row: %w", err)
	}
	r.Content = sha256.Sum256(b)
	r.Texts = append(r.Texts, b)
	return nil
}

// ParseHostLines reads what HostLines wrote.
func ParseHostLines(lines []byte) (hosts []AuditHost) {
	for line := range bytes.Lines(lines) {
		agent, addr, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), "\t")
		hosts = append(hosts, AuditHost{Agent: agent, Addr: addr})
	}
	return hosts
}
