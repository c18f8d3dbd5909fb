package api

import (
	"net/http"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// getUsers lists a page of the users, without their passwords and tokens.
func (a *api) getUsers(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}

	q, err := a.readQuery(r)
	if err != nil {
		return err
	}
	start, limit := q.page()
	if err := q.faults.Err(); err != nil {
		return err
	}

	all := acc.Users()
	page := client.UserPage{Count: len(all), Users: []client.User{}}
	first := min(start, len(all))
	for _, u := range all[first:min(len(all), first+limit)] {
		page.Users = append(page.Users, client.User{Name: u.Name, Password: acc.HasPassword(u.Name), Subject: u.Subject,
			Disabled: u.Disabled, Grants: renderGrants(u.Grants), TOTP: acc.HasSecond(u.Name)})
	}

	return answer(w, http.StatusOK, page)
}

// postUser makes a user.
func (a *api) postUser(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}

	var u auth.User
	var secret string
	var again bool
	err = readFields[client.NewUser](w, r, maxAccountBody, func(root *strictjson.Value) {
		name, password, grants, reuse := root.Get("name"), root.Get("password"), root.Get("grants"), root.Get("reuse_name")
		again = reuse.OptBool(false)
		u.Name, secret = requireName(&name), readPassword(&password)
		grants.OptList(maxGrantList, func(e *strictjson.Value) { u.Grants = append(u.Grants, readGrant(e)) })
	})
	if err != nil {
		return err
	}

	create := acc.CreateUser
	if again {
		create = acc.CreateUserAgain
	}
	if err := create(r.Context(), caller, u, secret); err != nil {
		return err
	}

	return answer(w, http.StatusCreated, struct{}{})
}

// readProof reads the password and the code that a user proves itself with.
func readProof(root *strictjson.Value) auth.Proof {
	password, code := root.Get("password"), root.Get("code")
	return auth.Proof{Password: readPassword(&password), Code: readPassword(&code)}
}

// readPassword reads an optional password. The fault of a wrong value does not show the value.
func readPassword(v *strictjson.Value) string {
	if !v.Given() {
		return ""
	}
	if !v.IsString() {
		v.Fault("must be a string")
		return ""
	}
	return v.AnyStr()
}

// putUser disables or enables a user, or removes the user's id at the login provider.
func (a *api) putUser(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}

	var disabled *bool
	var forget bool
	err = readFields[client.UserChange](w, r, maxAccountBody, func(root *strictjson.Value) {
		flag, subject := root.Get("disabled"), root.Get("forget_subject")
		if flag.Given() {
			b := flag.Bool()
			disabled = &b
		}
		if forget = subject.OptBool(false); forget == (disabled != nil) {
			flag.Fault("give either disabled or forget_subject")
		}
	})
	if err != nil {
		return err
	}

	name := r.PathValue("name")
	if forget {
		return done(w, acc.ForgetSubject(r.Context(), caller, name))
	}
	return done(w, acc.Disable(r.Context(), caller, name, *disabled))
}

// deleteUser deletes a user with all tokens.
func (a *api) deleteUser(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}
	return done(w, acc.DropUser(r.Context(), caller, r.PathValue("name")))
}

// putPassword sets the password of a user. An admin may set every password. Other users may set only their own, and
// must give the present one.
func (a *api) putPassword(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}

	name := r.PathValue("name")
	if err := selfOrAdmin(caller, name); err != nil {
		return err
	}

	var old auth.Proof
	var next string
	err = readFields[client.PasswordChange](w, r, maxAccountBody, func(root *strictjson.Value) {
		o, p, c := root.Get("old"), root.Get("password"), root.Get("code")
		old, next = auth.Proof{Password: readPassword(&o), Code: readPassword(&c)}, readPassword(&p)
		if next == "" {
			p.Fault("required")
		}
	})
	if err != nil {
		return err
	}

	// Check the present password like a login, so that guesses are limited. An admin gives it too for its own login, so
	// that a stolen session does not become a password.
	if !caller.Rights.All() || auth.Alone(caller) && caller.User == name {
		check := func() (string, error) { return name, acc.Prove(r.Context(), name, old) }
		if err := auth.Login(r, check); err != nil {
			return err
		}
	}

	return done(w, acc.SetPassword(r.Context(), caller, name, next))
}

// selfOrAdmin accepts a user that changes its own login, and admins. An app that acts for a user is not that user.
func selfOrAdmin(caller gozzard.Caller, name string) error {
	if caller.Rights.All() || auth.Alone(caller) && caller.User == name {
		return nil
	}
	return gozzard.Errorf(gozzard.ErrUserForbidden, "this needs the role admin on everything")
}
