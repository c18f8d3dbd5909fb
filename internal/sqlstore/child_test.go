//go:build !windows

package sqlstore_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// The environment of a child process, which is this test binary again: the path of its database, and its mode.
const (
	childEnv     = "GOZZARD_SQLSTORE_CHILD"
	childModeEnv = "GOZZARD_SQLSTORE_CHILD_MODE"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		os.Exit(child(path, os.Getenv(childModeEnv)))
	}
	os.Exit(m.Run())
}

// child accepts tasks from four callers until it is killed, and prints the number of each task after it was
// acknowledged. In mode "sick" its files cannot grow beyond a size, which is an I/O error for SQLite. In mode "large"
// its tasks are large, so that the write-ahead log is copied into the database again and again.
func child(path, mode string) int {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}

	fatal := func(err error) {
		fmt.Fprintln(os.Stderr, "fatal:", err)
		os.Exit(70)
	}

	s, err := sqlstore.OpenSQLite(context.Background(), path, sqlstore.Options{Fatal: fatal})
	if err != nil {
		return fail(err)
	}

	if mode == "sick" {
		limit := syscall.Rlimit{Cur: 3 << 20, Max: 3 << 20}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			return fail(err)
		}
	}

	size := 5
	if mode == "large" {
		size = 400
	}

	fmt.Println("ready")
	errs := make(chan error)
	for range 4 {
		go func() {
			for {
				t := benchTask(size)
				if _, err := s.Accept(context.Background(), t); err != nil {
					errs <- err
					return
				}
				if _, err := os.Stdout.WriteString(strconv.FormatInt(int64(t.Task.Seq), 10) + "\n"); err != nil {
					errs <- err
					return
				}
			}
		}()
	}

	// A caller may get its error before the fatal one ends the process.
	err = <-errs
	if mode == "sick" {
		time.Sleep(time.Minute)
	}
	return fail(err)
}

// startChild starts a child and waits until it has opened the database.
func startChild(t *testing.T, path, mode string) (*exec.Cmd, *bufio.Scanner, *strings.Builder) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+path, childModeEnv+"="+mode)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill() // it may have ended meanwhile
			_ = cmd.Wait()
		}
	})

	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "ready" {
		t.Fatalf("the child did not come up: %q %s", lines.Text(), stderr.String())
	}

	return cmd, lines, &stderr
}

func readSeqs(t *testing.T, lines *bufio.Scanner, most int) (acked []gozzard.TaskSeq) {
	t.Helper()
	for len(acked) < most && lines.Scan() {
		n, err := strconv.ParseInt(lines.Text(), 10, 64)
		if err != nil {
			break // cut in the middle of a line
		}
		acked = append(acked, gozzard.TaskSeq(n))
	}
	return acked
}

func wantTasks(t *testing.T, s *sqlstore.Store, acked []gozzard.TaskSeq) {
	t.Helper()
	for _, seq := range acked {
		list, err := s.Attempts(t.Context(), seq)
		if err != nil || len(list) != 5 {
			t.Fatalf("task %d was acknowledged: %d attempts, %v", seq, len(list), err)
		}
	}
}

// TestKilled: every acknowledged task is still there after kill -9, several times in a row.
func TestKilled(t *testing.T) {
	path := t.TempDir() + "/record.db"
	var acked []gozzard.TaskSeq
	for range 3 {
		cmd, lines, _ := startChild(t, path, "")
		acked = append(acked, readSeqs(t, lines, 150)...)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		acked = append(acked, readSeqs(t, lines, 1<<30)...)
		if err := cmd.Wait(); err == nil {
			t.Fatal("the child ended by itself")
		}
		s := openSQLite(t, path, sqlstore.Options{})
		wantTasks(t, s, acked)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}

	if len(acked) < 450 {
		t.Fatalf("only %d tasks were acknowledged", len(acked))
	}
}

// TestDiskFails: an I/O error ends the process, and nothing is acknowledged after it.
func TestDiskFails(t *testing.T) {
	path := t.TempDir() + "/record.db"
	cmd, lines, stderr := startChild(t, path, "sick")
	acked := readSeqs(t, lines, 1<<30)
	err := cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 70 {
		t.Fatalf("the child ended with %v: %s", err, stderr.String())
	}
	if !strings.Contains(stderr.String(), "fatal: the disk of the database failed") {
		t.Fatalf("it said %q", stderr.String())
	}
	if len(acked) == 0 {
		t.Fatal("nothing was acknowledged before")
	}

	wantTasks(t, openSQLite(t, path, sqlstore.Options{}), acked)
}

// TestInUse: the error for a second process names the pid of the first.
func TestInUse(t *testing.T) {
	path := t.TempDir() + "/record.db"
	cmd, _, _ := startChild(t, path, "")
	_, err := sqlstore.OpenSQLite(t.Context(), path, sqlstore.Options{})
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("database in use by pid %d", cmd.Process.Pid)) {
		t.Fatalf("a second opener got %v", err)
	}
	if gozzard.KindOf(err) != gozzard.ErrConflict {
		t.Fatalf("its kind is %s", gozzard.KindOf(err))
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}

	_ = cmd.Wait() // killed
	openSQLite(t, path, sqlstore.Options{})
}
