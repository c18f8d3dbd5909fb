package host

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"

	"github.com/gozzard/gozzard"
)

// account is a user of this machine, as its passwd and group files say. Directories such as LDAP are seen only
// through these files, because the program links no C library.
type account struct {
	name   string
	home   string
	uid    uint32
	gid    uint32
	groups []uint32
}

var errUnnamed = errors.New("the definition names no account, and the policy of this host has no default_user")

var errNoUser = errors.New("no such user on this host")

func lookupAccount(name string) (account, error) {
	u, err := user.Lookup(name)
	if err != nil {
		var unknown user.UnknownUserError
		if errors.As(err, &unknown) {
			return account{}, errNoUser
		}
		return account{}, fmt.Errorf("cannot look up user %s: %w", name, err)
	}
	return newAccount(u)
}

func newAccount(u *user.User) (account, error) {
	a := account{name: u.Username, home: u.HomeDir}

	// Look up the groups.
	ids, err := u.GroupIds()
	if err != nil {
		return a, fmt.Errorf("cannot look up groups of user %s: %w", u.Username, err)
	}

	// Read the numbers of the user and its main group.
	uid, errU := strconv.ParseUint(u.Uid, 10, 32)
	gid, errG := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(errU, errG); err != nil {
		return a, fmt.Errorf("user %s has no numeric ids: %w", u.Username, err)
	}
	a.uid, a.gid = uint32(uid), uint32(gid)

	// Read the numbers of its other groups.
	for _, id := range ids {
		g, err := strconv.ParseUint(id, 10, 32)
		if err != nil {
			return a, fmt.Errorf("user %s has no numeric groups: %w", u.Username, err)
		}
		a.groups = append(a.groups, uint32(g))
	}

	return a, nil
}

// AccountName is the name of an account, as an agent that runs as this account names it: its number if the passwd file of
// this machine does not have it, as in a container or with an account of LDAP.
func AccountName(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return strconv.Itoa(uid)
}

// ownAccount is the account of the agent. In a container it may have no name; then its number is used.
func ownAccount() account {
	uid := os.Geteuid()
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		if a, err := newAccount(u); err == nil {
			return a
		}
	}
	return account{name: strconv.Itoa(uid), home: "/", uid: uint32(uid), gid: uint32(os.Getegid())}
}

// actAs returns the account for a command. The credential is nil when it is the account of the agent. No name means the
// default account of the host, and never another one: a name that was left out must not make root of a command.
func (h *Host) actAs(name string) (account, *syscall.Credential, error) {
	if name == "" {
		name = h.unnamed()
	}
	switch name {
	case "":
		return account{}, nil, errUnnamed
	case h.self.name:
		return h.self, nil, nil
	}

	a, err := h.accounts.lookup(name)
	if err != nil {
		return a, nil, fmt.Errorf("cannot run as %s: %w", name, err)
	}
	if a.uid == h.self.uid && h.mode != gozzard.ModeRoot {
		return a, nil, nil
	}
	if h.mode == gozzard.ModeUser {
		return a, nil, fmt.Errorf("cannot run as %s: the agent runs as %s in mode user and may not change accounts",
			name, h.self.name)
	}

	return a, &syscall.Credential{Uid: a.uid, Gid: a.gid, Groups: a.groups}, nil
}
