package api

import (
	"net/http"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/auth"
)

// getGrantCheck says whether an app or a user may do something, and because of which grant.
func (a *api) getGrantCheck(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	acc, err := a.accounts()
	if err != nil {
		return err
	}

	// Read the question.
	q, err := a.readQuery(r)
	if err != nil {
		return err
	}
	holder := auth.Holder{App: q.one("app"), User: q.one("user")}
	question := gozzard.GrantQuestion{Namespace: q.one("namespace"), Account: q.one("account")}
	if holder == (auth.Holder{}) {
		q.faults.Add("app", "give app or user, or both")
	}
	if question.Action, err = gozzard.ParseAction(q.one("action")); err != nil {
		q.faults.Add("action", "%v", notAnAction(q.one("action"), gozzard.ActionWords()))
	}
	clouds := cloudFinder{plane: a.Plane, caller: caller}
	target, err := parseHost(q.one("host"), &clouds)
	if err != nil {
		q.faults.Add("host", "%v", err)
	}
	if err := q.faults.Err(); err != nil {
		return err
	}

	// Find the host and the grants.
	var known bool
	question.Host, known = a.hostRef(caller, target)
	rights, err := acc.HeldRights(holder)
	if err != nil {
		return err
	}

	// Answer.
	check := client.GrantCheck{HostKnown: known, Grants: []client.CheckedGrant{}}
	for i, v := range rights.Explain(question) {
		grant := renderGrants(rights.Grants[i : i+1])[0]
		check.Grants = append(check.Grants, client.CheckedGrant{Grant: grant, Allows: v.Allows, Reason: v.Why})
		check.Allowed = check.Allowed || v.Allows
	}
	return answer(w, http.StatusOK, check)
}

// hostRef is a host as rights know it. One that is not known is judged by what the question says.
func (a *api) hostRef(caller gozzard.Caller, t gozzard.Target) (ref gozzard.HostRef, known bool) {
	if h, ok := a.Plane.Resolve(caller, t); ok {
		return h.Info.Ref(), true
	}
	ref.Agent = t.Agent
	if t.Addr.IP.IsValid() {
		ref.Addrs = []gozzard.HostAddr{t.Addr}
	}
	return ref, false
}
