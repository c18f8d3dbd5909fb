package history

import (
	"bytes"
	"encoding/hex"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/test/fuzztest"
)

var web = gozzard.Key{Namespace: "shop", Name: "web"}

// rig is a store with a clock that a test sets.
type rig struct {
	*Store
	t   *testing.T
	o   Options
	now time.Time
}

func newRig(t *testing.T, bytes int64) *rig {
	t.Helper()
	r := &rig{t: t, now: time.Unix(1_800_000_000, 0)}
	r.o = Options{Dir: t.TempDir(), Bytes: bytes, Now: func() time.Time { return r.now }}
	r.open()
	t.Cleanup(func() { r.Close() })
	return r
}

func (r *rig) open() {
	r.t.Helper()
	s, err := Open(r.o)
	if err != nil {
		r.t.Fatal(err)
	}
	r.Store = s
}

// restart ends the store as an agent does, and opens it again.
func (r *rig) restart() {
	r.t.Helper()
	r.flush(true)
	r.Close()
	r.open()
}

// run measures a process every ten seconds, with the blocks written as they become complete.
func (r *rig) run(n int, m Sample) {
	for range n {
		r.Add([]Sample{m})
		r.flush(false)
		r.now = r.now.Add(10 * time.Second)
	}
}

func (r *rig) read(back time.Duration, points int) gozzard.History {
	r.t.Helper()
	return r.readOf(web, back, points)
}

func (r *rig) readOf(key gozzard.Key, back time.Duration, points int) gozzard.History {
	r.t.Helper()
	h, err := r.Read(gozzard.HistoryQuery{Key: key, From: r.now.Add(-back).Unix(), To: r.now.Unix(), Points: points})
	if err != nil {
		r.t.Fatal(err)
	}
	return h
}

func measured(h gozzard.History) (n int) {
	for _, p := range h.Points {
		if p.CPU >= 0 {
			n++
		}
	}
	return n
}

func busy(pid int, cores float32) Sample {
	return Sample{Key: web, Process: Process{PID: pid, Start: uint64(pid)}, Cores: cores, MemKB: 1 << 20, FD: 40}
}

func TestPointsAreRead(t *testing.T) {
	r := newRig(t, 0)
	r.run(90, busy(7, 0.5))

	h := r.read(15*time.Minute, 1000)
	if h.Step != 10 || len(h.Points) != 90 || measured(h) != 90 {
		t.Fatalf("step %d, %d points, %d measured", h.Step, len(h.Points), measured(h))
	}
	if want := (gozzard.HistoryPoint{CPU: 500, Mem: 1 << 30, FD: 40}); h.Points[40] != want {
		t.Errorf("%+v", h.Points[40])
	}

	h = r.read(15*time.Minute, 10)
	if len(h.Points) > 10 || h.Step%10 != 0 || h.Points[3] != (gozzard.HistoryPoint{CPU: 500, Mem: 1 << 30, FD: 40}) {
		t.Errorf("step %d: %+v", h.Step, h.Points)
	}
}

// TestNumberOfPoints: whatever the time is, there are no more points than asked for, and they reach from end to end.
func TestNumberOfPoints(t *testing.T) {
	r := newRig(t, 0)
	now := r.now.Unix()
	for _, back := range []int64{1, 9, 10, 11, 59, 120, 3599, 3601, 86_399, 86_400, 86_800, 700_000, 30 * 86_400} {
		for _, points := range []int{1, 2, 3, 7, 61, 300, 999, 1000} {
			for late := range int64(13) {
				q := gozzard.HistoryQuery{Key: web, From: now - back - late, To: now - late, Points: points}
				h, err := r.Read(q)
				if err != nil {
					t.Fatal(err)
				}
				end := h.From + int64(len(h.Points))*h.Step
				if len(h.Points) > points || h.From > max(q.From, now-coarseReach) || end < q.To {
					t.Fatalf("%+v: %d points of %d s from %d", q, len(h.Points), h.Step, h.From)
				}
			}
		}
	}
}

// TestSummary: averages of CPU and memory, the most descriptors, the sum of restarts.
func TestSummary(t *testing.T) {
	r := newRig(t, 0)
	for i := range 6 {
		m := busy(7, float32(i))
		m.FD, m.Restarts, m.MemKB = int32(10-i), uint32(3*i), int64(i)*1024
		r.run(1, m)
	}
	h := r.read(time.Minute, 1)
	want := gozzard.HistoryPoint{CPU: 2500, Mem: 2560 << 10, FD: 10, Restarts: 15}
	if len(h.Points) != 1 || h.Points[0] != want {
		t.Errorf("%+v", h)
	}
}

// TestRingsTurn: after two days the fine ring has a day and the coarse one everything.
func TestRingsTurn(t *testing.T) {
	r := newRig(t, 0)
	r.run(2*8640, busy(7, 1))

	if h := r.read(24*time.Hour, 1000); measured(h) < len(h.Points)-1 || h.Step != 90 {
		t.Errorf("a day: step %d, %d of %d", h.Step, measured(h), len(h.Points))
	}
	h := r.read(48*time.Hour, 1000)
	if h.Step != 300 || measured(h) != len(h.Points) || len(h.Points) < 576 {
		t.Errorf("two days: step %d, %d of %d", h.Step, measured(h), len(h.Points))
	}
	for i, p := range h.Points {
		if p.CPU != 1000 || p.FD != 40 || p.Restarts != 0 {
			t.Fatalf("point %d: %+v", i, p)
		}
	}

	info, err := os.Stat(filepath.Join(r.o.Dir, folder, idOf(web).name()))
	if err != nil || info.Size() > FileBytes {
		t.Errorf("%v, %v", info, err)
	}
}

// TestHolesStayHoles: nothing is invented for the time when the agent or the process did not run.
func TestHolesStayHoles(t *testing.T) {
	r := newRig(t, 0)
	r.run(12, busy(7, 1))
	r.restart()
	r.now = r.now.Add(2 * time.Minute)
	r.run(6, busy(7, 1))
	r.run(6, Sample{Key: web, Restarts: 0})

	h := r.read(6*time.Minute, 1000)
	got := ""
	for _, p := range h.Points {
		switch {
		case p.CPU >= 0:
			got += "#"
		case p.Restarts == 0:
			got += "0"
		case p.IsEmpty():
			got += "."
		}
	}
	if want := "############............######000000"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestRestartOfTheAgent: a restart in the middle of a step loses nothing, and the coarse steps are complete.
func TestRestartOfTheAgent(t *testing.T) {
	r := newRig(t, 0)
	for range 40 {
		r.run(5, busy(7, 1))
		r.restart()
	}
	if h := r.read(2000*time.Second, 1000); measured(h) != 200 {
		t.Errorf("%d of 200 steps", measured(h))
	}
	h := r.read(25*time.Hour, 1000)
	if n := measured(h); h.Step != 300 || n != 7 {
		t.Errorf("%d coarse steps of %d s", n, h.Step)
	}
}

// TestCrash: what was not written is lost, about a minute, and the coarse step is computed from the rest.
func TestCrash(t *testing.T) {
	r := newRig(t, 0)
	r.run(40, busy(7, 1))
	r.Close()
	r.open()
	r.run(40, busy(7, 1))
	if n := measured(r.read(800*time.Second, 1000)); n < 74 {
		t.Errorf("%d of 80 steps", n)
	}
}

// TestNewProcess: the figures of a process do not mix with those of the one before it in the same step.
func TestNewProcess(t *testing.T) {
	r := newRig(t, 0)
	old := busy(7, 8)
	r.run(3, old)
	r.Add([]Sample{old})
	r.now = r.now.Add(3 * time.Second)
	fresh := busy(8, 1)
	fresh.MemKB, fresh.FD, fresh.Restarts = 1024, 3, 1
	r.Add([]Sample{fresh})

	h := r.read(40*time.Second, 1000)
	if want := (gozzard.HistoryPoint{CPU: 1000, Mem: 1 << 20, FD: 3, Restarts: 1}); h.Points[len(h.Points)-1] != want {
		t.Errorf("%+v", h.Points)
	}
}

// TestLateMeasurement: measurements that come a little late leave no holes. Clocks that are set do.
func TestLateMeasurement(t *testing.T) {
	r := newRig(t, 0)
	for range 30 {
		r.Add([]Sample{busy(7, 1)})
		r.now = r.now.Add(10*time.Second + 700*time.Millisecond)
	}
	if h := r.read(310*time.Second, 1000); measured(h) < 31 {
		t.Errorf("%d of %d steps", measured(h), len(h.Points))
	}

	r.now = r.now.Add(-time.Hour)
	r.run(3, busy(7, 2))
	if h := r.read(30*time.Second, 1000); measured(h) != 3 || h.Points[0].CPU != 2000 {
		t.Errorf("after the clock was set back: %+v", h.Points)
	}
	r.now = r.now.Add(3 * time.Hour)
	r.run(1, busy(7, 3))
	if h := r.read(time.Hour, 1000); measured(h) != 1 {
		t.Errorf("after the clock was set forward: %d steps", measured(h))
	}
}

// TestRemoved: the history of a process ends with its registration. A later process of the same name has a new one.
func TestRemoved(t *testing.T) {
	r := newRig(t, 0)
	r.run(20, busy(7, 1))
	r.Remove(web)
	if n := measured(r.read(time.Hour, 1000)); n != 0 {
		t.Errorf("%d steps after the removal", n)
	}
	r.flush(false)
	if _, err := os.Stat(filepath.Join(r.o.Dir, folder, idOf(web).name())); !os.IsNotExist(err) {
		t.Errorf("the file: %v", err)
	}
	r.run(7, busy(9, 1))
	if n := measured(r.read(time.Hour, 1000)); n != 7 {
		t.Errorf("%d steps of the new one", n)
	}
}

// TestKeep: files of processes that are not registered any more are removed at the start, other files are not.
func TestKeep(t *testing.T) {
	r := newRig(t, 0)
	other := busy(9, 1)
	other.Key = gozzard.Key{Namespace: "shop", Name: "other"}
	for range 10 {
		r.Add([]Sample{busy(7, 1), other})
		r.now = r.now.Add(10 * time.Second)
	}
	foreign := filepath.Join(r.o.Dir, folder, "notes.txt")
	if err := os.WriteFile(foreign, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.restart()
	r.Keep([]gozzard.Key{web})
	r.flush(false)

	if a, b := measured(r.read(time.Hour, 1000)), measured(r.readOf(other.Key, time.Hour, 1000)); a != 10 || b != 0 {
		t.Errorf("%d and %d steps", a, b)
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Error(err)
	}
}

// TestLimit: the files together stay below the limit, and a process above it has no history until another one is gone.
func TestLimit(t *testing.T) {
	r := newRig(t, 2*FileBytes)
	var all []Sample
	for _, name := range []string{"a", "b", "c"} {
		m := busy(7, 1)
		m.Name = name
		all = append(all, m)
	}
	r.Add(all)
	r.flush(true)
	if list, err := os.ReadDir(filepath.Join(r.o.Dir, folder)); err != nil || len(list) != 2 {
		t.Fatalf("%d files, %v", len(list), err)
	}
	if _, err := r.Read(gozzard.HistoryQuery{Key: all[2].Key, From: 1_799_999_000, To: r.now.Unix()}); err == nil {
		t.Error("no error above the limit")
	}

	r.Remove(all[0].Key)
	r.flush(false)
	r.now = r.now.Add(10 * time.Second)
	r.Add(all[2:])
	r.now = r.now.Add(time.Second)
	if n := measured(r.readOf(all[2].Key, time.Minute, 10)); n != 1 {
		t.Errorf("%d steps after another one is gone", n)
	}
}

// TestExtremes: what does not fit is the largest value, and what is not a number is none.
func TestExtremes(t *testing.T) {
	for _, p := range []gozzard.HistoryPoint{
		{}, gozzard.EmptyPoint(), {CPU: 1, Mem: 1 << 10, FD: 1, Restarts: 1},
		{CPU: max24, Mem: max32 << 10, FD: max24, Restarts: max16},
	} {
		if got := decodePoint(encodePoint(nil, &p)); got != p {
			t.Errorf("%+v was read as %+v", p, got)
		}
	}
	huge := gozzard.HistoryPoint{CPU: math.MaxInt64, Mem: math.MaxInt64, FD: math.MaxInt64, Restarts: math.MaxInt64}
	want := gozzard.HistoryPoint{CPU: max24, Mem: max32 << 10, FD: max24, Restarts: max16}
	if got := decodePoint(encodePoint(nil, &huge)); got != want {
		t.Errorf("%+v", got)
	}
	m := busy(7, float32(math.NaN()))
	m.MemKB, m.FD = -5, 0
	if p := m.point(0); p != (gozzard.HistoryPoint{FD: gozzard.NotMeasured}) {
		t.Errorf("%+v", p)
	}
}

// TestDamage: a file in which any byte is changed has at most the steps of one block less, or of all when it is the header.
func TestDamage(t *testing.T) {
	r := newRig(t, 0)
	r.run(60, busy(7, 1))
	r.restart()
	path := filepath.Join(r.o.Dir, folder, idOf(web).name())
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(whole); at += 1 + at/97 {
		bad := slices.Clone(whole)
		bad[at] ^= 0x20
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		n := measured(r.read(10*time.Minute, 1000))
		if at >= headerBytes && n < 54 || at < headerBytes && n != 0 {
			t.Errorf("byte %d: %d of 60 steps", at, n)
		}
	}
}

// FuzzFile reads and continues a file of any content. It never fails, and every value is one that a file can have.
func FuzzFile(f *testing.F) {
	z := fuzztest.New(f)
	b := newBlock(1_800_000_000 / 60)
	b.points[0] = gozzard.HistoryPoint{CPU: 7, Mem: 1 << 20, FD: 3}
	good := make([]byte, b.number%ringBlocks*blockBytes)
	good = b.encode(append(idOf(web).header(), good...))
	z.Add(good, uint16(0), int64(0), int64(1_800_000_100), 300)
	z.Add(good[:len(good)-3], uint16(40), int64(1_799_999_000), int64(1_800_000_100), 1)
	z.Add([]byte("GZH1"), uint16(9), int64(-1), int64(math.MaxInt64), -7)
	z.Add([]byte{}, uint16(0), int64(math.MinInt64), int64(math.MinInt64), 0)

	dir := f.TempDir()
	now := time.Unix(1_800_000_060, 0)
	s, err := Open(Options{Dir: dir, Now: func() time.Time { return now }})
	if err != nil {
		f.Fatal(err)
	}
	z.Fuzz(func(t *testing.T, content []byte, cut uint16, from, to int64, points int) {
		content = bytes.Clone(content[min(int(cut), len(content)):])
		if err := os.WriteFile(filepath.Join(dir, folder, idOf(web).name()), content, 0o600); err != nil {
			t.Fatal(err)
		}
		s.Add([]Sample{busy(7, 1)})
		s.flush(true)
		h, err := s.Read(gozzard.HistoryQuery{Key: web, From: from, To: to, Points: points})
		if err != nil {
			return
		}
		if len(h.Points) > min(max(points, 1), gozzard.MaxHistoryPoints) || h.Step < fineStep {
			t.Fatalf("%d points of %d s", len(h.Points), h.Step)
		}
		for _, p := range h.Points {
			if p.CPU > max24 || p.CPU < -1 || p.Mem > max32<<10 || p.Mem < -1 || p.FD > max24 || p.FD < -1 || p.Restarts < -1 {
				t.Fatalf("%+v in %s", p, hex.EncodeToString(content))
			}
		}
	})
}

// TestSpool: what a crash leaves in the file of the newest blocks belongs to its process afterwards, once, and a process that
// was removed meanwhile has none of it.
func TestSpool(t *testing.T) {
	r := newRig(t, 0)
	recent := filepath.Join(r.o.Dir, folder, spoolName)
	r.run(20, busy(7, 1))
	if fi, err := os.Stat(recent); err != nil || fi.Size() == 0 {
		t.Fatalf("the newest blocks are not in one file: %v, %v", fi, err)
	}
	if n := measured(r.read(200*time.Second, 1000)); n != 20 {
		t.Errorf("%d of 20 steps before the crash", n)
	}

	// Damage the last block, as a crash of the machine may do.
	b, err := os.ReadFile(recent)
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	if err := os.WriteFile(recent, b[:len(b)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	r.open()
	if _, err := os.Stat(recent); !os.IsNotExist(err) {
		t.Errorf("the blocks of the last run were not moved: %v", err)
	}
	if n := measured(r.read(200*time.Second, 1000)); n < 6 || n > 14 {
		t.Errorf("%d steps after the crash", n)
	}

	// Remove the process: one with the same name begins without a past.
	r.run(10, busy(7, 1))
	r.Remove(web)
	r.flush(false)
	r.run(2, busy(8, 1))
	if n := measured(r.read(time.Hour, 1000)); n != 2 {
		t.Errorf("%d steps of a new process, want 2", n)
	}
}
