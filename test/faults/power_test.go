//go:build linux

package faults_test

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
	"github.com/gozzard/gozzard/test/ledger"
)

// H2: the power of a host fails in the middle of operations. The agent is frozen and continues from a copy of the image
// below its file system: data that the kernel had not written is lost. An effect without its intent would be reported
// as not executed, or be done again.
func TestH2AgentPowerCut(t *testing.T) {
	dir, image := ext4(t, 32)
	s := ft.StartServer(t, "")
	agent := s.StartAgentIn(t, 1, filepath.Clean(dir), "")
	endFirst(t, agent)
	l := ledger.New(t, s.API)
	l.Pause = 50 * time.Millisecond // or a slow machine never gets to most of them
	stop := l.Load(4, 1, 100000)
	rounds := 3 * *scale
	for range rounds {
		time.Sleep(time.Duration(200+rand.IntN(300)) * time.Millisecond)
		agent.Kill(syscall.SIGSTOP)
		after := filepath.Join(t.TempDir(), "after.img")
		copyFile(t, image, after)
		agent.Kill(syscall.SIGKILL)
		unmount(t, dir)
		command(t, "mount", "-o", "loop", after, dir)
		image = after
		s.AgainOnline(t, agent)
	}

	stop()
	fmt.Printf("fault H2: power of the host cut %d times\n", rounds)
	l.Afterwards(8, 1)
	l.Judge("H2", ledger.Floor{OK: 20, Percent: 25})
}

// unmount unmounts a file system. A command that the agent started may have a file open there until it ends, so a busy
// file system is tried again.
func unmount(t *testing.T, dir string) {
	t.Helper()
	var out []byte
	ft.Until(t, time.Minute, func() string { return fmt.Sprintf("%s stays busy: %s", dir, out) }, func() bool {
		var err error
		out, err = exec.Command("umount", dir).CombinedOutput()
		return err == nil
	})
}
