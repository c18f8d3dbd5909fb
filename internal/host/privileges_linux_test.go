package host_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/host"
)

func TestModes(t *testing.T) {
	const acts = 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID | 1<<unix.CAP_KILL
	for _, tt := range []struct {
		uid  uint32
		caps uint64
		want gozzard.AgentMode
	}{
		{0, 0x1ffffffffff, gozzard.ModeRoot},
		{0, 0xa80425fb, gozzard.ModeCap}, // of a container: no CAP_SYS_PTRACE
		{0, acts, gozzard.ModeCap},
		{0, acts &^ (1 << unix.CAP_SETGID), gozzard.ModeUser},
		{0, 0, gozzard.ModeUser},
		{1000, acts, gozzard.ModeCap},
		{1000, 0x1ffffffffff, gozzard.ModeCap},
		{1000, acts &^ (1 << unix.CAP_KILL), gozzard.ModeUser},
		{1000, 1 << unix.CAP_NET_BIND_SERVICE, gozzard.ModeUser},
		{1000, 0, gozzard.ModeUser},
	} {
		if got := host.ModeOf(tt.uid, tt.caps); got != tt.want {
			t.Errorf("uid %d with %#x: %s, want %s", tt.uid, tt.caps, got, tt.want)
		}
	}

	own, err := host.OwnPrivileges()
	if err != nil || own.UID != uint32(os.Geteuid()) || own.Mode == gozzard.ModeUnknown || own.Account == "" {
		t.Errorf("%+v %v", own, err)
	}
}

// Kernels before 5.14 cannot kill a group at once. There the members are killed one by one, if they are still members
// when their pidfd is open.
func TestMembersAreKilledOneByOne(t *testing.T) {
	dir := t.TempDir()
	member := exec.Command("sleep", "300")
	if err := member.Start(); err != nil {
		t.Fatal(err)
	}

	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}

	list := strconv.Itoa(gone.Process.Pid) + "\n" + strconv.Itoa(member.Process.Pid) + "\n"
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := host.KillMembers(dir); err != nil {
		t.Error(err)
	}

	ended := make(chan error, 1)
	go func() { ended <- member.Wait() }()

	select {
	case err := <-ended:
		if err == nil || err.Error() != "signal: killed" {
			t.Errorf("the member was not killed: %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("a member is alive")
		_ = member.Process.Kill()
		<-ended
	}
}
