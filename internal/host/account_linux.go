package host

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// account is a user of this machine, as its passwd and group files say. Directories such as LDAP are seen only through these files, because the
// program links no C library.
type account struct {
	name   string
	home   string
	uid    uint32
	gid    uint32
	groups []uint32
}

var errNoUser = errors.New("no such user on this host")

// accounts remembers look-ups for as long as the files they were made from stay as they are.
type accounts struct {
	mu     sync.Mutex
	stamp  accountStamp
	byName map[string]account
}

// accountStamp tells versions of the account files apart. The change time cannot be set by anybody, and who replaces a file makes another inode.
type accountStamp [2]struct {
	dev, ino uint64
	size     int64
	changed  unix.Timespec
}

// settleTime is how old a version must be to be remembered: what is changed twice within one tick of the file system's clock has one time.
const settleTime = 2 * time.Second

// stampAccounts is zero, false when there is nothing to go by.
func stampAccounts() (s accountStamp, settled bool) {
	for i, path := range []string{"/etc/passwd", "/etc/group"} {
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err != nil {
			return accountStamp{}, false
		}
		s[i].dev, s[i].ino, s[i].size, s[i].changed = uint64(st.Dev), st.Ino, st.Size, st.Ctim
		age := time.Since(time.Unix(st.Ctim.Unix()))
		if age < settleTime {
			return accountStamp{}, false
		}
	}
	return s, true
}

// lookup finds an account. Only what exists is remembered, so that made-up names take no room.
func (a *accounts) lookup(name string) (account, error) {
	stamp, settled := stampAccounts()
	if !settled {
		return lookupAccount(name)
	}
	a.mu.Lock()
	if a.stamp != stamp {
		a.stamp, a.byName = stamp, map[string]account{}
	}
	found, ok := a.byName[name]
	a.mu.Unlock()
	if ok {
		return found, nil
	}
	found, err := lookupAccount(name)
	if err != nil {
		return found, err
	}
	if after, _ := stampAccounts(); after == stamp { // both files were read in one version
		a.mu.Lock()
		if a.stamp == stamp {
			a.byName[name] = found
		}
		a.mu.Unlock()
	}
	return found, nil
}

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
	ids, err := u.GroupIds()
	if err != nil {
		return a, fmt.Errorf("cannot look up groups of user %s: %w", u.Username, err)
	}
	uid, errU := strconv.ParseUint(u.Uid, 10, 32)
	gid, errG := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(errU, errG); err != nil {
		return a, fmt.Errorf("user %s has no numeric ids: %w", u.Username, err)
	}
	a.uid, a.gid = uint32(uid), uint32(gid)
	for _, id := range ids {
		g, err := strconv.ParseUint(id, 10, 32)
		if err != nil {
			return a, fmt.Errorf("user %s has no numeric groups: %w", u.Username, err)
		}
		a.groups = append(a.groups, uint32(g))
	}
	return a, nil
}

// ownAccount is whom the agent runs as. In a container it may have no name; then its number is one.
func ownAccount() account {
	uid := os.Geteuid()
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		if a, err := newAccount(u); err == nil {
			return a
		}
	}
	return account{name: strconv.Itoa(uid), home: "/", uid: uint32(uid), gid: uint32(os.Getegid())}
}

// actAs finds out whom to run as. The credential is nil when that is the agent itself.
func (h *Host) actAs(name string) (account, *syscall.Credential, error) {
	if name == "" || name == h.self.name {
		return h.self, nil, nil
	}
	a, err := h.accounts.lookup(name)
	if err != nil {
		return a, nil, fmt.Errorf("cannot run as %s: %w", name, err)
	}
	if a.uid == h.self.uid && h.self.uid != 0 {
		return a, nil, nil
	}
	if h.self.uid != 0 {
		return a, nil, fmt.Errorf("cannot run as %s: the agent runs as %s and may not change accounts", name, h.self.name)
	}
	return a, &syscall.Credential{Uid: a.uid, Gid: a.gid, Groups: a.groups}, nil
}
