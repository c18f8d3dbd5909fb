//go:build unix

package notify

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// account is an OS account that commands run as.
type account struct{ uid, gid uint32 }

// lookupAccount finds the account of the commands. A server that is root needs one: its commands would be root as well.
func lookupAccount(name string) (*account, error) {
	if name == "" {
		if os.Geteuid() == 0 {
			return nil, errors.New("the server is root: name the account that commands run as")
		}
		return nil, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return nil, err
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("the account %s: %w", name, err)
	}
	if os.Geteuid() != 0 {
		if int(uid) == os.Geteuid() {
			return nil, nil
		}
		return nil, fmt.Errorf("only a server that is root can run commands as %s", name)
	}
	return &account{uint32(uid), uint32(gid)}, nil
}

// onlyOwnerWrites checks that nobody but root and the account of the server can change a file or a folder.
func onlyOwnerWrites(path string, folder bool) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case folder && !info.IsDir():
		return fmt.Errorf("%s is not a folder", path)
	case !folder && (!info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0):
		return fmt.Errorf("%s is not a program: a regular file that may be executed", path)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%s can be written by other accounts: chmod go-w it", path)
	case ok && st.Uid != 0 && int(st.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to another account: it must belong to root or to the account of the server", path)
	}
	return nil
}

// confine gives a command its account and a process group.
func confine(cmd *exec.Cmd, as *account) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if as != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: as.uid, Gid: as.gid}
	}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
