package client

import (
	"context"
	"net/http"
)

// Grant gives a role on a part of the fleet. An empty list means everything of its kind. If both Businesses and
// Namespaces are given, one of the two must match.
type Grant struct {
	Role       string   `json:"role"` // viewer, operator, admin or enroller
	Businesses []int    `json:"businesses,omitempty"`
	Namespaces []string `json:"namespaces,omitempty"` // patterns with * and ?
	Clouds     []int    `json:"clouds,omitempty"`
	Nets       []string `json:"nets,omitempty"`    // such as 10.1.0.0/16
	Actions    []string `json:"actions,omitempty"` // of an operator, such as start
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
