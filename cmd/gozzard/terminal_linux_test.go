package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// screen is a terminal with what programs have printed on it.
type screen struct {
	master *os.File
	slave  *os.File
	mu     sync.Mutex
	shown  bytes.Buffer
}

// newScreen opens a terminal.
func newScreen(t *testing.T) *screen {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	t.Cleanup(func() { _ = master.Close() }) // only ends the reader
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = slave.Close() })

	s := &screen{master: master, slave: slave}
	go func() { // ends when the terminal is closed
		b := make([]byte, 4096)
		for {
			n, err := master.Read(b)
			s.mu.Lock()
			s.shown.Write(b[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return s
}

// text is what the terminal shows.
func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.ReplaceAll(s.shown.String(), "\r\n", "\n")
}

// await waits until the terminal shows a text.
func (s *screen) await(t *testing.T, want string) {
	t.Helper()
	re := regexp.MustCompile("(?m)" + want)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if re.MatchString(s.text()) {
			return
		}
	}
	t.Fatalf("the terminal does not show %q:\n%s", want, s.text())
}

// start runs the program in the foreground of the terminal.
func (s *screen) start(t *testing.T, dir string, env []string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := &exec.Cmd{Path: self, Args: append([]string{"gozzard"}, args...), Dir: dir,
		Env: append(append(os.Environ(), "TERM=xterm"), env...), Stdin: s.slave, Stdout: s.slave, Stderr: s.slave,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill() // the test failed before the end of the program
			_ = cmd.Wait()
		}
	})
	return cmd
}

// press types a key.
func (s *screen) press(t *testing.T, key string) {
	t.Helper()
	if _, err := s.master.WriteString(key); err != nil {
		t.Fatal(err)
	}
}

const ctrlC = "\x03"

// gozzardHere runs the program in a folder, without a terminal.
func gozzardHere(t *testing.T, dir string, args ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Args[0], cmd.Dir = "gozzard", dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("gozzard %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestPartingWords: on a terminal the log is text, and Ctrl-C ends `gozzard dev` with what keeps running and how to go
// on. The words are right: the process runs, and the printed command supervises it again.
func TestPartingWords(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := newScreen(t)
	dev := s.start(t, dir, nil, "dev", "--listen", "127.0.0.1:0", "--log-level", "info")
	s.await(t, `^gozzard serves 1 host`)
	if text := s.text(); !regexp.MustCompile(`\d\d:\d\d:\d\d\S* \S*INFO \S* ?agent started \S*host=`).MatchString(text) ||
		strings.Contains(text, `"msg"`) {
		t.Errorf("the log on a terminal is not text:\n%q", text)
	}

	// End it while a process runs.
	gozzardHere(t, dir, "run", "--name", "nap", "--", "sleep", "60")
	s.press(t, ctrlC)
	s.await(t, `^1 process keeps running\. Until the next start nothing supervises it\.\n`+
		`Start it again with: gozzard dev --listen 127\.0\.0\.1:0 --log-level info$`)
	if err := dev.Wait(); err != nil {
		t.Errorf("dev ends with %v", err)
	}

	// Start it again, end the process, and end it.
	s = newScreen(t)
	dev = s.start(t, dir, nil, "dev", "--listen", "127.0.0.1:0")
	s.await(t, `^gozzard serves 1 host`)
	gozzardHere(t, dir, "stop", "nap")
	s.press(t, ctrlC)
	s.await(t, `^No process is left running\.$`)
	if err := dev.Wait(); err != nil {
		t.Errorf("the second dev ends with %v", err)
	}
}

// TestBashCompletes: the script of `gozzard completion bash` completes in a real bash, when a person presses Tab.
func TestBashCompletes(t *testing.T) {
	t.Parallel()
	const library = "/usr/share/bash-completion/bash_completion"
	if _, err := os.Stat(library); err != nil {
		t.Skip("bash-completion is not installed")
	}
	dir := t.TempDir()
	s := newScreen(t)
	dev := s.start(t, dir, nil, "dev", "--listen", "127.0.0.1:0")
	s.await(t, `^gozzard serves 1 host`)
	gozzardHere(t, dir, "run", "--name", "wobble", "--", "sleep", "60")
	if err := os.WriteFile(filepath.Join(dir, "rc"), []byte("PS1='ready> '\nsource "+library+
		"\nsource <(gozzard completion bash)\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	// Type, press Tab, and execute what bash has made of it.
	bash := newScreen(t)
	cmd := exec.CommandContext(t.Context(), "bash", "--noprofile", "--rcfile", "rc", "-i")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TERM=dumb", "HOME="+dir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bash.slave, bash.slave, bash.slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	bash.await(t, `ready> $`)
	bash.press(t, "gozzard stop wob\t")
	bash.await(t, `gozzard stop wobble $`)
	bash.press(t, "--host 127.0\t")
	bash.await(t, `--host 127\.0\.0\.1 $`)
	bash.press(t, "\n")
	bash.await(t, `^stop: 1 done of 1`)
	bash.press(t, "gozzard unm\t\n")
	bash.await(t, `gozzard unmanage `)
	bash.await(t, `^gozzard: choose processes with NAME`)
	bash.press(t, "exit\n")
	_ = cmd.Wait() // with the exit code of the last command

	s.press(t, ctrlC)
	if err := dev.Wait(); err != nil {
		t.Errorf("dev ends with %v", err)
	}
}

// TestPartingOfServerAndAgent: the other two long-running commands part, too.
func TestPartingOfServerAndAgent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := newScreen(t)
	server := s.start(t, dir, nil, "server", "--data", "my data", "--listen", "127.0.0.1:0", "--agent-listen", "127.0.0.1:0",
		"--log-format", "json")
	s.await(t, `"msg":"server started".*"agents":"127`)
	port := regexp.MustCompile(`"agents":"([^"]+)"`).FindStringSubmatch(s.text())[1]

	screenOfAgent := newScreen(t)
	agent := screenOfAgent.start(t, dir, []string{"NO_COLOR=1"}, "agent", "--server", port, "--secret-file",
		filepath.Join("my data", "join.secret"), "--log-level", "info")
	screenOfAgent.await(t, `^\d\d:\d\d:\d\d INFO  agent started agent=`)
	screenOfAgent.press(t, ctrlC)
	screenOfAgent.await(t, `^No process is left running\.\nStart it again with: gozzard agent `)
	if err := agent.Wait(); err != nil {
		t.Errorf("the agent ends with %v:\n%s", err, screenOfAgent.text())
	}

	s.press(t, ctrlC)
	s.await(t, `^The agents keep supervising .*\nStart it again with: gozzard server --data 'my data' --listen `)
	if err := server.Wait(); err != nil {
		t.Errorf("the server ends with %v:\n%s", err, s.text())
	}
}

// TestSecondCtrlC: the second Ctrl-C ends a program at once that does not end by the first.
func TestSecondCtrlC(t *testing.T) {
	t.Parallel()
	if os.Getenv("GOZZARD_TEST_STUBBORN") != "" {
		ctx, _ := untilSignal(t.Context())
		fmt.Println("ready")
		<-ctx.Done()
		fmt.Println("first")
		select {} // does not end by itself
	}

	s := newScreen(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestSecondCtrlC$")
	cmd.Env = append(os.Environ(), "GOZZARD_TEST_STUBBORN=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.slave, s.slave, s.slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.await(t, "^ready$")
	s.press(t, ctrlC)
	s.await(t, "first$")
	s.press(t, ctrlC)
	_ = cmd.Wait() // says the same as the state
	if st := cmd.ProcessState.Sys().(syscall.WaitStatus); !st.Signaled() || st.Signal() != syscall.SIGINT {
		t.Errorf("the second Ctrl-C: %v", cmd.ProcessState)
	}
}

// TestEditAsks: at a terminal `gozzard edit` asks a person before it registers.
func TestEditAsks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := newScreen(t)
	dev := s.start(t, dir, nil, "dev", "--listen", "127.0.0.1:0")
	s.await(t, `^gozzard serves 1 host`)
	if err := os.WriteFile(filepath.Join(dir, "web.yaml"), []byte("name: web\ncommand: sleep 60\nuser: root\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	gozzardHere(t, dir, "register", "-f", "web.yaml")

	for _, c := range []struct{ answer, said, now string }{
		{"n\n", `^nothing was registered$`, "sleep 60"}, {"y\n", `register web: 1 done of 1 \(1 changed\)$`, "sleep 61"}} {
		person := newScreen(t)
		cmd := person.start(t, dir, []string{"VISUAL=sed -i 's/sleep 60/sleep 61/'", "TMPDIR=" + dir}, "edit", "web")
		person.await(t, `~ command: "sleep 60" -> "sleep 61"`)
		person.await(t, `Register this\? \[y/N\] $`)
		person.press(t, c.answer)
		person.await(t, c.said)
		if err := cmd.Wait(); err != nil {
			t.Errorf("edit ends with %v:\n%s", err, person.text())
		}
		if text := gozzardHere(t, dir, "show", "web"); !strings.Contains(text, "command: "+c.now+"\n") {
			t.Errorf("after %q the definition is\n%s", c.answer, text)
		}
	}

	s.press(t, ctrlC)
	if err := dev.Wait(); err != nil {
		t.Errorf("dev ends with %v", err)
	}
}
