package client

import (
	"context"
	"net/http"
)

// ServerTokenRequest asks for a token for one more server.
type ServerTokenRequest struct {
	TTL string `json:"ttl,omitempty"` // how long it is valid, such as 10m, at most 1h; 1h when missing
}

// ServerToken lets one more server get the keys of the installation.
type ServerToken struct {
	ID      string `json:"id"`
	Token   string `json:"token"` // the secret text
	Expires Time   `json:"expires"`
}

// CreateServerToken makes a token for one more server. Only this answer has its text.
func (c *Client) CreateServerToken(ctx context.Context, r ServerTokenRequest) (t ServerToken, err error) {
	err = c.write(ctx, http.MethodPost, "/api/v1/servers/token", r, &t)
	return t, err
}
