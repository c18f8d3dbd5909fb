package client

import (
	"context"
	"net/http"
	"net/url"
)

// RelayList is every relay of an installation.
type RelayList struct {
	Relays []Relay `json:"relays"`
}

// Relay connects the hosts of a closed network to the servers.
type Relay struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Areas     []int  `json:"areas"` // cloud areas of the hosts behind it
	State     string `json:"state"` // invited: it has a token and did not join yet; active
	Created   Time   `json:"created_at"`
	CreatedBy string `json:"created_by"`     // app/user
	Expires   Time   `json:"expires_at"`     // its certificate, or its token until it joined
	Agents    string `json:"agents"`         // where agents reach it, as host:port; without a host: the one that they joined with
	API       string `json:"api"`            // where hosts join through it, in the same form
	Server    string `json:"server"`         // id of the server that it was connected to last
	Hosts     int    `json:"hosts"`          // whose agents were connected through it then
	Seen      Time   `json:"seen_at"`        // when it was last connected; null: never
	Silent    int    `json:"silent_seconds"` // since seen_at
}

// RelayTokenRequest asks for a token for one relay.
type RelayTokenRequest struct {
	Name  string `json:"name"`
	Areas []int  `json:"areas"`         // cloud areas of the hosts behind it, above 0
	TTL   string `json:"ttl,omitempty"` // how long the token is valid, such as 10m, at most 168h; 1h when missing
}

// RelayToken lets one relay join.
type RelayToken struct {
	ID      string `json:"id"`    // also that of the relay
	Token   string `json:"token"` // the secret text
	Expires Time   `json:"expires"`
}

// RemovedRelay is the answer to the removal of a relay.
type RemovedRelay struct {
	ID    string `json:"id"`
	State string `json:"state"` // removed
}

// Relays lists the relays.
func (c *Client) Relays(ctx context.Context) (list RelayList, err error) {
	return list, c.get(ctx, "/api/v1/relays", nil, &list)
}

// CreateRelayToken makes a token for one relay. Only this answer has its text.
func (c *Client) CreateRelayToken(ctx context.Context, r RelayTokenRequest) (t RelayToken, err error) {
	err = c.write(ctx, http.MethodPost, "/api/v1/relays/token", r, &t)
	return t, err
}

// RemoveRelay removes a relay, or the token of one that did not join.
func (c *Client) RemoveRelay(ctx context.Context, id string) error {
	return c.write(ctx, http.MethodDelete, "/api/v1/relays/"+url.PathEscape(id), nil, nil)
}
