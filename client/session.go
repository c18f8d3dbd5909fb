package client

import (
	"context"
	"net/http"
)

// Session is a session of the console. A browser has its secret in a cookie.
type Session struct {
	User    string `json:"user"`
	App     string `json:"app,omitempty"` // that the session acts as; missing: the user itself logged in
	ID      string `json:"id"`
	Created Time   `json:"created"`
	Expires Time   `json:"expires"`
	// the session ends when no request came for so long
	IdleSeconds int    `json:"idle_seconds"`
	CSRF        string `json:"csrf"` // is sent with every change, in the header X-Gozzard-CSRF
	Can         Can    `json:"can"`
}

// Can says what the rights of a caller allow on at least one part of the fleet.
type Can struct {
	Admin    bool `json:"admin"`    // everything
	SeeAll   bool `json:"see_all"`  // the whole fleet
	Operate  bool `json:"operate"`  // start, stop or another action
	Define   bool `json:"define"`   // register, update or unregister
	Enrol    bool `json:"enrol"`    // add hosts
	Audit    bool `json:"audit"`    // read the audit
	Users    bool `json:"users"`    // change users, apps and grants
	Approve  bool `json:"approve"`  // approve requests of others
	Topology bool `json:"topology"` // apply documents of a business
}

// SessionWays are the ways to open a session of the console.
type SessionWays struct {
	Password bool `json:"password"`
	Provider bool `json:"provider"` // at /login/oidc?to=console
	Link     bool `json:"link"`     // by a one-time link, because the caller is on the machine of the server
}

// SessionLink is a one-time link to the console.
type SessionLink struct {
	URL string `json:"url"`
	// when the link ends, if it was not used
	Expires Time `json:"expires"`
}

// SessionCode is the body of POST /api/v1/session/enter.
type SessionCode struct {
	Code string `json:"code"` // of a one-time link
}

// ConsoleLink makes a link that opens the console once, in a browser on the machine of the server.
func (c *Client) ConsoleLink(ctx context.Context) (l SessionLink, err error) {
	return l, c.write(ctx, http.MethodPost, "/api/v1/session/link", nil, &l)
}
