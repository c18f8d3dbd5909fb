package api

import (
	"net/http"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// getRestore reads whether the record was restored from a backup and waits for a confirmation.
func (a *api) getRestore(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	out := client.Restore{From: a.restoredFrom()}
	if !out.From.IsZero() {
		n, err := a.Restore.Waiting(r.Context())
		if err != nil {
			return err
		}
		out.Waiting = n
	}
	return answer(w, http.StatusOK, out)
}

// postRestore allows the hosts of a restored record to connect. The request repeats how many they are, as a check that
// the admin has looked at them.
func (a *api) postRestore(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	var in struct { // client.RestoreConfirmation, in which 0 is not the same as missing
		Confirm *int `json:"confirm"`
	}
	if err := readValue(w, r, maxShortBody, &in); err != nil {
		return err
	}
	if in.Confirm == nil || *in.Confirm < 0 {
		return &gozzard.Error{Kind: gozzard.ErrInvalid,
			Faults: []gozzard.Fault{{Path: "confirm", Text: "is required: the number of hosts that wait"}}}
	}

	if a.Restore == nil {
		return gozzard.Errorf(gozzard.ErrConflict, "this server has no record that could have been restored")
	}
	n, err := a.Restore.Confirm(r.Context(), caller, *in.Confirm)
	if err != nil {
		return err
	}

	return answer(w, http.StatusOK, client.RestoreConfirmed{Confirmed: n})
}

// restoredFrom is the time of the backup, zero if nothing waits to be confirmed.
func (a *api) restoredFrom() client.Time { return client.At(a.Restore.From()) }
