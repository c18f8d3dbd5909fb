//go:build linux

package faults_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

var fileKills = flag.Int("faults.filekills", 24, "how often the agent is killed while it writes a file")

// fileRig writes one file again and again while its agent is killed, and judges what is there afterwards.
type fileRig struct {
	t     *testing.T
	s     *ft.Server
	c     *client.Client
	agent *ft.Program
	arm   string // the file that names a failpoint
	dir   string
	now   string // the content that the file has
	lines int    // of a content

	ok, interrupted, never, torn, lost, wrong, left int
}

func newFileRig(t *testing.T) *fileRig {
	t.Helper()
	r := &fileRig{t: t, s: ft.StartServer(t, ""), arm: filepath.Join(t.TempDir(), "failpoint"), lines: 4000}
	r.c = caller(t, r.s)
	r.agent = r.s.StartAgent(t, 1, "", "GOZZARD_FAILPOINT_FILE="+r.arm)
	r.dir = t.TempDir()
	if err := errors.Join(os.Chmod(filepath.Dir(r.dir), 0o755), os.Chmod(r.dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *fileRig) path() string { return filepath.Join(r.dir, "x.conf") }

// content is the i-th content: large enough to be written in several steps of the kernel.
func (r *fileRig) content(i int) string {
	return fmt.Sprintf("%08d\n", i) + strings.Repeat(fmt.Sprintf("line of %d\n", i), r.lines)
}

// round writes a content, kills the agent meanwhile, and judges.
func (r *fileRig) round(i int, place string) {
	r.t.Helper()
	if place != "" {
		if err := os.WriteFile(r.arm, []byte(place), 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
	a := r.write(i)

	// Kill it.
	if place != "" {
		select {
		case <-r.agent.Done():
		case <-time.After(time.Minute):
			r.t.Fatalf("the agent never came to %s", place)
		}
	} else {
		time.Sleep(time.Duration(rand.IntN(12_000)) * time.Microsecond)
		r.agent.Kill(syscall.SIGKILL)
	}
	r.agent.Again()
	r.end(i, a)
}

// write begins to write a content.
func (r *fileRig) write(i int) client.Accepted {
	r.t.Helper()
	a, err := r.c.WriteFile(r.t.Context(), client.FileWrite{Namespace: "faults", Path: r.path(), Account: "root",
		Hosts: []client.Host{{IP: "127.0.0.1"}}, Content: []byte(r.content(i)), Offline: client.Offline{Wait: time.Minute}})
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

// end waits for the verdict and judges.
func (r *fileRig) end(i int, a client.Accepted) {
	r.t.Helper()
	task, err := r.c.Wait(r.t.Context(), a.TaskID, nil)
	if err != nil || len(task.Attempts) != 1 {
		r.t.Fatalf("%+v %v", task, err)
	}
	r.judge(r.content(i), &task.Attempts[0])
}

// judge compares the verdict with the file.
func (r *fileRig) judge(wanted string, a *client.Attempt) {
	r.t.Helper()
	b, err := os.ReadFile(r.path())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		r.t.Fatal(err)
	}
	is := string(b)
	switch a.State {
	case "ok":
		r.ok++
	case "interrupted":
		r.interrupted++
	default:
		r.never++
	}

	switch {
	case is != wanted && is != r.now:
		r.torn++
		r.t.Errorf("the file has %d bytes of neither content", len(is))
	case a.State == "ok" && is != wanted, a.State != "ok" && a.State != "interrupted" && is == wanted:
		r.wrong++
		r.t.Errorf("the verdict is %s (%s), and the file has the new content: %v", a.State, a.Message, is == wanted)
	}

	// The former content is kept, and nothing is left beside the file.
	if is == wanted && r.now != "" {
		list, err := r.c.FileVersions(r.t.Context(), client.FileQuery{Namespace: "faults", Host: "127.0.0.1", Path: r.path(),
			Account: "root"})
		if err != nil {
			r.t.Fatal(err)
		}
		if !slices.ContainsFunc(list.Versions, func(v client.FileVersion) bool {
			return v.SHA256 == gozzard.FileDigest([]byte(r.now))
		}) {
			r.lost++
			r.t.Errorf("the former content is not kept")
		}
	}
	if all, err := os.ReadDir(r.dir); err != nil || len(all) > 1 {
		r.left++
		r.t.Errorf("%v is left, %v", all, err)
	}
	r.now = is
}

func (r *fileRig) print(name string) {
	fmt.Printf("fault %s: %d kills: %d ok, %d interrupted, %d not executed; %d torn files, %d lost backups, %d wrong verdicts, "+
		"%d temporary files left\n", name, r.ok+r.interrupted+r.never, r.ok, r.interrupted, r.never, r.torn, r.lost, r.wrong, r.left)
}

// TestA26FileAtEachStep: the agent is killed at each step of writing a file. Where the file is evidence, the verdict says so.
func TestA26FileAtEachStep(t *testing.T) {
	r := newFileRig(t)
	i := 0
	for _, step := range []struct{ place, want string }{
		{"intent", "ok"},                // it is sent again
		{"after-intent", "interrupted"}, // nothing was written
		{"file-kept", "interrupted"},
		{"after-effect", "ok"}, // the file is as it must be
		{"after-done", "ok"},
	} {
		for range 2 {
			i++
			ok, interrupted := r.ok, r.interrupted
			r.round(i, step.place)
			if step.want == "ok" && r.ok != ok+1 || step.want == "interrupted" && r.interrupted != interrupted+1 {
				t.Errorf("killed at %s: %d ok, %d interrupted, %d not executed", step.place, r.ok, r.interrupted, r.never)
			}
		}
	}
	r.print("A26 at each step")
}

// TestA26FileKills: the agent is killed at random moments while it writes a file.
func TestA26FileKills(t *testing.T) {
	r := newFileRig(t)
	for i := range *fileKills {
		r.round(i+1, "")
	}
	r.print("A26")
	if r.ok == 0 {
		t.Error("no file was ever written")
	}
}

// TestA26LargeFile: a content of several parts. The agent is killed between two parts, and at random moments; then the server is
// killed. What has not begun is sent again, and nothing is torn.
func TestA26LargeFile(t *testing.T) {
	r := newFileRig(t)
	r.lines = 100_000 // more than a megabyte
	for i := range 4 {
		ok := r.ok
		if r.round(i+1, "file-part"); r.ok != ok+1 {
			t.Errorf("killed between two parts: %d ok, %d interrupted, %d not executed", r.ok, r.interrupted, r.never)
		}
	}
	for i := range 6 {
		r.round(i+10, "")
	}
	for i := range 2 {
		a := r.write(i + 20)
		r.s.Kill(syscall.SIGKILL)
		r.s.Again()
		r.s.AwaitReady()
		r.end(i+20, a)
	}
	r.print("A26 large")
}
