package host_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/host"
	"github.com/gozzard/gozzard/internal/supervise"
)

func smallLogs(o *host.Options) { o.LogBytes = 64 << 10 }

func (f *fixture) logDir(k gozzard.Key) string {
	return filepath.Join(f.state, "logs", host.KeyFolder(k))
}

// readAll follows a log from a position to its end.
func (f *fixture) readAll(k gozzard.Key, from int64) (data []byte, next int64) {
	f.t.Helper()
	for {
		c := f.ReadLog(gozzard.LogQuery{Key: k, Offset: from, Max: 1000})
		if c.Error != "" || len(c.Data) > 1000 {
			f.t.Fatalf("%d bytes, error %q", len(c.Data), c.Error)
		}
		if len(c.Data) == 0 {
			return data, from
		}
		data, from = append(data, c.Data...), c.Next
	}
}

func TestLogHasWhatTheProcessAndItsCommandsPrint(t *testing.T) {
	f := newHost(t)
	k, s := f.key("日志"), f.spec("x")
	if c := f.ReadLog(gozzard.LogQuery{Key: k, Offset: -1}); c.Error == "" || c.Data != nil {
		t.Errorf("log of nothing: %+v", c)
	}

	for i, want := range []string{"第一", "second", "third"} {
		if res := f.run(k, s, true, "echo "+want); res.Output != want {
			t.Errorf("%d: a command's output is %q, not only its own", i, res.Output)
		}
	}

	f.run(k, s, false, "echo of a stop command")
	res, err := f.Run(t.Context(), supervise.Run{Key: k, Spec: s, Action: gozzard.ActionReload,
		Command: "echo reloaded", Timeout: time.Minute, Keeps: true})
	if err != nil || res.Output != "reloaded" {
		t.Errorf("%+v %v", res, err)
	}

	const want = "第一\nsecond\nthird\nreloaded\n"
	c := f.ReadLog(gozzard.LogQuery{ID: gozzard.NewOpID(), Key: k, Offset: 0})
	if string(c.Data) != want || c.Offset != 0 || c.Next != int64(len(want)) || c.Error != "" ||
		c.ID == (gozzard.OpID{}) {
		t.Errorf("%+v %q", c, c.Data)
	}

	c = f.ReadLog(gozzard.LogQuery{Key: k, Offset: -1, Lines: 2})
	if string(c.Data) != "third\nreloaded\n" || c.Next != int64(len(want)) || c.Offset != c.Next-int64(len(c.Data)) {
		t.Errorf("%+v %q", c, c.Data)
	}
	if c = f.ReadLog(gozzard.LogQuery{Key: k, Offset: 1 << 40}); c.Next != int64(len(want)) || len(c.Data) != 0 ||
		c.Error != "" {
		t.Errorf("beyond the end: %+v", c)
	}
}

func TestLogPositionsSurviveRotationAndRestart(t *testing.T) {
	f := newHost(t, smallLogs)
	k, s := f.key("a"), f.spec("x")
	line := func(i int) string { return fmt.Sprintf("line %06d %s\n", i, strings.Repeat("x", 80)) }
	const perRound = 1000 // about 95 KB
	print := func(round int) {
		f.run(k, s, true,
			fmt.Sprintf(`awk 'BEGIN { x = sprintf("%%80s", ""); gsub(" ", "x", x); for (i = %d; i < %d; i++) printf "line %%06d %%s\n", i, x }'`,
				round*perRound, (round+1)*perRound))
	}

	var all []byte
	next := int64(0)
	for round := range 9 {
		print(round)
		if round == 4 {
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			f.Host = f.open()
		}
		if round%2 == 0 {
			data, at := f.readAll(k, next)
			all, next = append(all, data...), at
			host.Tidy(f.Host)
		} else {
			host.Tidy(f.Host)
			data, at := f.readAll(k, next)
			all, next = append(all, data...), at
		}
	}

	if want := int64(9 * perRound * len(line(0))); next != want {
		t.Errorf("the log ends at %d, %d were printed", next, want)
	}

	// Text that was not read before it was rotated away is lost. All other text is read once and in order.
	last := -1
	for l := range bytes.Lines(all[bytes.IndexByte(all, '\n')+1:]) {
		var i int
		if _, err := fmt.Sscanf(string(l), "line %d", &i); err == nil {
			if i <= last {
				t.Fatalf("line %d after %d", i, last)
			}
			last = i
		}
	}

	if last != 9*perRound-1 {
		t.Errorf("the last line is %d", last)
	}

	files, _ := filepath.Glob(f.logDir(k) + "/*.log")
	var sum int64
	for _, p := range files {
		fi, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		if fi.Mode().Perm()&0o044 != 0 {
			t.Errorf("%s may be read by others: %v", p, fi.Mode())
		}
		sum += fi.Size()
	}

	if len(files) > 6 || sum > 6*(64<<10) {
		t.Errorf("%d files of %d bytes", len(files), sum)
	}

	c := f.ReadLog(gozzard.LogQuery{Key: k, Offset: 0, Max: 1 << 30})
	if c.Error != "" || c.Offset == 0 || len(c.Data) == 0 || len(c.Data) > 256<<10 {
		t.Errorf("%d bytes from %d, error %q", len(c.Data), c.Offset, c.Error)
	}

	c = f.ReadLog(gozzard.LogQuery{Key: k, Offset: -1, Lines: 3})
	if want := line(9*perRound-3) + line(9*perRound-2) + line(9*perRound-1); string(c.Data) != want || c.Next != next {
		t.Errorf("%q, next %d of %d", c.Data, c.Next, next)
	}
}

// P15: a flood of output is cut, and the process that prints it is not delayed.
func TestP15FloodIsBounded(t *testing.T) {
	f := newHost(t)
	f.needsCgroups()
	k, s := f.key("洪"), f.spec("flood")
	script := f.script("flood", "head -c 104857600 /dev/zero; echo >flag; exec sleep 300")
	s.Identity.ProcName = "sleep"
	f.run(k, s, true, script+" &")
	f.eventually("the flood is over", func() bool { return exists(f.dir + "/flag") })
	host.Tidy(f.Host)
	host.Tidy(f.Host)
	files, _ := filepath.Glob(f.logDir(k) + "/*.log")
	var sum int64
	for _, p := range files {
		if fi, err := os.Stat(p); err == nil {
			sum += fi.Size()
		}
	}

	t.Logf("100 MiB printed, %d files of %d KiB kept", len(files), sum>>10)

	if sum > 7*(20<<20) {
		t.Errorf("%d bytes are kept", sum)
	}
	if c := f.ReadLog(gozzard.LogQuery{Key: k, Offset: -1}); c.Next < 10<<20 || c.Error != "" {
		t.Errorf("next is %d", c.Next)
	}
}

func TestLogOfTheSilentAndGoneIsRemoved(t *testing.T) {
	f := newHost(t, func(o *host.Options) { o.LogAge = time.Hour })
	f.needsCgroups()
	gone, silent := f.key("gone"), f.key("silent")
	f.run(gone, f.spec("x"), true, "echo last words")
	f.run(silent, f.spec("x"), true, "echo hello; sleep 300 &")
	host.Tidy(f.Host)
	old := time.Now().Add(-2 * time.Hour)
	for _, k := range []gozzard.Key{gone, silent} {
		if !exists(f.logDir(k)) {
			t.Fatal("removed too early")
		}
		if err := os.Chtimes(f.logDir(k)+"/current.log", old, old); err != nil {
			t.Fatal(err)
		}
	}

	host.Tidy(f.Host)

	if exists(f.logDir(gone)) || !exists(f.logDir(silent)) {
		t.Errorf("gone: %v, silent: %v", exists(f.logDir(gone)), exists(f.logDir(silent)))
	}
}

// diskUsage is the disk space of the files in a folder.
func diskUsage(t *testing.T, dir string) (sum int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		var st syscall.Stat_t
		if err == nil {
			err = syscall.Lstat(path, &st)
		}
		sum += st.Blocks * 512
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// TestTD19LogIsJudgedByItsBlocks: a process allocates blocks behind the end of its log or of the output of a command, or
// sets its size. The blocks are freed, and the text before and after is read.
func TestTD19LogIsJudgedByItsBlocks(t *testing.T) {
	f := newHost(t, smallLogs)
	f.needsCgroups()
	k, s := f.key("a"), f.spec("x")
	f.run(k, s, true, "echo before; fallocate -n -l 64M /dev/stdout")
	if n := diskUsage(t, f.logDir(k)); n < 64<<20 {
		t.Fatalf("only %d bytes are allocated", n)
	}
	host.Tidy(f.Host)
	f.run(k, s, true, "echo after")
	if n := diskUsage(t, f.logDir(k)); n > 1<<20 {
		t.Errorf("%d bytes are still allocated", n)
	}
	if text, _ := f.readAll(k, 0); string(text) != "before\nafter\n" {
		t.Errorf("the log is %q", text)
	}

	// An empty one.
	empty := f.key("empty")
	f.run(empty, s, true, "fallocate -n -l 64M /dev/stdout")
	host.Tidy(f.Host)
	if n := diskUsage(t, f.logDir(empty)); n > 1<<20 {
		t.Errorf("%d bytes of an empty log are still allocated", n)
	}

	// A size that no text has.
	for range 3 {
		f.run(k, s, true, "truncate -s 8000000000000 /dev/stdout")
		f.run(k, s, true, "echo again")
		host.Tidy(f.Host)
	}
	c := f.ReadLog(gozzard.LogQuery{Key: k, Offset: -1, Lines: 1})
	if c.Error != "" || c.Next < 0 || c.Next > 1<<40 || !strings.HasSuffix(string(c.Data), "again\n") {
		t.Errorf("%d %q %q", c.Next, c.Data, c.Error)
	}

	// The output of a command that has its own file, while it runs.
	ended := make(chan error, 1)
	go func() {
		_, err := f.Run(t.Context(), supervise.Run{Key: k, Spec: s, Action: gozzard.ActionStop, Timeout: time.Minute,
			Command: "fallocate -n -l 64M /dev/stdout; touch " + f.state + "/allocated; sleep 60"})
		ended <- err
	}()
	f.eventually("the command has allocated its blocks", func() bool { return exists(f.state + "/allocated") })
	f.eventually("they are freed", func() bool {
		host.Tidy(f.Host)
		return diskUsage(t, filepath.Join(f.state, "output")) < 8<<20
	})
	if err := f.Clear(supervise.Query{Key: k, Spec: s}, nil); err != nil {
		t.Error(err)
	}
	<-ended
}

// TestTD19LogsOfUnregisteredProcesses: they are removed after a day, at the next start of the agent, or when they are too
// large together. Those of processes that still run are emptied instead, and those of managed processes stay.
func TestTD19LogsOfUnregisteredProcesses(t *testing.T) {
	f := newHost(t)
	f.needsCgroups()
	s := f.spec("x")
	kept, old, recent, runs := f.key("kept"), f.key("old"), f.key("recent"), f.key("runs")
	for _, k := range []gozzard.Key{kept, old, runs, recent} {
		f.Managed(k, true)
		f.run(k, s, true, "head -c 1000000 /dev/zero")
	}
	f.run(runs, s, true, "sleep 300 &")
	for _, k := range []gozzard.Key{old, runs, recent} {
		f.Managed(k, false)
	}
	there := func(want ...bool) {
		t.Helper()
		host.Tidy(f.Host)
		for i, k := range []gozzard.Key{kept, old, recent, runs} {
			if exists(f.logDir(k)) != want[i] {
				t.Errorf("%s: there is a log: %v", k, !want[i])
			}
		}
	}

	host.LogsLearned(f.Host, 10<<20)
	there(true, true, true, true)
	host.LogsLearned(f.Host, 1500<<10)
	there(true, false, true, true)
	if n := diskUsage(t, f.logDir(runs)); n > 100<<10 {
		t.Errorf("the log of an unregistered process that runs has %d bytes", n)
	}

	// The next start of the agent removes it, but not before it says which processes are managed.
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f.Host = f.open()
	there(true, false, true, true)
	f.Managed(kept, true)
	host.LogsLearned(f.Host, 10<<20)
	there(true, false, false, true)
}

func TestLogThatItsProcessCuts(t *testing.T) {
	f := newHost(t)
	k, s := f.key("a"), f.spec("x")
	f.run(k, s, true, "echo 0123456789")
	c := f.ReadLog(gozzard.LogQuery{Key: k, Offset: 0})
	f.run(k, s, true, "echo cut >/dev/stdout") // opens it again, and not for appending
	after, next := f.readAll(k, c.Next)
	if string(after) != "cut\n" || next != c.Next+4 {
		t.Errorf("%q, next %d", after, next)
	}
}

func TestLogThatWasRemovedBeginsAnew(t *testing.T) {
	f := newHost(t)
	k, s := f.key("a"), f.spec("x")
	f.run(k, s, true, "echo 0123456789")

	if err := os.Remove(f.logDir(k) + "/current.log"); err != nil {
		t.Fatal(err)
	}

	host.Tidy(f.Host)

	if c := f.ReadLog(gozzard.LogQuery{Key: k, Offset: -1}); c.Error == "" {
		t.Errorf("%+v", c)
	}
	if res := f.run(k, s, true, "echo again"); res.Output != "again" {
		t.Errorf("%+v", res)
	}
	if c := f.ReadLog(gozzard.LogQuery{Key: k, Offset: 11}); string(c.Data) != "again\n" || c.Offset != 11 ||
		c.Next != 17 {
		t.Errorf("%+v %q", c, c.Data)
	}
}

// TT4: the log of another user's process belongs to the agent, and the process can still open /dev/stdout.
func TestTT4LogBelongsToTheAgent(t *testing.T) {
	needsRoot(t)
	f := newHost(t)
	k, s := f.key("a"), f.spec("x")
	s.Identity.User = "nobody"
	res := f.run(k, s, true,
		"echo one >>/dev/stdout; echo two >/dev/stderr; cat </dev/stdout; cat <&1; chmod 777 /dev/stdout; ln -L /dev/stdout here; ls "+f.logDir(k))
	if n := strings.Count(res.Output, "ermission denied") + strings.Count(res.Output, "not permitted"); n < 4 {
		t.Errorf("%+v", res)
	}

	fi, err := os.Stat(f.logDir(k) + "/current.log")
	if err != nil || fi.Mode().Perm() != 0o622 {
		t.Errorf("%v %v", fi, err)
	}
}
