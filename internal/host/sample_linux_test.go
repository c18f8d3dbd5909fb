package host_test

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/host"
	"github.com/gozzard/gozzard/internal/supervise"
)

// self is the identity of this test program. The tests measure it, because they know exactly what it has open.
func self(t testing.TB, h *host.Host) supervise.Proc {
	t.Helper()
	st, err := proc.Stat(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	return supervise.Proc{BootID: h.Facts().BootID, PID: st.PID, Start: st.Start}
}

func TestSampleCountsFilesHeldForWritingOnce(t *testing.T) {
	f := newHost(t)
	procs := []supervise.Proc{self(t, f.Host)}
	before := f.Sample(procs)[0]

	path := filepath.Join(f.dir, "data")
	data, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}

	defer data.Close()

	if _, err := data.Write(make([]byte, 3<<20+5)); err != nil {
		t.Fatal(err)
	}

	again, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}

	defer again.Close()
	other := filepath.Join(f.dir, "read")
	if err := os.WriteFile(other, make([]byte, 1<<20), 0o644); err != nil {
		t.Fatal(err)
	}

	reading, err := os.Open(other)
	if err != nil {
		t.Fatal(err)
	}

	defer reading.Close()
	after := f.Sample(procs)[0]
	// The output of the test itself grows a little, by far less than what must not be counted.
	if got := after.Disk - before.Disk; got < 3<<20+5 || got >= 4<<20 {
		t.Errorf("%d bytes are held for writing", got)
	}
	// a sample itself has a folder open
	if n, err := proc.FDs(os.Getpid()); err != nil || int(after.FD)-n < 0 || int(after.FD)-n > 2 {
		t.Errorf("%d descriptors, there are %d (%v)", after.FD, n, err)
	}
}

func TestSampleLeavesOutTheLog(t *testing.T) {
	f := newHost(t)
	k, s := f.key("a"), f.spec("talker")
	s.Identity.PIDPath = f.dir + "/daemon.pid"
	script := f.script("talker",
		"head -c 100000 /dev/zero; head -c 5000 /dev/zero >own; exec 9>>own; echo >flag; sleep 300; :")
	p := f.daemon(k, s, script).Proc
	f.eventually("the file is held", func() bool { return exists(f.dir + "/flag") })
	if u := f.Sample([]supervise.Proc{p})[0]; u.Disk != 5000 || u.Procs < 1 {
		t.Errorf("%+v", u)
	}
}

// TestSampleSeesTheFirstFile: the descriptors of a process that has only its log open are counted and not listed. The
// first file that it opens is measured all the same.
func TestSampleSeesTheFirstFile(t *testing.T) {
	f := newHost(t)
	path := f.script("svc", "while [ ! -e flag ]; do sleep 0.01; done; exec 3>data; head -c 1000000 /dev/zero >&3; touch done; sleep 1000")
	found := f.front(f.key("a"), f.spec("svc"), "exec "+path)
	procs := []supervise.Proc{found.Proc}
	for range 3 {
		if u := f.Sample(procs)[0]; u.Disk != 0 || u.FD == 0 {
			t.Errorf("%+v", u)
		}
	}

	if err := os.WriteFile(filepath.Join(f.dir, "flag"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(30 * time.Second); !exists(filepath.Join(f.dir, "done")); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the process has written nothing")
		}
	}
	if u := f.Sample(procs)[0]; u.Disk < 1_000_000 {
		t.Errorf("%+v", u)
	}
}

func TestSampleCountsBytesOfSockets(t *testing.T) {
	f := newHost(t)
	procs := []supervise.Proc{self(t, f.Host), {}, self(t, f.Host)}
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Logf("%s: %v", address, err)
			continue
		}

		before := f.Sample(procs)[0].Net
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		server, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}

		const n = 1 << 20
		sent := make(chan error, 1)
		go func() {
			_, err := client.Write(make([]byte, n))
			sent <- err
		}()
		if _, err := io.ReadFull(server, make([]byte, n)); err != nil {
			t.Fatal(err)
		}
		if err := <-sent; err != nil {
			t.Fatal(err)
		}

		f.eventually("both ends are counted", func() bool { // the last bytes are acknowledged a moment later
			u := f.Sample(procs)
			got := u[0].Net - before
			return got >= 2*n && got < 2*n+100 && u[2].Net == u[0].Net && u[1] == supervise.Usage{}
		})
		for _, c := range []io.Closer{client, server, l} {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestSampleAllocatesOnlyItsAnswer(t *testing.T) {
	f := newHost(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	defer l.Close()
	procs := []supervise.Proc{self(t, f.Host)}
	f.Sample(procs)

	if got := fewestAllocs(func() { f.Sample(procs) }); got > 4 { // 1, and some that the race detector adds
		t.Errorf("%v allocations", got)
	}

	pass := func() {
		if err := host.PassOnce(f.Host); err != nil {
			t.Error(err)
		}
	}

	if got := fewestAllocs(pass); got > 0 {
		t.Errorf("%v allocations of a pass", got)
	}
}

// fewestAllocs is how many allocations fn needs when the host does nothing else at the same time.
func fewestAllocs(fn func()) float64 {
	fewest := testing.AllocsPerRun(1, fn)
	for range 50 {
		fewest = min(fewest, testing.AllocsPerRun(1, fn))
	}
	return fewest
}

func benchHost(b *testing.B, cgroups string) *host.Host {
	b.Helper()
	h, err := host.New(host.Options{Instance: "bench", StateDir: b.TempDir(), Log: discard(), CgroupRoot: cgroups})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := h.Close(); err != nil {
			b.Error(err)
		}
	})
	return h
}

// BenchmarkSample has one allocation, the answer.
func BenchmarkSample(b *testing.B) {
	h := benchHost(b, "/proc")
	procs := []supervise.Proc{self(b, h)}
	b.ReportAllocs()
	for b.Loop() {
		if u := h.Sample(procs); u[0].Procs == 0 {
			b.Fatal("not seen")
		}
	}
}

// BenchmarkPass measures the part that reads every process of the machine. The metric is per process.
func BenchmarkPass(b *testing.B) {
	h := benchHost(b, "/proc")
	pids, err := proc.PIDs(nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := host.PassOnce(h); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(pids)), "ns/process")
}

// BenchmarkSampleTrees measures many processes in one pass, as an agent does every ten seconds.
func BenchmarkSampleTrees(b *testing.B) {
	h := benchHost(b, "/proc")
	const n = 500
	procs := make([]supervise.Proc, 0, n)
	for range n {
		cmd := exec.Command("/bin/sleep", "600")
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			_ = cmd.Process.Kill() // a child of this program: its pid is valid until Wait
			_ = cmd.Wait()
		})
		st, err := proc.Stat(cmd.Process.Pid)
		if err != nil {
			b.Fatal(err)
		}
		procs = append(procs, supervise.Proc{BootID: h.Facts().BootID, PID: st.PID, Start: st.Start})
	}

	h.Sample(procs)
	b.ReportAllocs()

	for b.Loop() {
		if u := h.Sample(procs); u[n-1].Procs != 1 {
			b.Fatal("not seen")
		}
	}

	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/tree")
}

// Processor time grows with what a process uses, in user mode and in the system, and never falls.
func TestSampleProcessorTime(t *testing.T) {
	f := newHost(t)
	procs := []supervise.Proc{self(t, f.Host)}
	last := f.Sample(procs)[0]
	first := last.UserTime + last.SystemTime
	for end := time.Now().Add(20 * time.Second); last.UserTime+last.SystemTime < first+300*time.Millisecond; {
		if time.Now().After(end) {
			t.Fatalf("from %v to %v in 20 s of work", first, last.UserTime+last.SystemTime)
		}
		for begun := time.Now(); time.Since(begun) < 20*time.Millisecond; { // work
			_, _ = os.Stat("/")
		}
		now := f.Sample(procs)[0]
		if now.UserTime < last.UserTime || now.SystemTime < last.SystemTime {
			t.Fatalf("fell from %+v to %+v", last, now)
		}
		last = now
	}
}
