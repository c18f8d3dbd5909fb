package api

import (
	"net/http"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// postTOTP makes a second factor of a user that gives its password. No other answer shows the factor. It needs no
// session, because a server may require the factor for the first login.
func (a *api) postTOTP(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}

	var e auth.Enrolment
	err = auth.Login(r, func() (user string, err error) {
		user, proof, err := readTOTP(w, r)
		if err == nil {
			e, err = acc.EnrolSecond(r.Context(), user, proof)
		}
		return user, err
	})
	if err != nil {
		return err
	}

	return answer(w, http.StatusCreated, client.TOTPEnrolment{Secret: e.Secret, URI: e.URI, Recovery: e.Recovery})
}

// putTOTP makes the second factor of postTOTP count.
func (a *api) putTOTP(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}
	return done(w, auth.Login(r, func() (string, error) {
		user, proof, err := readTOTP(w, r)
		if err == nil {
			err = acc.ConfirmSecond(r.Context(), user, proof)
		}
		return user, err
	}))
}

func readTOTP(w http.ResponseWriter, r *http.Request) (user string, proof auth.Proof, err error) {
	err = readFields[client.TOTPRequest](w, r, maxAccountBody, func(root *strictjson.Value) {
		name := root.Get("user")
		user, proof = requireName(&name), readProof(root)
	})
	return user, proof, err
}

// deleteTOTP removes the second factor of a user: an admin for another user, a user for itself with password and code.
func (a *api) deleteTOTP(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}

	name := r.PathValue("name")
	if err := selfOrAdmin(caller, name); err != nil {
		return err
	}

	var proof auth.Proof
	err = readFields[client.Proof](w, r, maxAccountBody, func(root *strictjson.Value) { proof = readProof(root) })
	if err != nil {
		return err
	}

	if auth.Alone(caller) && caller.User == name {
		check := func() (string, error) { return name, acc.Prove(r.Context(), name, proof) }
		if err := auth.Login(r, check); err != nil {
			return err
		}
	}

	return done(w, acc.DropSecond(r.Context(), caller, name))
}
