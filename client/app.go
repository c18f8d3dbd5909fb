package client

import (
	"context"
	"net/http"
	"net/url"
)

// App is a program with credentials.
type App struct {
	Code                    string  `json:"code"`
	Secrets                 int     `json:"secrets"`       // number of valid secrets
	AssertsUsers            bool    `json:"asserts_users"` // it may name users that have not logged in
	MissingActionMeansStart bool    `json:"missing_op_type_means_start"`
	Signs                   bool    `json:"signs"` // it may sign requests instead of sending its secret
	Grants                  []Grant `json:"grants"`
	// people that the server does not know have the rights of the app; missing: not decided yet, and as true until then
	UnknownUsers *bool `json:"unknown_users,omitempty"`
	Disabled     bool  `json:"disabled,omitempty"`
}

// NewApp is the body of POST /api/v1/apps.
type NewApp struct {
	Code                    string `json:"code"`
	AssertsUsers            bool   `json:"asserts_users,omitempty"` // it may name users that have not logged in
	MissingActionMeansStart bool   `json:"missing_op_type_means_start,omitempty"`
	// it may sign requests instead of sending its secret; the server then stores the secret itself
	Signs        bool    `json:"signs,omitempty"`
	Grants       []Grant `json:"grants,omitempty"`
	UnknownUsers bool    `json:"unknown_users,omitempty"` // people that the server does not know have the rights of the app
}

// AppChange is the body of PUT /api/v1/apps/{code}. What is missing stays as it is.
type AppChange struct {
	AssertsUsers            *bool `json:"asserts_users,omitempty"`
	MissingActionMeansStart *bool `json:"missing_op_type_means_start,omitempty"`
	UnknownUsers            *bool `json:"unknown_users,omitempty"` // people that are not known have the rights of the app
	Disabled                *bool `json:"disabled,omitempty"`
}

// AppSecret is a new secret of an app. The server shows it only once.
type AppSecret struct {
	Code   string `json:"code"`
	Secret string `json:"secret"`
}

// AppList is every app.
type AppList struct {
	Count int   `json:"count"`
	Apps  []App `json:"apps"`
}

// Apps lists every app.
func (c *Client) Apps(ctx context.Context) (list AppList, err error) {
	return list, c.get(ctx, "/api/v1/apps", nil, &list)
}

// CreateApp makes an app.
func (c *Client) CreateApp(ctx context.Context, app NewApp) (s AppSecret, err error) {
	return s, c.write(ctx, http.MethodPost, "/api/v1/apps", app, &s)
}

// SetAppFlags changes whether an app may name users, and what a missing op_type means for it. nil leaves a flag as
// it is.
func (c *Client) SetAppFlags(ctx context.Context, code string, assertsUsers, missingActionMeansStart *bool) error {
	return c.ChangeApp(ctx, code, AppChange{AssertsUsers: assertsUsers, MissingActionMeansStart: missingActionMeansStart})
}

// ChangeApp changes the flags of an app.
func (c *Client) ChangeApp(ctx context.Context, code string, change AppChange) error {
	return c.write(ctx, http.MethodPut, appPath(code), change, nil)
}

// AddAppSecret makes a new secret for an app. The older ones stay valid until RetireAppSecrets.
func (c *Client) AddAppSecret(ctx context.Context, code string) (s AppSecret, err error) {
	return s, c.write(ctx, http.MethodPost, appPath(code)+"/secrets", nil, &s)
}

// RetireAppSecrets revokes every secret of an app but its newest.
func (c *Client) RetireAppSecrets(ctx context.Context, code string) error {
	return c.write(ctx, http.MethodDelete, appPath(code)+"/secrets", nil, nil)
}

// DeleteApp deletes an app.
func (c *Client) DeleteApp(ctx context.Context, code string) error {
	return c.write(ctx, http.MethodDelete, appPath(code), nil, nil)
}

func appPath(code string) string { return "/api/v1/apps/" + url.PathEscape(code) }
