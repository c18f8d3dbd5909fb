package api

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// postOffboard ends the sessions, tokens and grants of a user, and answers what remains of the user's work.
func (a *api) postOffboard(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}

	name := r.PathValue("name")
	ended, err := acc.Offboard(r.Context(), caller, name)
	if err != nil {
		return err
	}

	o := client.Offboarded{User: name, Sessions: ended.Sessions, Tokens: ended.Tokens, Grants: ended.Grants,
		EnrolTokens: []client.EnrolToken{}, Work: []string{}, Streams: a.watchers.of(name)}
	seen, before := acc.SecretsSeen(name)
	o.Apps, o.AppsBefore = append([]string{}, seen...), append([]string{}, before...)
	if err := a.remains(r, caller, &o); err != nil {
		return err
	}
	return answer(w, http.StatusOK, o)
}

// remains adds what other parts of the server have of a user.
func (a *api) remains(r *http.Request, caller gozzard.Caller, o *client.Offboarded) error {
	if a.Enrol != nil {
		tokens, err := a.Enrol.Tokens(r.Context(), caller)
		if err != nil {
			return err
		}
		for i := range tokens {
			t := renderEnrolToken(&tokens[i], time.Now())
			if t.State == "valid" && strings.HasSuffix(t.CreatedBy, "/"+o.User) {
				o.EnrolTokens = append(o.EnrolTokens, t)
			}
		}
	}

	if a.Work != nil {
		work, err := a.Work(r.Context(), o.User)
		if err != nil {
			return err
		}
		o.Work = append(o.Work, work...)
	}
	return nil
}

// watchers counts the open event streams of users.
type watchers struct {
	mu    sync.Mutex
	users map[string]int
}

// begin counts a stream until the function that it returns is called.
func (w *watchers) begin(user string) (end func()) {
	add := func(n int) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.users == nil {
			w.users = map[string]int{}
		}
		if w.users[user] += n; w.users[user] == 0 {
			delete(w.users, user)
		}
	}
	add(1)
	return func() { add(-1) }
}

func (w *watchers) of(user string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.users[user]
}
