package client

import (
	"context"
	"net/http"
	"net/url"
)

// Grant gives a role on a part of the fleet. An empty list means everything of its kind, except Accounts: without
// accounts no command may run. A grant has Businesses or Namespaces, not both.
type Grant struct {
	Role       string   `json:"role"` // viewer, operator, admin or enroller
	Businesses []int    `json:"businesses,omitempty"`
	Namespaces []string `json:"namespaces,omitempty"` // patterns with * and ?
	Clouds     []int    `json:"clouds,omitempty"`
	Nets       []string `json:"nets,omitempty"`    // such as 10.1.0.0/16
	Actions    []string `json:"actions,omitempty"` // of an operator, such as start

	// Hosts says which hosts the grant reaches: assigned (those of its businesses), listed (those in Clouds and Nets)
	// or any. It may be left out unless the grant has Namespaces and neither Clouds nor Nets.
	Hosts string `json:"hosts,omitempty"`
	// Accounts are the accounts that commands may run as. * stands for every account but root. An operator or admin
	// needs them, except an admin of the whole fleet.
	Accounts []string `json:"accounts,omitempty"`
}

// HeldGrant is a grant with its holder: an app, a user, or a group of the login provider.
type HeldGrant struct {
	App   string `json:"app,omitempty"`
	User  string `json:"user,omitempty"`
	Group string `json:"group,omitempty"` // members have the grant while a login lasts that names the group
	Grant Grant  `json:"grant"`
}

// GrantList is every grant.
type GrantList struct {
	Count  int         `json:"count"`
	Grants []HeldGrant `json:"grants"`
}

// GrantQuestion asks whether an app or a user may do something. With both App and User it asks about the user behind
// that app.
type GrantQuestion struct {
	App       string
	User      string
	Action    string
	Host      string // an address, cloud:address, a host name or an agent id
	Namespace string // "": one that the grant covers
	Account   string // "": one that the grant names
}

// GrantCheck is the answer to a GrantQuestion.
type GrantCheck struct {
	Allowed   bool           `json:"allowed"`
	HostKnown bool           `json:"host_known"` // false: the host is judged by the address in the question alone
	Grants    []CheckedGrant `json:"grants"`
}

// CheckedGrant is what one grant says to a question. For a user behind an app these are the grants that both have.
type CheckedGrant struct {
	Grant  Grant  `json:"grant"`
	Allows bool   `json:"allows"`
	Reason string `json:"reason,omitempty"` // why not
}

// CheckGrants asks whether an app or a user may do something, and because of which grant.
func (c *Client) CheckGrants(ctx context.Context, q GrantQuestion) (answer GrantCheck, err error) {
	values := url.Values{}
	for name, value := range map[string]string{"app": q.App, "user": q.User, "action": q.Action, "host": q.Host,
		"namespace": q.Namespace, "account": q.Account} {
		if value != "" {
			values.Set(name, value)
		}
	}
	return answer, c.get(ctx, "/api/v1/grants/check", values, &answer)
}

// Grants lists every grant.
func (c *Client) Grants(ctx context.Context) (list GrantList, err error) {
	return list, c.get(ctx, "/api/v1/grants", nil, &list)
}

// AddGrant gives a grant to an app, a user or a group.
func (c *Client) AddGrant(ctx context.Context, g HeldGrant) error {
	return c.write(ctx, http.MethodPost, "/api/v1/grants", g, nil)
}

// RemoveGrant removes a grant from an app, a user or a group.
func (c *Client) RemoveGrant(ctx context.Context, g HeldGrant) error {
	return c.write(ctx, http.MethodDelete, "/api/v1/grants", g, nil)
}
