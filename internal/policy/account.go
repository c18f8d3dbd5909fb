package policy

import (
	"errors"
	"os/user"
	"slices"
	"strconv"
	"strings"
)

// systemSID is the account of Windows that may do everything.
const systemSID = "S-1-5-18"

// account is whom a command would run as.
type account struct {
	name  string
	root  bool
	uid   uint32
	hasID bool // uid is one
	found *user.User
}

// account finds an account, "" being the agent's own, and judges it.
func (p *Policy) account(name string) (account, error) {
	e, err := p.find(name)
	who := e.account

	if err != nil {
		return who, p.refuseFor(setUsers, err.Error(), "account %s", shown(name))
	}

	if who.root {
		if !p.AllowRoot {
			return who, p.refuse(setAllowRoot, "account %s", shown(who.name))
		}
		return who, nil
	}

	if who.hasID && slices.ContainsFunc(p.DenyUIDs,
		func(r UIDRange) bool { return r.First <= who.uid && who.uid <= r.Last }) {
		return who, p.refuse(setDenyUIDs, "account %s with uid %d", shown(who.name), who.uid)
	}

	if !e.listed {
		return who, p.refuse(setUsers, "account %s", shown(who.name))
	}

	return who, nil
}

// lookup finds an account. One that does not exist is none's and is judged by its name alone: that it cannot be
// used is the host's to say.
func lookup(name string) (account, error) {
	var u *user.User
	var err error

	if name == "" {
		u, err = user.Current()
	} else {
		u, err = user.Lookup(name)
	}

	var unknown user.UnknownUserError
	switch {
	case errors.As(err, &unknown):
		return account{name: name, root: name == "root"}, nil
	case err != nil:
		return account{name: name}, err
	}

	who := account{name: u.Username, found: u, root: u.Uid == "0" || u.Uid == systemSID}

	if uid, err := strconv.ParseUint(u.Uid, 10, 32); err == nil {
		who.uid, who.hasID = uint32(uid), true
	}

	return who, nil
}

// isOrIsIn reports whether an entry of users means the account.
func (a account) isOrIsIn(entry string) bool {
	group, isGroup := strings.CutPrefix(entry, "@")
	switch {
	case !isGroup:
		return entry == anyone || entry == a.name
	case a.found == nil:
		return false
	}

	g, err := user.LookupGroup(group)
	if err != nil { // no such group has no members
		return false
	}

	ids, err := a.found.GroupIds()
	return err == nil && slices.Contains(ids, g.Gid)
}

// shown is a name that somebody else has chosen, fit for one line.
func shown(s string) string {
	if s == "" {
		return `""`
	}
	if len(s) > 64 || strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r == 0x7f || r > 0x7f ||
			r == '"'
	}) {
		return strconv.QuoteToASCII(s[:min(len(s), 64)])
	}
	return s
}
