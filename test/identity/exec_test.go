//go:build linux

package identity_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// P20: a process has become another program by exec, later than its start was checked. The agent is killed, stopped and
// upgraded: it finds the process by what is on record.
func TestP20ExecOfAnotherProgram(t *testing.T) {
	each(t, func(w *world) {
		p := w.daemon("exec", "gzlaunch")
		p.copyOf("/bin/sh", "gzlaunch")
		p.copyOf("/bin/sleep", "gzwork")
		// The launcher waits in its own program, because a child would have its name for a moment.
		p.Script("start.sh", "echo start >> calls\n[ -p go ] || mkfifo go\n"+
			"setsid ./gzlaunch -c 'echo $$ > daemon.pid; read line < go; exec ./gzwork 1000000' </dev/null >/dev/null 2>&1 &")
		p.must(opStart, 0)
		pid := p.main()
		p.awaitRuns("after the start", pid)
		p.program = "gzwork"
		p.await("it does not wait", func() bool {
			pipe, err := os.OpenFile(filepath.Join(p.Dir, "go"), os.O_WRONLY|syscall.O_NONBLOCK, 0)
			if err != nil { // nothing reads from it yet
				return false
			}
			_, err = pipe.WriteString("go\n")
			return pipe.Close() == nil && err == nil
		})
		p.await("it does not become another program", func() bool { return ft.CommOf(pid) == "gzwork" })

		for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGUSR2} {
			w.restart(sig)
			p.untouched(fmt.Sprintf("after %s of the agent", sig), pid, 2*time.Second)
		}

		if p.Count("start") != 1 || !p.status().IsAuto {
			w.t.Errorf("calls %v, %+v", p.Calls(), p.status())
		}

		// It is watched, not only listed.
		w.kill(pid)
		p.await("it does not come back", func() bool { return len(p.called("gzlaunch")) == 1 })
		p.must(opStop, 0)
	})
}
