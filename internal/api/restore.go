package api

import (
	"net/http"
	"time"

	"github.com/gozzard/gozzard"
)

type restoreBody struct {
	From    *time.Time `json:"from,omitempty"` // when the backup was taken; missing: nothing waits to be confirmed
	Waiting int        `json:"waiting"`
}

// getRestore tells whether the record came out of a backup and waits to be confirmed.
func (a *api) getRestore(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	body := restoreBody{From: a.restoredFrom()}
	if body.From != nil {
		n, err := a.Restore.Waiting(r.Context())
		if err != nil {
			return err
		}
		body.Waiting = n
	}
	return answer(w, http.StatusOK, body)
}

// postRestore lets the hosts of a restored record in. How many there are must be said: who says it has looked.
func (a *api) postRestore(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	var in struct {
		Confirm *int `json:"confirm"`
	}
	if err := readEnrol(w, r, &in); err != nil {
		return err
	}
	if in.Confirm == nil || *in.Confirm < 0 {
		return &gozzard.Error{Kind: gozzard.ErrInvalid,
			Faults: []gozzard.Fault{{Path: "confirm", Text: "is required: how many hosts wait to be let in"}}}
	}

	if a.Restore == nil {
		return gozzard.Errorf(gozzard.ErrConflict, "this server keeps no record that could have been restored")
	}

	n, err := a.Restore.Confirm(r.Context(), caller, *in.Confirm)
	if err != nil {
		return err
	}

	return answer(w, http.StatusOK, map[string]any{"confirmed": n})
}

// restoredFrom is nil when nothing waits to be confirmed.
func (a *api) restoredFrom() *time.Time {
	from := a.Restore.From().UTC()
	if from.IsZero() {
		return nil
	}
	return &from
}
