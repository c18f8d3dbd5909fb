//go:build linux

package procfs_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gozzard/gozzard/internal/procfs"
	"github.com/gozzard/gozzard/test/fuzztest"
)

const statTail = " S 1 200 300 0 -1 4194560 100 0 0 0 11 22 33 44 20 0 7 0 123456 1000 250 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0\n"

func write(t *testing.T, root, name, text string) {
	t.Helper()
	p := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestStatReadsNamesThatTryToConfuse(t *testing.T) {
	for _, comm := range []string{"sleep", "a b", ") Z 1 (", "(((", ")))", "", "x\n1 (y) R", "服务进程名"} {
		st, err := procfs.ParseStat([]byte("42 (" + comm + ")" + statTail))
		if err != nil {
			t.Errorf("%q: %v", comm, err)
			continue
		}
		got := []any{st.Comm(), st.PID, st.PPID, st.Session, string(st.State), st.UTime, st.STime, st.CUTime,
			st.CSTime, st.Threads, st.Start, st.RSS}
		want := []any{comm, 42, 1, 300, "S", uint64(11), uint64(22), uint64(33), uint64(44), 7, uint64(123456),
			int64(250)}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q: %s", comm, d)
		}
	}
}

func TestStatRefusesWhatIsNone(t *testing.T) {
	for _, s := range []string{"", "1", "1 (a", "1 (a)", "1 (a) ", "(a) S 1", "x (a)" + statTail, "1 (a) S 1 2 3",
		")(", "1 (a) S x" + statTail} {
		if st, err := procfs.ParseStat([]byte(s)); err == nil {
			t.Errorf("%q was taken for %+v", s, st)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	z := fuzztest.New(f)
	z.Add([]byte("42 (sleep)" + statTail))
	z.Add([]byte("1 (a) b) S"))
	z.Fuzz(func(t *testing.T, b []byte) {
		if st, err := procfs.ParseStat(b); err == nil && len(st.Comm()) > 64 {
			t.Fatal("name out of bounds")
		}
	})
}

func TestMachine(t *testing.T) {
	root := t.TempDir()
	write(t, root, "meminfo", "MemTotal:       16384 kB\nMemFree: 1 kB\nMemAvailable:  8 kB\n")
	write(t, root, "loadavg", "1.25 0.50 0.10 1/200 4242\n")
	write(t, root, "stat", "cpu  1 2\ncpu0 1 2\ncpu1 1 2\nintr 5\nbtime 1\n")
	write(t, root, "sys/kernel/random/boot_id", "b-1\n")
	write(t, root, "self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"+
		"32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n41 31 0:38 / /sys/fs/c\\040group rw shared:3 - cgroup2 cgroup2 rw\n")
	f := procfs.New(root)
	mem, err1 := f.MemTotal()
	cpus, err2 := f.CPUs()
	boot, err3 := f.BootID()
	mount, err4 := f.Cgroup2Mount()

	if old, err := f.Cgroup1Mounts(); err != nil || old["cpu"] != "/sys/fs/cgroup/cpu" || old["memory"] != "" {
		t.Errorf("controllers of version 1: %v %v", old, err)
	}
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	free, err1 := f.MemAvailable()
	load, err2 := f.Load()
	if err := errors.Join(err1, err2); err != nil || free != 8<<10 || load != 1250 {
		t.Errorf("%d bytes free, load %d: %v", free, load, err)
	}
	if mem != 16<<20 || cpus != 2 || boot != "b-1" || mount != "/sys/fs/c group" {
		t.Errorf("got %d bytes, %d processors, boot %q, mount %q", mem, cpus, boot, mount)
	}
}

func TestMachineWithoutFilesSaysSo(t *testing.T) {
	f := procfs.New(t.TempDir())
	_, err1 := f.MemTotal()
	_, err2 := f.CPUs()
	_, err3 := f.BootID()
	_, err4 := f.Cgroup2Mount()
	_, err5 := f.Load()
	for i, err := range []error{err1, err2, err3, err4, err5} {
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

func TestProcessFiles(t *testing.T) {
	root := t.TempDir()
	write(t, root, "42/stat", "42 (app)"+statTail)
	write(t, root, "42/status", "Name:\tapp\nUid:\t1000\t0\t1\t2\n")
	write(t, root, "42/cmdline", "/opt/app\x00-v\x00\x00last\x00")
	write(t, root, "42/cgroup", "4:memory:/x\n0::/gozzard/a/b (deleted)\n")
	write(t, root, "42/fd/0", "")
	write(t, root, "42/fd/1", "")
	write(t, root, "self/x", "")

	f := procfs.New(root)
	pids, err := f.PIDs(nil)
	if err != nil || !cmp.Equal(pids, []int{42}) {
		t.Errorf("pids %v, %v", pids, err)
	}
	if r, e, err := f.UIDs(42); r != 1000 || e != 0 || err != nil {
		t.Errorf("uids %d %d %v", r, e, err)
	}
	if args, err := f.Args(42, 4096); err != nil || !cmp.Equal(args, []string{"/opt/app", "-v", "", "last"}) {
		t.Errorf("args %q %v", args, err)
	}
	if args, err := f.Args(42, 10); err != nil || !cmp.Equal(args, []string{"/opt/app", "-"}) {
		t.Errorf("bounded args %q %v", args, err)
	}
	if p, err := f.Cgroup(42); p != "/gozzard/a/b" || err != nil {
		t.Errorf("cgroup %q %v", p, err)
	}
	if _, err := f.Stat(43); !errors.Is(err, procfs.ErrGone) {
		t.Errorf("absent process: %v", err)
	}
}

func TestThisProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("no /proc")
	}

	f := procfs.New("/proc")
	st, err := f.Stat(os.Getpid())
	if err != nil || st.PPID != os.Getppid() || st.Start == 0 || st.Dead() || st.Kernel() || st.RSS == 0 {
		t.Errorf("%+v %v", st, err)
	}

	exe, err := f.Exe(os.Getpid())
	if want, _ := os.Executable(); exe != want || err != nil {
		t.Errorf("exe %q %v", exe, err)
	}
	if n, err := f.FDs(os.Getpid()); n < 3 || err != nil {
		t.Errorf("%d descriptors, %v", n, err)
	}

	r, e, err := f.UIDs(os.Getpid())
	if int(r) != os.Getuid() || int(e) != os.Geteuid() || err != nil {
		t.Errorf("uids %d %d %v", r, e, err)
	}
}

func TestPassSeesWhatSingleLooksSee(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("no /proc")
	}

	f := procfs.New("/proc")
	p := f.NewPass()
	pids, err := p.PIDs(nil)
	if err != nil || !slices.Contains(pids, os.Getpid()) || !slices.Contains(pids, os.Getppid()) {
		t.Errorf("%v %v", pids, err)
	}

	one, err1 := f.Stat(os.Getpid())
	many, err2 := p.Stat(os.Getpid())
	if err := errors.Join(err1, err2); err != nil || one.PID != many.PID || one.Start != many.Start ||
		one.PPID != many.PPID || one.Comm() != many.Comm() {
		t.Errorf("%+v, %+v, %v", one, many, err)
	}

	if _, err := p.Stat(4194304); !errors.Is(err, procfs.ErrGone) {
		t.Errorf("absent process: %v", err)
	}
	if _, err := p.FDs(4194304, 10, nil); !errors.Is(err, procfs.ErrGone) {
		t.Errorf("descriptors of an absent process: %v", err)
	}
}

func TestPassDistinguishesDescriptors(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("no /proc")
	}

	path := filepath.Join(t.TempDir(), "f")
	w, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}

	defer w.Close()

	if _, err := w.WriteString("12345"); err != nil {
		t.Fatal(err)
	}

	r, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}

	defer r.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	defer l.Close()
	p := procfs.New("/proc").NewPass()
	var fds []procfs.FD
	n, err := p.FDs(os.Getpid(), 1000, &fds)
	if err != nil || n < len(fds)+2 { // epoll and the folder itself are neither
		t.Fatalf("%d of %d, %v", len(fds), n, err)
	}

	var writing, reading, sockets int
	for _, fd := range fds {
		switch {
		case fd.Socket:
			sockets++
		case fd.Size == 5 && fd.Write:
			writing++
		case fd.Size == 5:
			reading++
		}
	}

	if writing != 1 || reading != 1 || sockets < 1 {
		t.Errorf("%d for writing, %d for reading, %d sockets in %+v", writing, reading, sockets, fds)
	}

	few := fds[:0]
	if m, err := p.FDs(os.Getpid(), 1, &few); err != nil || len(few) > 1 || m < 5 {
		t.Errorf("looked at %d of %d, %v", len(few), m, err)
	}
	if m, err := p.CountFDs(os.Getpid()); err != nil || m < 5 {
		t.Errorf("counted %d, %v", m, err)
	}
}

func TestCredentials(t *testing.T) {
	root := t.TempDir()
	write(t, root, "42/status",
		"Name:\tapp\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nGroups:\t9 10 \nNoNewPrivs:\t1\nCapInh:\t0000000000000001\nCapPrm:\t000001fffeffffff\nCapEff:\t00000000000000e0\nCapAmb:\t0000000000000080\n")
	write(t, root, "43/status", "Name:\tapp\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nGroups:\t \n")
	write(t, root, "44/status", "Name:\tapp\nUid:\t1\t2\t3\nGid:\t5\t6\t7\t8\nGroups:\t\n")
	f := procfs.New(root)
	c, err := f.Credentials(42)
	want := procfs.Credentials{UIDs: [4]uint32{1, 2, 3, 4}, GIDs: [4]uint32{5, 6, 7, 8}, Groups: []uint32{9, 10},
		NoNewPrivs:  true,
		Inheritable: 1, Permitted: 0x1fffeffffff, Effective: 0xe0, Ambient: 0x80}
	if d := cmp.Diff(want, c); d != "" || err != nil {
		t.Error(d, err)
	}
	if c, err = f.Credentials(43); err != nil || len(c.Groups) != 0 || c.NoNewPrivs {
		t.Errorf("%+v %v", c, err)
	}
	if c, err = f.Credentials(44); err == nil {
		t.Errorf("half of it was taken: %+v", c)
	}

	write(t, root, "46/status", "Name:\tapp\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nGroups:\t\nCapEff:\tall\n")

	if c, err = f.Credentials(46); err == nil {
		t.Errorf("capabilities that cannot be read are none: %+v", c)
	}
	if _, err = f.Credentials(45); !errors.Is(err, procfs.ErrGone) {
		t.Error(err)
	}
}

func BenchmarkStat(b *testing.B) {
	f, pid := procfs.New("/proc"), os.Getpid()
	var buf [1024]byte
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.StatInto(pid, buf[:]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPass(b *testing.B) {
	p := procfs.New("/proc").NewPass()
	var pids []int
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if pids, err = p.PIDs(pids[:0]); err != nil {
			b.Fatal(err)
		}
		for _, pid := range pids {
			_, _ = p.Stat(pid) // some end meanwhile
		}
	}
}
