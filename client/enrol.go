package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/gozzard/gozzard"
)

// EnrolTokenRequest is the body of POST /api/v1/enrol/tokens. What is missing has the server's default: valid for one
// hour, for one host, from any address.
type EnrolTokenRequest struct {
	TTL     string          `json:"ttl,omitempty"`     // how long it is valid, such as 1h30m
	Uses    int             `json:"uses,omitempty"`    // how many hosts can enrol with it
	Cloud   int             `json:"cloud,omitempty"`   // of the hosts
	CIDRs   []string        `json:"cidrs,omitempty"`   // networks from which hosts connect and in which they are
	Approve bool            `json:"approve,omitempty"` // every host waits for an approval
	Agent   gozzard.AgentID `json:"agent,omitempty"`   // the only agent that may use it, to enrol again
}

// EnrolToken is a token with which hosts enrol.
type EnrolToken struct {
	ID        string          `json:"id"`
	Token     string          `json:"token,omitempty"` // the secret text, only in the answer that made it
	State     string          `json:"state"`           // valid, used, over or revoked
	Created   Time            `json:"created"`
	Expires   Time            `json:"expires"`
	Uses      int             `json:"uses"`
	Used      int             `json:"used"`
	Cloud     int             `json:"cloud"`
	CIDRs     []string        `json:"cidrs,omitempty"`
	Approve   bool            `json:"approve"`
	Agent     gozzard.AgentID `json:"agent,omitempty"`
	CreatedBy string          `json:"created_by"`
}

// EnrolTokenList is every token that the caller may make, newest first.
type EnrolTokenList struct {
	Tokens []EnrolToken `json:"tokens"`
}

// RevokedEnrolToken is the answer to the revocation of a token.
type RevokedEnrolToken struct {
	ID    string `json:"id"`
	State string `json:"state"` // revoked
}

// Member is an enrolled agent.
type Member struct {
	Agent    gozzard.AgentID `json:"agent"`
	Cloud    int             `json:"cloud"`
	IPs      []string        `json:"ips"`
	Hostname string          `json:"hostname"`
	State    string          `json:"state"` // pending, active, quarantined, restored, revoked or removed
	Reason   string          `json:"reason,omitempty"`
	NotAfter Time            `json:"not_after"` // when its certificate expires
	Enrolled Time            `json:"enrolled"`
	Token    string          `json:"token"` // the id of the token that it used
}

// MemberList is every enrolled agent that the caller may see.
type MemberList struct {
	Agents []Member `json:"agents"`
}

// MemberChange is the body of PUT /api/v1/enrol/agents/{agent}.
type MemberChange struct {
	State string `json:"state"` // active, revoked or removed
}

// MemberAddrsChange is the body of PUT /api/v1/enrol/agents/{agent}/addresses. An agent has 1 to 16 addresses.
type MemberAddrsChange struct {
	Add    []string `json:"add,omitempty"`    // IP addresses that the agent gets
	Remove []string `json:"remove,omitempty"` // IP addresses that the agent loses
}

// CreateEnrolToken makes a token. Only this answer has its text.
func (c *Client) CreateEnrolToken(ctx context.Context, r EnrolTokenRequest) (t EnrolToken, err error) {
	err = c.write(ctx, http.MethodPost, "/api/v1/enrol/tokens", r, &t)
	return t, err
}

// EnrolTokens lists tokens, newest first.
func (c *Client) EnrolTokens(ctx context.Context) ([]EnrolToken, error) {
	var out EnrolTokenList
	err := c.get(ctx, "/api/v1/enrol/tokens", nil, &out)
	return out.Tokens, err
}

// RevokeEnrolToken revokes a token. Hosts that enrolled with it stay members.
func (c *Client) RevokeEnrolToken(ctx context.Context, id string) error {
	return c.write(ctx, http.MethodDelete, "/api/v1/enrol/tokens/"+url.PathEscape(id), nil, nil)
}

// Members lists the enrolled agents, ordered by id.
func (c *Client) Members(ctx context.Context) ([]Member, error) {
	var out MemberList
	err := c.get(ctx, "/api/v1/enrol/agents", nil, &out)
	return out.Agents, err
}

// SetMember makes a member active, revoked or removed.
func (c *Client) SetMember(ctx context.Context, agent gozzard.AgentID, state string) (m Member, err error) {
	err = c.write(ctx, http.MethodPut, "/api/v1/enrol/agents/"+url.PathEscape(string(agent)), MemberChange{state}, &m)
	return m, err
}

// ChangeMemberAddrs adds and removes addresses of a member.
func (c *Client) ChangeMemberAddrs(ctx context.Context, agent gozzard.AgentID, change MemberAddrsChange) (m Member,
	err error) {
	path := "/api/v1/enrol/agents/" + url.PathEscape(string(agent)) + "/addresses"
	err = c.write(ctx, http.MethodPut, path, change, &m)
	return m, err
}
