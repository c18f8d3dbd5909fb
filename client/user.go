package client

import (
	"context"
	"net/http"
	"net/url"
)

// User is a person.
type User struct {
	Name     string  `json:"name"`
	Password bool    `json:"password"`          // the user has a password
	Subject  string  `json:"subject,omitempty"` // the user's id at the login provider
	Disabled bool    `json:"disabled"`
	Grants   []Grant `json:"grants"`
	TOTP     bool    `json:"totp,omitempty"` // logins by password need a code
}

// UserPage is one page of the users.
type UserPage struct {
	Count int    `json:"count"` // all users, not only those on this page
	Users []User `json:"users"`
}

// NewUser is the body of POST /api/v1/users. A user without a password logs in at the login provider or has a token.
type NewUser struct {
	Name     string  `json:"name"`
	Password string  `json:"password,omitempty"`
	Grants   []Grant `json:"grants,omitempty"`
	// the name may be that of a deleted user
	ReuseName bool `json:"reuse_name,omitempty"`
}

// UserChange is the body of PUT /api/v1/users/{name}. It has exactly one of the two fields.
type UserChange struct {
	Disabled      *bool `json:"disabled,omitempty"`
	ForgetSubject bool  `json:"forget_subject,omitempty"` // the next login at the provider sets the subject again
}

// PasswordChange is the body of PUT /api/v1/users/{name}/password.
type PasswordChange struct {
	Old      string `json:"old,omitempty"` // the present password; an admin does not need it
	Password string `json:"password"`
	Code     string `json:"code,omitempty"` // of the second factor, with the present password
}

// Users lists a page of at most MaxPage users.
func (c *Client) Users(ctx context.Context, start, limit int) (p UserPage, err error) {
	return p, c.get(ctx, "/api/v1/users", page(start, limit), &p)
}

// CreateUser makes a user. The password may be empty.
func (c *Client) CreateUser(ctx context.Context, name, password string, grants []Grant) error {
	return c.AddUser(ctx, NewUser{Name: name, Password: password, Grants: grants})
}

// AddUser makes a user.
func (c *Client) AddUser(ctx context.Context, u NewUser) error {
	return c.write(ctx, http.MethodPost, "/api/v1/users", u, nil)
}

// DisableUser disables a user, or enables the user again.
func (c *Client) DisableUser(ctx context.Context, name string, disabled bool) error {
	return c.write(ctx, http.MethodPut, userPath(name), UserChange{Disabled: &disabled}, nil)
}

// ForgetSubject removes the user's id at the login provider. The next login there sets it again.
func (c *Client) ForgetSubject(ctx context.Context, name string) error {
	return c.write(ctx, http.MethodPut, userPath(name), UserChange{ForgetSubject: true}, nil)
}

// SetPassword sets a user's password and ends the user's sessions and tokens. Callers that are not admins must give the old
// password.
func (c *Client) SetPassword(ctx context.Context, name, old, password string) error {
	return c.ChangePassword(ctx, name, PasswordChange{Old: old, Password: password})
}

// ChangePassword is SetPassword for a user with a second factor.
func (c *Client) ChangePassword(ctx context.Context, name string, change PasswordChange) error {
	return c.write(ctx, http.MethodPut, userPath(name)+"/password", change, nil)
}

// DeleteUser deletes a user.
func (c *Client) DeleteUser(ctx context.Context, name string) error {
	return c.write(ctx, http.MethodDelete, userPath(name), nil, nil)
}

func userPath(name string) string { return "/api/v1/users/" + url.PathEscape(name) }
