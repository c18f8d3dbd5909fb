package client

import (
	"context"
	"net/http"
)

// Restore says whether the server's record was restored from a backup, and how many hosts cannot connect until an
// admin confirms that.
type Restore struct {
	From    Time `json:"from,omitzero"` // when the backup was taken; missing: there is nothing to confirm
	Waiting int  `json:"waiting"`
}

// RestoreConfirmation is the body of POST /api/v1/restore/confirm. It repeats how many hosts wait, as a check that the
// admin has looked at them.
type RestoreConfirmation struct {
	Confirm int `json:"confirm"`
}

// RestoreConfirmed is the answer to a confirmation.
type RestoreConfirmed struct {
	Confirmed int `json:"confirmed"` // hosts that may connect now
}

// Restore reads whether a restore waits to be confirmed.
func (c *Client) Restore(ctx context.Context) (r Restore, err error) {
	err = c.get(ctx, "/api/v1/restore", nil, &r)
	return r, err
}

// ConfirmRestore allows the hosts of a restored record to connect, if exactly so many hosts wait.
func (c *Client) ConfirmRestore(ctx context.Context, waiting int) error {
	return c.write(ctx, http.MethodPost, "/api/v1/restore/confirm", RestoreConfirmation{waiting}, nil)
}
