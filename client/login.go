package client

import (
	"context"
	"net/http"
	"net/url"
)

// CallerInfo is the caller of a request as the server knows it.
type CallerInfo struct {
	App      string  `json:"app"`
	User     string  `json:"user"`
	Asserted bool    `json:"asserted"` // the app named the user; the user did not log in
	Grants   []Grant `json:"grants"`
}

// LoginRequest is the body of POST /api/v1/login.
type LoginRequest struct {
	User     string `json:"user"`
	Password string `json:"password"`
	Code     string `json:"code,omitempty"` // of the second factor, or a recovery code
}

// UserToken is a login of a user.
type UserToken struct {
	ID      string `json:"id"`
	User    string `json:"user"`
	Note    string `json:"note,omitempty"`
	Session bool   `json:"session"` // made by a login, not by the user
	Created Time   `json:"created"`
	Expires Time   `json:"expires,omitzero"`
	Token   string `json:"token,omitempty"` // the secret text, only in the answer that made it
	// alone, app, password, provider, console, console_provider or console_link; missing: made before there were kinds, and
	// accepted alone and through apps
	Kind   string   `json:"kind,omitempty"`
	App    string   `json:"app,omitempty"`    // that alone can use a token of the kind app
	Groups []string `json:"groups,omitempty"` // that the login provider named
}

// UserTokenList is every token of a user.
type UserTokenList struct {
	Count  int         `json:"count"`
	Tokens []UserToken `json:"tokens"`
}

// NewUserToken is the body of POST /api/v1/users/{name}/tokens.
type NewUserToken struct {
	Note string `json:"note,omitempty"`
	Days *int   `json:"days,omitempty"` // how long it is valid; 90 when missing, or what the server allows
	App  string `json:"app,omitempty"`  // that alone can use it, as bk_token; missing: the token is sent alone
	// A user proves itself again: by the password and a code of the second factor, if it has one. A user of the login
	// provider logs in again instead. An app needs neither.
	Password string `json:"password,omitempty"`
	Code     string `json:"code,omitempty"`
}

// WhoAmI answers how the server knows the caller.
func (c *Client) WhoAmI(ctx context.Context) (info CallerInfo, err error) {
	return info, c.get(ctx, "/api/v1/whoami", nil, &info)
}

// Login opens a session for a user. The client needs no credentials for it.
func (c *Client) Login(ctx context.Context, user, password string) (t UserToken, err error) {
	return c.LoginWith(ctx, LoginRequest{User: user, Password: password})
}

// LoginWith is Login for a user with a second factor.
func (c *Client) LoginWith(ctx context.Context, login LoginRequest) (t UserToken, err error) {
	return t, c.write(ctx, http.MethodPost, "/api/v1/login", login, &t)
}

// Logout revokes the token of this client.
func (c *Client) Logout(ctx context.Context) error {
	return c.write(ctx, http.MethodPost, "/api/v1/logout", nil, nil)
}

// UserTokens lists the tokens of a user.
func (c *Client) UserTokens(ctx context.Context, name string) (list UserTokenList, err error) {
	return list, c.get(ctx, userPath(name)+"/tokens", nil, &list)
}

// CreateUserToken makes a token of a user.
func (c *Client) CreateUserToken(ctx context.Context, name, note string, days int) (t UserToken, err error) {
	return c.AddUserToken(ctx, name, NewUserToken{Note: note, Days: &days})
}

// AddUserToken makes a token of a user.
func (c *Client) AddUserToken(ctx context.Context, name string, token NewUserToken) (t UserToken, err error) {
	return t, c.write(ctx, http.MethodPost, userPath(name)+"/tokens", token, &t)
}

// RevokeUserToken revokes a token of a user.
func (c *Client) RevokeUserToken(ctx context.Context, name, id string) error {
	return c.write(ctx, http.MethodDelete, userPath(name)+"/tokens/"+url.PathEscape(id), nil, nil)
}
