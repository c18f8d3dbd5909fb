package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/gozzard/gozzard"
)

// EnrolTokenRequest is an enrolment token as somebody wants it. Zero values are the server's defaults: one hour,
// one use, from anywhere.
type EnrolTokenRequest struct {
	TTL     string          `json:"ttl,omitempty"` // such as 1h30m
	Uses    int             `json:"uses,omitempty"`
	Cloud   int             `json:"cloud,omitempty"`
	CIDRs   []string        `json:"cidrs,omitempty"`
	Approve bool            `json:"approve,omitempty"` // hosts wait for approval
	Agent   gozzard.AgentID `json:"agent,omitempty"`   // lets exactly this one in again
}

// EnrolToken is a token that brings hosts into the fleet.
type EnrolToken struct {
	ID        string          `json:"id"`
	Token     string          `json:"token,omitempty"` // only in the answer that made it
	State     string          `json:"state"`           // valid, used, over or revoked
	Created   time.Time       `json:"created"`
	Expires   time.Time       `json:"expires"`
	Uses      int             `json:"uses"`
	Used      int             `json:"used"`
	Cloud     int             `json:"cloud"`
	CIDRs     []string        `json:"cidrs,omitempty"`
	Approve   bool            `json:"approve"`
	Agent     gozzard.AgentID `json:"agent,omitempty"`
	CreatedBy string          `json:"created_by"`
}

// Member is an agent that was enrolled.
type Member struct {
	Agent    gozzard.AgentID `json:"agent"`
	Cloud    int             `json:"cloud"`
	IPs      []string        `json:"ips"`
	Hostname string          `json:"hostname"`
	State    string          `json:"state"` // pending, active, quarantined, restored, revoked or removed
	Reason   string          `json:"reason,omitempty"`
	NotAfter time.Time       `json:"not_after"` // of its certificate
	Enrolled time.Time       `json:"enrolled"`
	Token    string          `json:"token"`
}

// CreateEnrolToken makes a token; its text is only in this answer.
func (c *Client) CreateEnrolToken(ctx context.Context, w EnrolTokenRequest) (t EnrolToken, err error) {
	err = c.write(ctx, http.MethodPost, "/api/v1/enrol/tokens", w, &t)
	return t, err
}

// EnrolTokens lists tokens, newest first.
func (c *Client) EnrolTokens(ctx context.Context) ([]EnrolToken, error) {
	var out struct {
		Tokens []EnrolToken `json:"tokens"`
	}
	err := c.get(ctx, "/api/v1/enrol/tokens", nil, &out)
	return out.Tokens, err
}

// RevokeEnrolToken makes a token worthless. Hosts that it brought in stay.
func (c *Client) RevokeEnrolToken(ctx context.Context, id string) error {
	var out struct{}
	return c.do(ctx, call{method: http.MethodDelete, path: "/api/v1/enrol/tokens/" + url.PathEscape(id)}, &out)
}

// Members lists the agents that were enrolled, by id.
func (c *Client) Members(ctx context.Context) ([]Member, error) {
	var out struct {
		Agents []Member `json:"agents"`
	}
	err := c.get(ctx, "/api/v1/enrol/agents", nil, &out)
	return out.Agents, err
}

// SetMember makes a member active, revoked or removed.
func (c *Client) SetMember(ctx context.Context, agent gozzard.AgentID, state string) (m Member, err error) {
	err = c.write(ctx, http.MethodPut, "/api/v1/enrol/agents/"+url.PathEscape(string(agent)),
		map[string]string{"state": state}, &m)
	return m, err
}

// Restore says whether the server's record came out of a backup, and how many hosts are kept out until that is
// confirmed.
type Restore struct {
	From    *time.Time `json:"from"` // when the backup was taken; nil: there is nothing to confirm
	Waiting int        `json:"waiting"`
}

// Restore asks whether a restore waits to be confirmed.
func (c *Client) Restore(ctx context.Context) (r Restore, err error) {
	err = c.get(ctx, "/api/v1/restore", nil, &r)
	return r, err
}

// ConfirmRestore lets the hosts of a restored record in, if as many wait as are said.
func (c *Client) ConfirmRestore(ctx context.Context, waiting int) error {
	var out struct{}
	return c.write(ctx, http.MethodPost, "/api/v1/restore/confirm", map[string]int{"confirm": waiting}, &out)
}

// write sends a value that is not a task. It is not repeated: what came of it can be read.
func (c *Client) write(ctx context.Context, method, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("cannot encode the request: %w", err)
	}
	return c.do(ctx, call{method: method, path: path, body: body}, out)
}
