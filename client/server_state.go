package client

import (
	"context"

	"github.com/gozzard/gozzard"
)

// ServerState is how a server is, as an admin sees it.
type ServerState struct {
	Version     string `json:"version"`
	Started     Time   `json:"started_at"`
	Ready       bool   `json:"ready"`               // it accepts operations
	Detail      string `json:"detail,omitempty"`    // why not, or what is not in order although it does
	Hosts       int    `json:"hosts"`               // that ever reported
	HostsOnline int    `json:"hosts_online"`        // that are connected
	Checked     Time   `json:"checked_at,omitzero"` // when the findings were made
	// what the server found out about its data folder, record, backups and keys; missing: it does not check itself
	Findings []Finding `json:"findings,omitempty"`
}

// Finding is the result of one check that a server made of itself.
type Finding struct {
	Level string `json:"level"` // OK, WARN (it works with a risk) or FAIL
	Check string `json:"check"` // what was checked, such as backup
	Text  string `json:"text"`
}

// AuditVerified says how far the chain of the audit was verified.
type AuditVerified struct {
	Rows     int               `json:"rows"`     // that this request verified
	Verified gozzard.AuditHead `json:"verified"` // the last row that is sound; the next request goes on after it
	Newest   gozzard.AuditHead `json:"newest"`   // the newest row of all
	Done     bool              `json:"done"`     // every row is verified
	Broken   string            `json:"broken,omitempty"`
}

// ServerState reads how the server is.
func (c *Client) ServerState(ctx context.Context) (s ServerState, err error) {
	return s, c.get(ctx, "/api/v1/server", nil, &s)
}
