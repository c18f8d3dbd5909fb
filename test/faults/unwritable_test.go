//go:build linux

package faults_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// caller is a caller of the server's own API.
func caller(t *testing.T, s *ft.Server) *client.Client {
	t.Helper()
	c, err := client.New(s.Cred.URL, client.Credentials{AppCode: s.Cred.AppCode, AppSecret: s.Cred.Secret,
		Username: s.Cred.Username})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// verdict is the message of the only attempt of a task, which the compatible API does not show for a success.
func verdict(t *testing.T, s *ft.Server, task string) string {
	t.Helper()
	c := caller(t, s)
	defer c.Close()
	got, err := c.Task(t.Context(), task, 0, client.ShowAll)
	if err != nil || len(got.Attempts) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	return got.Attempts[0].Message
}

// hostState is what the server shows about the state folder of the only host, "" if it can be written.
func hostState(t *testing.T, s *ft.Server) string {
	t.Helper()
	c := caller(t, s)
	defer c.Close()
	page, err := c.Hosts(t.Context(), 0, 10)
	if err != nil || len(page.Hosts) != 1 {
		t.Fatalf("%+v, %v", page, err)
	}
	for _, text := range page.Hosts[0].Degraded {
		if strings.HasPrefix(text, gozzard.StateUnwritable) {
			return text
		}
	}
	return ""
}

// awaitState waits until the server shows that the state folder can be written, or that it cannot.
func awaitState(t *testing.T, s *ft.Server, writable bool) {
	t.Helper()
	ft.Until(t, 30*time.Second, func() string {
		return fmt.Sprintf("the server does not show that the state folder can be written: %v; it shows %q", writable,
			hostState(t, s))
	}, func() bool { return (hostState(t, s) == "") == writable })
}

// message is the message in the status of a daemon.
func message(s *ft.Server, d *ft.Daemon) string {
	if rows := s.Status("faults", d.Name, ft.Host(1)); len(rows) == 1 {
		return rows[0].Message
	}
	return ""
}

// unwritable checks an agent that cannot record: what dies comes back, stop and kill are carried out once and say that
// they are not recorded, everything else is rejected and has no effect, and everybody is informed.
func unwritable(t *testing.T, s *ft.Server, agent *ft.Program, f *fleet) {
	t.Helper()
	awaitState(t, s, false)
	ft.Until(t, 30*time.Second, func() string { return "the status says nothing: " + message(s, f.ds[0]) },
		func() bool { return strings.Contains(message(s, f.ds[0]), gozzard.StateUnwritable) })
	if status, body := s.Get(t, "/metrics"); !strings.Contains(body, "\ngozzard_agents_state_unwritable 1\n") {
		t.Errorf("metrics: %d, no agent with an unwritable state folder", status)
	}

	data := agent.Flag("--data")
	for _, args := range [][]string{{"agent", "status"}, {"agent", "doctor"}} {
		if _, err := os.Stat(filepath.Join(data, "agent.sock")); err != nil { // it is lost with the folder
			break
		}
		out, _ := exec.Command(ft.Binary(t), append(args, "--data", data)...).CombinedOutput()
		if !strings.Contains(string(out), gozzard.StateUnwritable) &&
			!strings.Contains(string(out), "cannot write its state folder") {
			t.Errorf("%v says nothing:\n%s", args, out)
		}
	}

	cameBack(t, f.ds[0])
	for i, op := range []int{1, 9} { // stop, kill
		d := f.ds[1+i]
		task := s.API.Operate("operate_proc_v2", ft.J{"meta": ft.J{"namespace": "faults", "name": d.Name},
			"op_type": op, "spec": d.Spec(nil), "hosts": host1})
		must(t, s.API.Await(task)["0:127.0.0.1:faults:"+d.Name], 0)
		words := verdict(t, s, task)
		if d.PID() > 0 || d.Count("stop")+d.Count("kill") != 1 || !strings.Contains(words, "could not record") {
			t.Errorf("%s: pid %d, %v, %q", d.Name, d.PID(), d.Calls(), words)
		}
	}
	for _, op := range []int{8, 7} { // reload, restart
		d := f.ds[3]
		e := operate(t, s.API, d, op, d.Spec(nil))
		if e.Code == 0 || !strings.Contains(e.Msg, gozzard.StateUnwritable[len("the state folder "):]) ||
			d.Count("reload")+d.Count("restart") > 0 {
			t.Errorf("%d: %+v, %v", op, e, d.Calls())
		}
	}

	time.Sleep(1500 * time.Millisecond) // long enough to bring back what was stopped
	for _, d := range f.ds[1:3] {
		if d.PID() > 0 {
			t.Errorf("%s was stopped and runs", d.Name)
		}
	}
	select {
	case <-agent.Done():
		t.Fatal("the agent ended")
	default:
	}
}

// writableAgain checks an agent that can record again, and that a restart forgets nothing of the time before.
func writableAgain(t *testing.T, s *ft.Server, agent *ft.Program, f *fleet) {
	t.Helper()
	awaitState(t, s, true)
	must(t, operate(t, s.API, f.ds[3], 8, f.ds[3].Spec(nil)), 0)
	ft.Until(t, 30*time.Second, func() string { return "the status still says it: " + message(s, f.ds[0]) },
		func() bool { return !strings.Contains(message(s, f.ds[0]), gozzard.StateUnwritable) })

	agent.Kill(syscall.SIGKILL)
	agent.Through()
	s.AgainOnline(t, agent)
	cameBack(t, f.ds[0])
	for _, d := range f.ds[1:3] {
		if d.PID() > 0 || d.Count("start") != 1 {
			t.Errorf("%s was stopped and came back after a restart of the agent: %v", d.Name, d.Calls())
		}
	}
}

// loopOf is the name of the device of a mounted image.
func loopOf(t *testing.T, dir string) string {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		t.Fatal(err)
	}
	to, err := os.Readlink(fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev)))
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Base(to)
}

// A19: the disk of the state folder fails and the kernel makes its file system read-only. The agent goes on, and
// records again when the repaired disk is mounted in the same place.
func TestA19ReadOnlyDisk(t *testing.T) {
	t.Parallel() // it mostly waits
	needs(t, "mkfs.ext4", "e2fsck")
	s := ft.StartServer(t, "")
	dir, image := ext4(t, 32)
	command(t, "mount", "-o", "remount,errors=remount-ro", dir)
	data := filepath.Join(dir, "state")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	agent := s.StartAgentIn(t, 1, data, "")
	f := startFleet(t, s, agent, "gzrodisk", 4)

	control(t, "/sys/fs/ext4/"+loopOf(t, dir)+"/trigger_fs_error", "broken")
	unwritable(t, s, agent, f)

	// Repair a copy and mount it over the broken disk, which the agent still uses.
	repaired := filepath.Join(t.TempDir(), "repaired.img")
	copyFile(t, image, repaired)
	command(t, "sh", "-c", "e2fsck -y -f "+repaired+"; test $? -le 2")
	command(t, "mount", "-o", "loop", repaired, dir)
	t.Cleanup(func() {
		agent.Kill(syscall.SIGKILL)
		command(t, "umount", dir)
	})
	writableAgain(t, s, agent, f)
	fmt.Println("fault A19 disk: supervised, stopped and killed on a read-only disk; recorded again afterwards")
}

// A19: writes of the journal fail because its file system is read-only.
func TestA19ReadOnlyWrites(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	agent := s.StartAgent(t, 1, "")
	f := startFleet(t, s, agent, "gzrowrite", 4)

	// A tracer makes writes fail until it ends. The first command that cannot be recorded shows it.
	needs(t, "strace")
	tracer := exec.Command("strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=pwrite64", "-e",
		"inject=pwrite64:error=EROFS", "-p", strconv.Itoa(agent.PID()))
	if err := tracer.Start(); err != nil {
		t.Fatal(err)
	}
	end := sync.OnceFunc(func() {
		_ = tracer.Process.Signal(syscall.SIGTERM)
		_ = tracer.Wait()
	})
	defer end()
	ft.Until(t, time.Minute, func() string { return "no write fails" }, func() bool {
		return operate(t, s.API, f.ds[3], 3, f.ds[3].Spec(nil)).Code != 0 // supervise it, which it is
	})
	unwritable(t, s, agent, f)

	end()
	writableAgain(t, s, agent, f)
	fmt.Println("fault A19 writes: supervised, stopped and killed although no write of the journal succeeds")
}

// A19: the state folder is mounted read-only over itself. The journal is open and can still record, so everything
// works but for the output of what is started.
func TestA19ReadOnlyMount(t *testing.T) {
	t.Parallel() // it mostly waits
	needs(t, "mount")
	s := ft.StartServer(t, "")
	dir := t.TempDir()
	agent := s.StartAgentIn(t, 1, dir, "")
	f := startFleet(t, s, agent, "gzromount", 3)
	command(t, "mount", "--bind", dir, dir)
	t.Cleanup(func() { _ = syscall.Unmount(dir, unix.MNT_DETACH) })
	command(t, "mount", "-o", "remount,ro,bind", dir)

	awaitState(t, s, false)
	cameBack(t, f.ds[0])
	for _, op := range []int{1, 0, 8, 7, 9, 0} { // stop, start, reload, restart, kill, start
		must(t, operate(t, s.API, f.ds[1], op, f.ds[1].Spec(nil)), 0)
	}
	if n := strings.Count(agent.Output(), "output of commands is dropped until"); n != 1 {
		t.Errorf("the log says %d times that output is dropped", n)
	}

	// A restart would end supervision: an agent does not start on such a folder, and says why.
	if err := syscall.Kill(agent.PID(), syscall.SIGUSR2); err != nil {
		t.Fatal(err)
	}
	ft.Until(t, 30*time.Second, func() string { return "no answer to SIGUSR2" },
		func() bool { return strings.Contains(agent.Output(), "hand-over rejected") })
	cameBack(t, f.ds[0])
	agent.Kill(syscall.SIGKILL)
	agent.Again()
	select {
	case <-agent.Done():
	case <-time.After(30 * time.Second):
		t.Fatal("an agent starts on a read-only folder")
	}
	if agent.ExitCode() == 0 || !strings.Contains(agent.Output(), "read-only file system") {
		t.Errorf("code %d: %s", agent.ExitCode(), agent.Output())
	}

	command(t, "umount", dir)
	s.AgainOnline(t, agent)
	awaitState(t, s, true)
	cameBack(t, f.ds[2])
	fmt.Println("fault A19 mount: all operations done in a read-only folder with an open journal")
}

// A20: the state folder is deleted under the agent. The agent notices it and makes the folder again with everything
// that it knows.
func TestA20DeletedState(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	agent := s.StartAgentIn(t, 1, dir, "")
	f := startFleet(t, s, agent, "gzdeleted", 4)
	id := read(t, filepath.Join(dir, "agent-id"))

	ft.Until(t, 30*time.Second, func() string { return "the folder cannot be deleted" }, // the agent writes into it meanwhile
		func() bool { return os.RemoveAll(dir) == nil })
	cameBack(t, f.ds[0])
	for i, op := range []int{1, 9} { // stop, kill
		d := f.ds[1+i]
		must(t, operate(t, s.API, d, op, d.Spec(nil)), 0)
	}
	ft.Until(t, 30*time.Second, func() string { return "the agent does not record again" },
		func() bool { return strings.Contains(agent.Output(), "the journal records again") })
	if again := read(t, filepath.Join(dir, "agent-id")); string(again) != string(id) {
		t.Errorf("the agent was %q and is %q", id, again)
	}

	ft.Until(t, 30*time.Second, func() string { return "the local socket is not made again" }, func() bool {
		return exec.Command(ft.Binary(t), "agent", "status", "--data", dir).Run() == nil
	})
	ft.AllowEverything(t, dir)
	writableAgain(t, s, agent, f)
	fmt.Println("fault A20: a deleted state folder was made again with all processes and the identity")
}

// A20: the state folder is deleted and cannot be made again, because a file is in its place.
func TestA20LostState(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	above := t.TempDir()
	dir := filepath.Join(above, "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	agent := s.StartAgentIn(t, 1, dir, "")
	f := startFleet(t, s, agent, "gzlost", 4)

	moved := filepath.Join(above, "moved")
	if err := os.Rename(dir, moved); err != nil {
		t.Fatal(err)
	}
	write(t, dir, nil)
	unwritable(t, s, agent, f)

	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(moved, dir); err != nil {
		t.Fatal(err)
	}
	writableAgain(t, s, agent, f)
	fmt.Println("fault A20: stopped and killed without a state folder; recorded when it was back")
}

// refused starts an agent that must not start, and returns what it said.
func refused(t *testing.T, agent *ft.Program) string {
	t.Helper()
	before := len(agent.Output())
	agent.Again()
	select {
	case <-agent.Done():
	case <-time.After(30 * time.Second):
		t.Fatal("the agent starts: " + agent.Output()[before:])
	}
	if agent.ExitCode() == 0 {
		t.Error("the agent ended without an error")
	}
	return agent.Output()[before:]
}

// A21: the identity of the agent is damaged. The agent refuses to start and says what to do.
func TestA21DamagedID(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	agent := s.StartAgent(t, 1, "")
	f := startFleet(t, s, agent, "gzident", 3)
	path := filepath.Join(agent.Flag("--data"), "agent-id")
	good := read(t, path)
	n := 0
	for _, bad := range [][]byte{good[:16], good[:31], []byte(strings.Repeat("0", 32)), nil} {
		agent.Kill(syscall.SIGKILL)
		write(t, path, bad)
		if said := refused(t, agent); !strings.Contains(said, "sha256sum agent-id > agent-id.sha256") {
			t.Errorf("%q: said %s", bad, said)
		}
		n++
	}

	// A person follows the text.
	write(t, path, good)
	command(t, "sh", "-c", "cd "+filepath.Dir(path)+" && sha256sum agent-id > agent-id.sha256")
	s.AgainOnline(t, agent)
	f.untouched("after the refusals")
	fmt.Printf("fault A21: %d of 4 damaged identities refused\n", n)
}

// A22: the lock file is removed under a running agent. A second agent does not start, and the first can be upgraded and
// restarted.
func TestA22LockRemoved(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	agent := s.StartAgent(t, 1, "")
	f := startFleet(t, s, agent, "gzlock", 3)
	data := agent.Flag("--data")
	if err := os.Remove(filepath.Join(data, "lock")); err != nil {
		t.Fatal(err)
	}

	out, err := exec.Command(ft.Binary(t), "agent", "--data", data, "--server", s.Agents, "--ip", "127.0.0.1",
		"--socket", "none", "--secret-file", filepath.Join(s.Data, "join.secret")).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "in use") {
		t.Errorf("a second agent: %v\n%s", err, out)
	}

	sessions := agent.Sessions()
	if err := syscall.Kill(agent.PID(), syscall.SIGUSR2); err != nil {
		t.Fatal(err)
	}
	ft.Until(t, time.Minute, func() string { return "no session after the hand-over: " + agent.Output() },
		func() bool { return agent.Sessions() > sessions })
	f.untouched("after the hand-over")
	agent.Kill(syscall.SIGKILL)
	s.AgainOnline(t, agent)
	f.untouched("after a restart")
	cameBack(t, f.ds[0])
	fmt.Println("fault A22: no second agent without the lock file; hand-over and restart work")
}
