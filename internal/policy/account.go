package policy

import (
	"errors"
	"os/user"
	"slices"
	"strconv"
	"strings"
)

// systemSID is the Windows account that may do everything.
const systemSID = "S-1-5-18"

// account is the account that a command would run as.
type account struct {
	name  string
	root  bool
	uid   uint32
	hasID bool // uid is valid
	found *user.User
}

// account finds and checks an account. "" is the agent's own account: on systems where commands have no other one, and
// for `gozzard dev`.
func (p *Policy) account(name string) (account, error) {
	e, err := p.findAccount(name)
	acct := e.account

	if err != nil {
		return acct, p.rejectBecause(setUsers, err.Error(), "account %s", shown(name))
	}

	if acct.root {
		if !p.AllowRoot {
			err := allowedBy(p.reject(setAllowRoot, "account %s", shown(acct.name)), "true")
			return acct, instead(byFlag(err, "--allow-root", ""), otherAccount)
		}
		return acct, nil
	}

	var denied, unlisted error
	if acct.hasID && slices.ContainsFunc(p.DenyUIDs,
		func(r UIDRange) bool { return r.First <= acct.uid && acct.uid <= r.Last }) {
		denied = allowedBy(p.reject(setDenyUIDs, "account %s with uid %d", shown(acct.name), acct.uid),
			strconv.FormatUint(uint64(acct.uid), 10))
		denied = instead(byFlag(denied, "--allow-user", acct.name), otherAccount)
	}
	switch {
	case e.listed:
	case acct.found == nil: // allowing it would not help
		unlisted = instead(p.rejectBecause(setUsers, noAccount, "account %s", shown(acct.name)), otherAccount)
	default:
		unlisted = byFlag(allowedBy(p.reject(setUsers, "account %s", shown(acct.name)), acct.name), "--allow-user", acct.name)
	}
	return acct, together(denied, unlisted)
}

// lookup finds an account. An account that does not exist is checked by its name only. The host reports later that it
// cannot be used.
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

	acct := account{name: u.Username, found: u, root: u.Uid == "0" || u.Uid == systemSID}

	if uid, err := strconv.ParseUint(u.Uid, 10, 32); err == nil {
		acct.uid, acct.hasID = uint32(uid), true
	}

	return acct, nil
}

// matches reports whether an entry of users includes the account.
func (a account) matches(entry string) bool {
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

// shown makes a name from outside safe to print in one line.
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
