package agentd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/policy"
)

// PartEnv in the environment makes `gozzard agent leave` do LeavePart only and print the result as JSON.
const PartEnv = "GOZZARD_LEAVE_PART"

// account is an account that root acts as.
type account struct {
	name     string
	uid, gid uint32
	groups   []uint32
}

// otherOwner is the account that owns a folder, if this program is root and the account is another one.
func otherOwner(data string) (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	st, err := os.Lstat(data)
	if err != nil {
		return nil, fmt.Errorf("cannot find the state folder: %w", err)
	}
	owner, ok := st.Sys().(*syscall.Stat_t)
	if !ok || owner.Uid == 0 {
		return nil, nil
	}

	u, err := user.LookupId(strconv.Itoa(int(owner.Uid)))
	if err != nil {
		return nil, fmt.Errorf("cannot find the account that owns %s: %w", data, err)
	}
	a := &account{name: u.Username, uid: owner.Uid}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("account %s has no numeric group: %w", a.name, err)
	}
	a.gid = uint32(gid)
	ids, err := u.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("cannot find the groups of account %s: %w", a.name, err)
	}
	for _, id := range ids {
		if n, err := strconv.ParseUint(id, 10, 32); err == nil {
			a.groups = append(a.groups, uint32(n))
		}
	}
	return a, nil
}

// partAs has LeavePart done by an account, with the capabilities that the agent has in its mode.
func (o *LeaveOptions) partAs(ctx context.Context, a *account, mode gozzard.AgentMode) (left Left, err error) {
	self, err := os.Executable()
	if err != nil {
		return left, fmt.Errorf("cannot find this program: %w", err)
	}
	words := []string{"agent", "leave", "--data", o.Data, "--keep"}
	if o.Stop {
		words[len(words)-1] = "--stop"
	}
	if o.Offline {
		words = append(words, "--offline")
	}
	attr := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: a.uid, Gid: a.gid, Groups: a.groups}}
	file := o.Policy.File
	if mode == gozzard.ModeCap {
		attr.AmbientCaps = []uintptr{unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_KILL}
		if file == "" {
			file = filepath.Join(systemFolder, policy.FileName)
		}
	}
	if file != "" {
		words = append(words, "--policy", file)
	}

	// Run it, and read its answer.
	var said, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, self, words...)
	cmd.Dir, cmd.SysProcAttr, cmd.Stdout, cmd.Stderr = "/", attr, &said, &errs
	cmd.Env = append(os.Environ(), PartEnv+"=1")
	if err := cmd.Run(); err != nil {
		text := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(errs.String()), "gozzard: "))
		if text == "" {
			text = err.Error()
		}
		return left, fmt.Errorf("cannot leave as account %s: %s", a.name, text)
	}
	if err := json.Unmarshal(said.Bytes(), &left); err != nil {
		return left, errors.Join(fmt.Errorf("cannot read the answer of this program as account %s", a.name), err)
	}
	return left, nil
}
