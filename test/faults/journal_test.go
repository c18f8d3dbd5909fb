//go:build linux

package faults_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/journal"
	ft "github.com/gozzard/gozzard/test/fleettest"
	"github.com/gozzard/gozzard/test/ledger"
)

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// stamps lists the files of a state folder with their contents, without those of updates, which an older program must
// be able to use to hand back to the newer one.
func stamps(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), "update.") {
			return err
		}
		all = append(all, fmt.Sprintf("%s %x", path, sha256.Sum256(read(t, path))))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A7: a newer program wrote the state. The agent rejects it with a clear error and does not change a byte of it, so
// that the newer program finds it unchanged.
func TestA7NewerJournal(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	agent := s.StartAgent(t, 1, "")
	f := startFleet(t, s, agent, "gznewer", 5)
	agent.Kill(syscall.SIGTERM)
	path := filepath.Join(agent.Flag("--data"), "journal")
	old := read(t, path)
	newer := bytes.Clone(old)
	binary.LittleEndian.PutUint32(newer[8:], 1000)
	binary.LittleEndian.PutUint32(newer[12:], crc32.Checksum(newer[:12], crc32.MakeTable(crc32.Castagnoli)))
	write(t, path, newer)
	data := agent.Flag("--data")
	before := stamps(t, data)
	agent.Again()

	select {
	case <-agent.Done():
	case <-time.After(30 * time.Second):
		t.Fatal("an older program runs on a newer journal")
	}

	same := bytes.Equal(read(t, path), newer) && strings.Join(stamps(t, data), "\n") == strings.Join(before, "\n")
	said := strings.Contains(agent.Output(), "use the newer program") &&
		strings.Contains(agent.Output(), "format version 1000, this program knows versions up to "+
			strconv.Itoa(journal.FormatVersion))
	fmt.Printf("fault A7: a newer journal is rejected with exit code %d, with a clear error %v, untouched %v\n",
		agent.ExitCode(), said, same)

	if agent.ExitCode() == 0 || !said || !same {
		t.Error(agent.Output())
	}

	// Neither does anything else change it, whatever else of the folder is newer.
	for _, args := range [][]string{{"agent", "doctor", "--data", data},
		{"agent", "join", "--data", data, "--token-file", "none", "--server", "https://127.0.0.1:1"}} {
		out, err := exec.Command(ft.Binary(t), args...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "format version 1000") || strings.Join(stamps(t, data), "\n") != strings.Join(before, "\n") {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}

	write(t, path, old)
	s.AgainOnline(t, agent)
	f.untouched("after the refusal")
}

// A8: the journal is damaged while the agent is down. Verdicts are never wrong, and running processes are not touched.
func TestA8DamagedJournal(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	agent := s.StartAgent(t, 1, "")
	f := startFleet(t, s, agent, "gzdamage", 5)
	l := ledger.New(t, s.API)
	stop := l.Steady(1, 2*time.Millisecond)
	path := filepath.Join(agent.Flag("--data"), "journal")

	damages := []func([]byte) []byte{
		func(b []byte) []byte { return b[:rand.IntN(len(b))] },
		func(b []byte) []byte { b[rand.IntN(len(b))] ^= 1 << rand.IntN(8); return b },
		func([]byte) []byte { return nil },
		func(b []byte) []byte { return b[:len(b)-1-rand.IntN(min(200, len(b)-1))] },
	}

	rounds := min(2**scale, 50) * len(damages)
	for i := range rounds {
		time.Sleep(time.Duration(50+rand.IntN(150)) * time.Millisecond)
		agent.Kill(syscall.SIGKILL)
		write(t, path, damages[i%len(damages)](read(t, path)))
		s.AgainOnline(t, agent)
	}

	stop()
	fmt.Printf("fault A8: %d damaged journals\n", rounds)
	l.Afterwards(8, 1)
	l.Judge("A8", ledger.Floor{OK: 8, Interrupted: 4}) // those afterwards; how many of the others are executed depends on the machine
	f.untouched("after the damage")
	cameBack(t, f.ds[0])
}

// A9: the state folder is restored from an old copy. The server notices, and no verdict becomes wrong.
func TestA9OldCopy(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	agent := s.StartAgent(t, 1, "")
	f := startFleet(t, s, agent, "gzcopyback", 5)
	data := agent.Flag("--data")
	rounds := min(3**scale, 60)
	const noticed = "a host has another journal than before, or an older copy of it"
	before := strings.Count(s.Output(), noticed)
	var figs ledger.Figures
	for round := range rounds {
		l := ledger.New(t, s.API)
		l.Prefix = fmt.Sprintf("round%d-", rand.Uint64())
		agent.Kill(syscall.SIGKILL)
		backup := filepath.Join(t.TempDir(), "backup")
		command(t, "cp", "-a", data, backup)
		s.AgainOnline(t, agent)
		stop := l.Steady(1, time.Millisecond)
		ft.Until(t, 30*time.Second, func() string { return "nothing is executed that the copy does not have" },
			func() bool { return len(l.Effects()) >= 10 })
		agent.Kill(syscall.SIGKILL)
		command(t, "rm", "-r", data)
		command(t, "cp", "-a", backup, data)
		s.AgainOnline(t, agent)
		time.Sleep(100 * time.Millisecond)
		stop()
		ft.Until(t, 30*time.Second, func() string { return "the server has not noticed the old copy" },
			func() bool { return strings.Count(s.Output(), noticed) > before+round })
		l.Afterwards(8, 1)
		figs.Add(l.Collect())
	}

	found := strings.Count(s.Output(), noticed) - before
	fmt.Printf("fault A9: %d of %d roll-backs noticed; %s\n", found, rounds, figs)

	if fault := figs.Fault(ledger.Floor{OK: 9 * rounds}); found != rounds || fault != "" {
		t.Errorf("%d of %d; %s", found, rounds, fault)
	}

	f.untouched("after the roll-backs")
}

// tiny mounts a small file system in memory.
func tiny(t *testing.T, size string) string {
	t.Helper()
	needs(t)
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=0700,size="+size); err != nil {
		t.Skipf("cannot mount a small disk: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, 2) }) // lazily: the agent may still be ending
	return dir
}

// A11, TD19: the disk of the journal is full. New operations are rejected with a clear error and have no effect, supervised
// processes stay supervised, stop, kill and unhost are carried out, and work resumes afterwards.
func TestA11JournalDiskFull(t *testing.T) {
	s := ft.StartServer(t, "")
	disk := tiny(t, "4m")
	agent := s.StartAgentIn(t, 1, disk, "")
	f := startFleet(t, s, agent, "gzroom", 5)
	d := f.ds[0]
	fillDisk(t, filepath.Join(disk, "fill"))
	done, refused := 0, 0
	var words string
	for range 300 { // the last page still has space for some
		switch e := operate(t, s.API, d, 8, d.Spec(nil)); {
		case e.Code == 0:
			done++
		case contains(e.Msg, "is full"):
			refused, words = refused+1, e.Msg
		default:
			t.Fatalf("%+v", e)
		}
		fillDisk(t, filepath.Join(disk, "fill"))
		if refused >= 10**scale {
			break
		}
	}

	without := d.Count("reload") - done
	f.untouched("on a full disk")
	back := 0
	for _, d := range f.ds[1:3] {
		cameBack(t, d)
		back++
	}

	// What ends something is carried out and recorded, although whatever becomes free is taken at once.
	for op, d := range map[int]*ft.Daemon{1: f.ds[1], 4: f.ds[2], 9: f.ds[3]} { // stop, supervise no longer, kill
		if e := operate(t, s.API, d, op, d.Spec(nil)); e.Code != 0 {
			t.Errorf("action %d on a full disk: %d %s", op, e.Code, e.Msg)
		}
		fillDisk(t, filepath.Join(disk, "fill"))
		if op != 4 && d.Copies() != 0 {
			t.Errorf("action %d: %s still runs", op, d.Name)
		}
	}
	if e := operate(t, s.API, f.ds[1], 0, f.ds[1].Spec(nil)); !contains(e.Msg, "is full") {
		t.Errorf("start on a full disk: %d %s", e.Code, e.Msg)
	}

	if err := os.Remove(filepath.Join(disk, "fill")); err != nil {
		t.Fatal(err)
	}

	ft.Until(t, 30*time.Second, func() string { return "service does not resume" },
		func() bool { return operate(t, s.API, d, 8, d.Spec(nil)).Code == 0 })

	fmt.Printf("fault A11: %d operations done, %d refused on a full disk, %d effects without a record, %d of 2 killed processes came back: %q\n", done, refused, without, back, words)

	if refused == 0 || without != 0 {
		t.Error("see the line above")
	}
}

// traced makes the next start of an agent run with a fault injected into its system calls.
func traced(t *testing.T, agent *ft.Program, inject string) {
	t.Helper()
	needs(t, "strace")
	call, _, _ := strings.Cut(inject, ":")
	// -D: the tracer runs in the background, and the agent is the child that the test kills and waits for.
	agent.Through("strace", "-D", "-f", "-qq", "--seccomp-bpf", "-o", "/dev/null", "-e", "trace="+call, "-e",
		"inject="+inject)
}

// A12: the disk fails at a sync. The agent ends with the exit code for that, does not repeat the sync, and recovers
// when it is started again.
func TestA12SyncFails(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	agent := s.StartAgent(t, 1, "")
	f := startFleet(t, s, agent, "gzsync", 5)
	l := ledger.New(t, s.API)
	rounds := 2 * *scale
	right := 0
	stop := l.Steady(1, 5*time.Millisecond)

	for range rounds {
		agent.Kill(syscall.SIGKILL)
		// strace counts by thread, and threads come and go: a high number would never be reached.
		traced(t, agent, fmt.Sprintf("fdatasync:error=EIO:when=%d", 2+rand.IntN(3)))
		agent.Again()
		select {
		case <-agent.Done():
		case <-time.After(time.Minute):
			t.Fatal("the agent goes on though its disk fails")
		}
		if agent.ExitCode() == 70 {
			right++
		}
		agent.Through()
		s.AgainOnline(t, agent)
	}

	stop()
	fmt.Printf("fault A12: %d of %d failed syncs ended the agent with code 70\n", right, rounds)

	if right != rounds {
		t.Errorf("%d of %d; the last code is %d", right, rounds, agent.ExitCode())
	}

	l.Afterwards(8, 1)
	l.Judge("A12", ledger.Floor{OK: 12})
	f.untouched("after failed syncs")
}

// A13: a slow disk. Operations take longer, and the host stays online.
func TestA13SlowDisk(t *testing.T) {
	t.Parallel()
	s := ft.StartServer(t, "")
	agent := s.StartAgent(t, 1, "")
	f := startFleet(t, s, agent, "gzslow", 3)
	agent.Kill(syscall.SIGKILL)
	traced(t, agent, "fdatasync:delay_exit=400000")
	s.AgainOnline(t, agent)
	sessions := agent.Sessions()
	var took []time.Duration
	misses := 0
	for end := time.Now().Add(18 * time.Second * time.Duration(min(*scale, 10))); time.Now().Before(end); {
		began := time.Now()
		must(t, operate(t, s.API, f.ds[0], 8, f.ds[0].Spec(nil)), 0)
		took = append(took, time.Since(began))
		if !s.Online(1) {
			misses++
		}
	}

	fmt.Printf("fault A13: syncs of 400 ms: %d operations, p50 %d ms; %d times offline, %d new sessions\n", len(took),
		percentile(took, 0.5).Milliseconds(), misses,
		agent.Sessions()-sessions)

	if misses > 0 || agent.Sessions() != sessions {
		t.Error("see the line above")
	}

	agent.Through()
	f.untouched("on a slow disk")
}
