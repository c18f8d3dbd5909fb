package client

import (
	"context"
	"net/http"
)

// TOTPRequest is the body of POST and PUT /api/v1/totp. POST needs a code only of a user that has a second factor, PUT
// needs a code of the new one.
type TOTPRequest struct {
	User     string `json:"user"`
	Password string `json:"password"`
	Code     string `json:"code,omitempty"`
}

// TOTPEnrolment is a new second factor of a user: codes of the time, by RFC 6238. The server shows it only once.
type TOTPEnrolment struct {
	Secret   string   `json:"secret"`         // in base32
	URI      string   `json:"uri"`            // otpauth://, for a QR code
	Recovery []string `json:"recovery_codes"` // each is accepted once in place of a code
}

// Proof is the body of DELETE /api/v1/users/{name}/totp. An admin needs none for another user.
type Proof struct {
	Password string `json:"password,omitempty"`
	Code     string `json:"code,omitempty"`
}

// EnrolTOTP makes a second factor of a user. It counts after ConfirmTOTP. The client needs no credentials for it.
func (c *Client) EnrolTOTP(ctx context.Context, r TOTPRequest) (e TOTPEnrolment, err error) {
	return e, c.write(ctx, http.MethodPost, "/api/v1/totp", r, &e)
}

// ConfirmTOTP makes the second factor count, with a code of it. The client needs no credentials for it.
func (c *Client) ConfirmTOTP(ctx context.Context, r TOTPRequest) error {
	return c.write(ctx, http.MethodPut, "/api/v1/totp", r, nil)
}

// RemoveTOTP removes the second factor of a user and ends the user's sessions and tokens.
func (c *Client) RemoveTOTP(ctx context.Context, name string, p Proof) error {
	return c.write(ctx, http.MethodDelete, userPath(name)+"/totp", p, nil)
}
