package client

import (
	"context"
	"net/http"
)

// Offboarded is what ended for a user, and what remains of the user's work.
type Offboarded struct {
	User     string `json:"user"`
	Sessions int    `json:"ended_sessions"`
	Tokens   int    `json:"ended_tokens"`
	Grants   int    `json:"ended_grants"`

	Apps        []string     `json:"apps"`         // the user was shown a secret of them that is valid
	AppsBefore  []string     `json:"apps_before"`  // it was not recorded which users were shown their secrets
	EnrolTokens []EnrolToken `json:"enrol_tokens"` // that the user made and that hosts can still join with
	Work        []string     `json:"work"`         // tasks and jobs of the user that have not ended, at most 100
	Streams     int          `json:"streams"`      // event streams of the user that were open
}

// OffboardUser ends the sessions, tokens and grants of a user and lists what remains.
func (c *Client) OffboardUser(ctx context.Context, name string) (o Offboarded, err error) {
	return o, c.write(ctx, http.MethodPost, userPath(name)+"/offboard", nil, &o)
}
