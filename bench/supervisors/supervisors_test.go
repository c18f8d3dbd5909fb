//go:build linux

package main

import (
	"os"
	"strings"
	"testing"
	"time"
)

// TestQuickRun does not look at figures, because the machine is busy and all supervisors run at once. It checks that
// gozzard is measured in every row, that a peer which is not installed is named, and that nothing is left behind.
func TestQuickRun(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("supervisors run as root")
	}

	t.Setenv("TMPDIR", t.TempDir())
	res, err := run(t.Context(), options{size: quickSize(), binary: os.Getenv("GOZZARD_BINARY"), progress: t.Output(),
		command: "go test"})
	if err != nil {
		t.Fatal(err)
	}

	for name, why := range res.tools.missing {
		t.Logf("%s was skipped: %s", name, why)
	}

	t.Log("\n" + res.Text())

	for _, n := range res.size.counts {
		for r := range rowCount {
			if _, ok := res.found[n]["gozzard"][r]; !ok {
				t.Errorf("N = %d: gozzard has no figure for %q", n, r)
			}
		}
	}

	for _, r := range []row{rowDeath, rowDeathWhole} {
		for _, n := range res.size.counts {
			if f := res.found[n]["gozzard"][r]; f.value != 0 {
				t.Errorf("N = %d: %s: %s", n, r, f)
			}
		}
	}

	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestStanding(t *testing.T) {
	found := map[string]figures{
		"gozzard": {rowStart: {value: 20, digits: 1}, rowPSS: {value: 9, digits: 1}, rowIdle: {value: 3, digits: 1},
			rowDeath: fate(0, 0, 0)},
		"runit": {rowStart: {value: 40, digits: 1}, rowPSS: {value: 3, digits: 1}, rowIdle: {value: 0, digits: 1},
			rowDeath: fate(0, 0, 0)},
		"prototype": {rowStart: {value: 10, digits: 1}},
		"monit":     {rowStart: longer(time.Minute), rowStop: {value: 1}},
	}
	for _, c := range []struct {
		row    row
		ratio  string
		behind bool
	}{
		{rowStart, "0.50× runit", false}, {rowPSS, "3.00× runit", true}, {rowIdle, "+3.0 beside runit", true},
		{rowDeath, "none better", false},
		{rowStop, "", false}, {rowStorm, "", false},
	} {
		ratio, behind := standing(c.row, found)
		if ratio != c.ratio || (behind != "") != c.behind {
			t.Errorf("%s: ratio %q, behind %q", c.row, ratio, behind)
		}
	}
}

func TestFateOf(t *testing.T) {
	before := [][]int{{10}, {11}, {12}, {13}}
	after := [][]int{{10}, {11, 21}, {}, {23}}
	if f := fateOf(before, after); f.text != "1 / 1 / 1" || f.value != 3 {
		t.Errorf("got %v", f)
	}
}

// TestTracker: the tracker sees a process that this test starts and the one that replaces it, and sweepAway kills every
// process of a folder.
func TestTracker(t *testing.T) {
	dir := t.TempDir()
	tools := &tools{dir: dir}
	if err := buildChild(t.Context(), tools.childPath()); err != nil {
		t.Fatal(err)
	}
	s, err := newSite(dir, "tracker", 2, how{}, tools)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := sweepAway(s.dir); err != nil {
			t.Error(err)
		}
	})

	for i := range s.n {
		if err := s.launch(s.program(), s.argument(i)); err != nil {
			t.Fatal(err)
		}
	}

	if ok, err := s.track.awaitAll(t.Context(), 20*time.Second, nil); err != nil || !ok {
		t.Fatalf("seen: %v, %v", ok, err)
	}
	if s.track.newest[1] != s.main() {
		t.Errorf("process 1 is %d, not %d", s.track.newest[1], s.main())
	}

	old := append([]int(nil), s.track.newest...)
	s.end()

	if lives(old[1]) {
		t.Error("a process that was ended lives")
	}
	if err := s.launch(s.program(), s.argument(1)); err != nil {
		t.Fatal(err)
	}
	if ok, err := s.track.await(t.Context(), 20*time.Second,
		func() bool { return s.track.newest[1] == s.main() }); err != nil || !ok {
		t.Fatalf("the next one was not seen: %v, %v", ok, err)
	}

	if err := sweepAway(s.dir); err != nil {
		t.Fatal(err)
	}
	if all, err := s.track.copies(); err != nil || len(all[0])+len(all[1]) > 0 {
		t.Errorf("left: %v, %v", all, err)
	}
}

func TestChoose(t *testing.T) {
	o := options{}
	if err := o.choose("1, 20", "gozzard,monit", maxCount); err != nil || len(o.size.counts) != 2 || len(o.only) != 2 {
		t.Errorf("got %v, %v, %v", o.size.counts, o.only, err)
	}
	for _, bad := range [][2]string{{"", ""}, {"0", ""}, {"1001", ""}, {"x", ""}, {"1", "nobody"}} {
		if err := (&options{}).choose(bad[0], bad[1], maxCount); err == nil || !strings.HasPrefix(err.Error(), "-") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
