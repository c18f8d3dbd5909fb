package client

import (
	"context"
	"net/http"

	"github.com/gozzard/gozzard"
)

// Keys are the public parts of the server's keys.
type Keys struct {
	Signing         []SigningKey   `json:"signing"`             // the newest last: it signs
	SigningExternal bool           `json:"signing_external"`    // the signing key is in an external signer
	Authority       *AuthorityMove `json:"authority,omitempty"` // missing: no host is enrolled here
}

// SigningKey is a key that signs commands, or signed them.
type SigningKey struct {
	Epoch uint64 `json:"epoch"`
	ID    string `json:"id"`
	Made  Time   `json:"made"`
	Key   string `json:"key"` // the public key, as hosts keep it
}

// RotatedKey is the answer to a rotation of the signing key.
type RotatedKey struct {
	Epoch    uint64 `json:"epoch"`
	ID       string `json:"id"`
	Replaces string `json:"replaces"` // id of the key before
}

// AuthorityMove says how far the hosts are on their way from one authority to the next. Waiting, Offline and Servers would be
// cut off by the end of the rotation.
type AuthorityMove struct {
	Authority string            `json:"authority"`      // pin of the present authority
	Next      string            `json:"next,omitempty"` // pin of the next one; missing: no rotation is under way
	PEM       string            `json:"pem"`            // certificates of both, for callers of the API
	Moved     int               `json:"moved"`
	Waiting   []gozzard.AgentID `json:"waiting"` // online, not moved yet
	Offline   []gozzard.AgentID `json:"offline"` // not moved

	// Servers are the ids of other servers that do not have the next authority yet.
	Servers []string `json:"servers,omitempty"`
}

// AuthorityFinish is the body of POST /api/v1/keys/authority/finish.
type AuthorityFinish struct {
	Confirm int `json:"confirm"` // how many hosts and servers are cut off
}

// Keys lists the keys of the server.
func (c *Client) Keys(ctx context.Context) (out Keys, err error) {
	err = c.get(ctx, "/api/v1/keys", nil, &out)
	return out, err
}

// RotateSigningKey replaces the signing key of the running server.
func (c *Client) RotateSigningKey(ctx context.Context) (out RotatedKey, err error) {
	err = c.write(ctx, http.MethodPost, "/api/v1/keys/signing", nil, &out)
	return out, err
}

// RotateAuthority makes the next authority.
func (c *Client) RotateAuthority(ctx context.Context) (out AuthorityMove, err error) {
	err = c.write(ctx, http.MethodPost, "/api/v1/keys/authority", nil, &out)
	return out, err
}

// FinishAuthority ends the rotation of the authority. It cuts off exactly so many hosts.
func (c *Client) FinishAuthority(ctx context.Context, confirm int) (out AuthorityMove, err error) {
	err = c.write(ctx, http.MethodPost, "/api/v1/keys/authority/finish", AuthorityFinish{confirm}, &out)
	return out, err
}
