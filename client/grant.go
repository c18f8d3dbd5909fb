package client

import (
	"context"
	"net/http"
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

// HeldGrant is a grant with its holder: an app or a user.
type HeldGrant struct {
	App   string `json:"app,omitempty"`
	User  string `json:"user,omitempty"`
	Grant Grant  `json:"grant"`
}

// GrantList is every grant.
type GrantList struct {
	Count  int         `json:"count"`
	Grants []HeldGrant `json:"grants"`
}

// Grants lists every grant.
func (c *Client) Grants(ctx context.Context) (list GrantList, err error) {
	return list, c.get(ctx, "/api/v1/grants", nil, &list)
}

// AddGrant gives a grant to an app or a user.
func (c *Client) AddGrant(ctx context.Context, g HeldGrant) error {
	return c.write(ctx, http.MethodPost, "/api/v1/grants", g, nil)
}

// RemoveGrant removes a grant from an app or a user.
func (c *Client) RemoveGrant(ctx context.Context, g HeldGrant) error {
	return c.write(ctx, http.MethodDelete, "/api/v1/grants", g, nil)
}
