package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Grant gives a role on a part of the fleet. An empty list stands for everything of its kind; of Businesses and
// Namespaces one must fit.
type Grant struct {
	Role       string   `json:"role"` // viewer, operator, admin or enroller
	Businesses []int    `json:"businesses,omitempty"`
	Namespaces []string `json:"namespaces,omitempty"` // patterns with * and ?
	Clouds     []int    `json:"clouds,omitempty"`
	Nets       []string `json:"nets,omitempty"`    // such as 10.1.0.0/16
	Actions    []string `json:"actions,omitempty"` // of an operator, such as start
}

// Who is a caller as the server knows him.
type Who struct {
	App      string  `json:"app"`
	User     string  `json:"user"`
	Asserted bool    `json:"asserted"` // User is only the app's word
	Grants   []Grant `json:"grants"`
}

// App is a program that calls.
type App struct {
	Code                    string  `json:"code"`
	Secrets                 int     `json:"secrets"` // how many are valid
	AssertsUsers            bool    `json:"asserts_users"`
	MissingActionMeansStart bool    `json:"missing_op_type_means_start"`
	Signs                   bool    `json:"signs"`
	Grants                  []Grant `json:"grants"`
}

// NewApp is an app to make.
type NewApp struct {
	Code                    string `json:"code"`
	AssertsUsers            bool   `json:"asserts_users,omitempty"` // it may name users without their login
	MissingActionMeansStart bool   `json:"missing_op_type_means_start,omitempty"`
	// it may prove itself by bk_signature; the server then keeps the secret itself
	Signs  bool    `json:"signs,omitempty"`
	Grants []Grant `json:"grants,omitempty"`
}

// AppSecret is a secret, told once.
type AppSecret struct {
	Code   string `json:"code"`
	Secret string `json:"secret"`
}

// AppList is all apps.
type AppList struct {
	Count int   `json:"count"`
	Apps  []App `json:"apps"`
}

// User is a person.
type User struct {
	Name     string  `json:"name"`
	Password bool    `json:"password"` // there is one
	Subject  string  `json:"subject,omitempty"`
	Disabled bool    `json:"disabled"`
	Grants   []Grant `json:"grants"`
}

// UserPage is a part of all users.
type UserPage struct {
	Count int    `json:"count"`
	Users []User `json:"users"`
}

// UserToken is a login of a person.
type UserToken struct {
	ID      string    `json:"id"`
	User    string    `json:"user"`
	Note    string    `json:"note,omitempty"`
	Session bool      `json:"session"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"`
	Token   string    `json:"token,omitempty"` // told once, when it is made
}

// UserTokenList is all tokens of a person.
type UserTokenList struct {
	Count  int         `json:"count"`
	Tokens []UserToken `json:"tokens"`
}

// HeldGrant is a grant of an app or a user.
type HeldGrant struct {
	App   string `json:"app,omitempty"`
	User  string `json:"user,omitempty"`
	Grant Grant  `json:"grant"`
}

// GrantList is all grants.
type GrantList struct {
	Count  int         `json:"count"`
	Grants []HeldGrant `json:"grants"`
}

// account sends a change to accounts. It is not repeated: of a secret without an answer nobody would know.
func (c *Client) account(ctx context.Context, method, path string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return fmt.Errorf("cannot encode the request: %w", err)
		}
	}
	if out == nil {
		out = &struct{}{}
	}
	return c.do(ctx, call{method: method, path: path, body: body}, out)
}

// Who tells who the caller is to the server.
func (c *Client) Who(ctx context.Context) (who Who, err error) {
	return who, c.get(ctx, "/api/v1/whoami", nil, &who)
}

// Login opens a session for a person. The client needs no credentials for it.
func (c *Client) Login(ctx context.Context, user, password string) (t UserToken, err error) {
	return t, c.account(ctx, http.MethodPost, "/api/v1/login", map[string]string{"user": user, "password": password},
		&t)
}

// Logout ends the token that the client has.
func (c *Client) Logout(ctx context.Context) error {
	return c.account(ctx, http.MethodPost, "/api/v1/logout", nil, nil)
}

// Apps lists the apps.
func (c *Client) Apps(ctx context.Context) (list AppList, err error) {
	return list, c.get(ctx, "/api/v1/apps", nil, &list)
}

// CreateApp makes an app.
func (c *Client) CreateApp(ctx context.Context, app NewApp) (s AppSecret, err error) {
	return s, c.account(ctx, http.MethodPost, "/api/v1/apps", app, &s)
}

// SetAppFlags changes whether an app may name users, and what a missing op_type means to it; nil leaves one as it is.
func (c *Client) SetAppFlags(ctx context.Context, code string, assertsUsers, missingActionMeansStart *bool) error {
	in := struct {
		Asserts *bool `json:"asserts_users,omitempty"`
		Missing *bool `json:"missing_op_type_means_start,omitempty"`
	}{assertsUsers, missingActionMeansStart}
	return c.account(ctx, http.MethodPut, "/api/v1/apps/"+url.PathEscape(code), in, nil)
}

// AddAppSecret gives an app its next secret. The one before stays valid until RetireAppSecrets.
func (c *Client) AddAppSecret(ctx context.Context, code string) (s AppSecret, err error) {
	return s, c.account(ctx, http.MethodPost, "/api/v1/apps/"+url.PathEscape(code)+"/secrets", nil, &s)
}

// RetireAppSecrets ends every secret of an app but its newest.
func (c *Client) RetireAppSecrets(ctx context.Context, code string) error {
	return c.account(ctx, http.MethodDelete, "/api/v1/apps/"+url.PathEscape(code)+"/secrets", nil, nil)
}

// DeleteApp makes an app unknown.
func (c *Client) DeleteApp(ctx context.Context, code string) error {
	return c.account(ctx, http.MethodDelete, "/api/v1/apps/"+url.PathEscape(code), nil, nil)
}

// Users lists a page of at most MaxPage people.
func (c *Client) Users(ctx context.Context, start, limit int) (p UserPage, err error) {
	return p, c.get(ctx, "/api/v1/users", page(start, limit), &p)
}

// CreateUser makes a person known; without a password he comes by the login provider or with a token.
func (c *Client) CreateUser(ctx context.Context, name, password string, grants []Grant) error {
	in := struct {
		Name     string  `json:"name"`
		Password string  `json:"password,omitempty"`
		Grants   []Grant `json:"grants,omitempty"`
	}{name, password, grants}
	return c.account(ctx, http.MethodPost, "/api/v1/users", in, nil)
}

// DisableUser shuts a person out, or lets him in again.
func (c *Client) DisableUser(ctx context.Context, name string, disabled bool) error {
	return c.account(ctx, http.MethodPut, userPath(name), map[string]bool{"disabled": disabled}, nil)
}

// ForgetSubject lets the next login at the provider decide who the person is there.
func (c *Client) ForgetSubject(ctx context.Context, name string) error {
	return c.account(ctx, http.MethodPut, userPath(name), map[string]bool{"forget_subject": true}, nil)
}

// SetPassword sets a person's password and ends his sessions. Who is no admin gives the old one.
func (c *Client) SetPassword(ctx context.Context, name, old, password string) error {
	in := map[string]string{"password": password}
	if old != "" {
		in["old"] = old
	}
	return c.account(ctx, http.MethodPut, userPath(name)+"/password", in, nil)
}

// DeleteUser makes a person unknown.
func (c *Client) DeleteUser(ctx context.Context, name string) error {
	return c.account(ctx, http.MethodDelete, userPath(name), nil, nil)
}

// UserTokens lists the tokens of a person.
func (c *Client) UserTokens(ctx context.Context, name string) (list UserTokenList, err error) {
	return list, c.get(ctx, userPath(name)+"/tokens", nil, &list)
}

// CreateUserToken makes a token of a person.
func (c *Client) CreateUserToken(ctx context.Context, name, note string, days int) (t UserToken, err error) {
	in := map[string]any{"note": note, "days": days}
	return t, c.account(ctx, http.MethodPost, userPath(name)+"/tokens", in, &t)
}

// RevokeUserToken ends a token of a person.
func (c *Client) RevokeUserToken(ctx context.Context, name, id string) error {
	return c.account(ctx, http.MethodDelete, userPath(name)+"/tokens/"+url.PathEscape(id), nil, nil)
}

func userPath(name string) string { return "/api/v1/users/" + url.PathEscape(name) }

// Grants lists all grants.
func (c *Client) Grants(ctx context.Context) (list GrantList, err error) {
	return list, c.get(ctx, "/api/v1/grants", nil, &list)
}

// AddGrant gives a grant to an app or a user.
func (c *Client) AddGrant(ctx context.Context, g HeldGrant) error {
	return c.account(ctx, http.MethodPost, "/api/v1/grants", g, nil)
}

// RemoveGrant takes a grant back.
func (c *Client) RemoveGrant(ctx context.Context, g HeldGrant) error {
	return c.account(ctx, http.MethodDelete, "/api/v1/grants", g, nil)
}
