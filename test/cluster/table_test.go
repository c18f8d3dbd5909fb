//go:build linux

package cluster_test

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
	"github.com/gozzard/gozzard/test/ledger"
)

var tableFile = flag.String("cluster.out", "", "write the table of figures to this `FILE`, too")

// goalServed is how soon operations on 99 of 100 hosts are to be executed again after the kill of a server or a failover of
// the database. A busy machine may take longer, so it is reported and not tested.
const goalServed = 5 * time.Second

// line is a line of the table: a fault, and what became of operations under it.
type line struct {
	id, fault string
	times     int             // that it happened
	since     string          // what the times until service count from; "": service did not pause
	took      []time.Duration // until an operation on a host was executed again
	goal      bool            // goalServed is for this line
	figures   ledger.Figures
	failed    bool
}

// table has the lines of the tests that have ended.
var table struct {
	sync.Mutex
	began time.Time
	lines []line
}

func TestMain(m *testing.M) {
	flag.Parse()
	table.began = time.Now()
	code := m.Run()
	if err := writeTable(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	ft.Finish(code)
}

// add adds a line.
func (l line) add() {
	table.Lock()
	defer table.Unlock()
	table.lines = append(table.lines, l)
}

// writeTable prints the table, if there are lines, and writes it to a file.
func writeTable() error {
	if len(table.lines) == 0 {
		return nil
	}
	text := pageOf(table.lines, time.Since(table.began))
	fmt.Print(text)
	if *tableFile == "" {
		return nil
	}
	if err := os.WriteFile(*tableFile, []byte(text), 0o644); err != nil {
		return fmt.Errorf("cannot write the table: %w", err)
	}
	return nil
}

// pageOf is the page with the table, as Markdown.
func pageOf(lines []line, took time.Duration) string {
	lines = slices.SortedStableFunc(slices.Values(lines), func(a, b line) int { return number(a.id) - number(b.id) })
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("# Faults of several servers under load\n")
	p("Made by `make faults-cluster` on %s in %s, %s/%s, %d CPUs shared by everything in the run: PostgreSQL, servers, agents, callers.",
		time.Now().UTC().Format("2006-01-02"), took.Round(time.Second), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	p("Settings: %d kills of servers, other faults %d times, freezes and cuts of %s, at least %d operations under kills of servers and failovers, %d under other faults.\n",
		*faultKills, *faultTimes, *faultLong, *faultOps, fewOps())
	p("%d callers send operations while a fault happens. An operation is *lost* if no server knows it, *stuck* if it gets no verdict,", callers)
	p("*twice* if it was done twice, *wrong* if its verdict is. What was not executed says so and had no effect. *again* is how long it")
	p("took until an operation on a host was executed again.\n")

	p("| id | fault | times | operations | executed | lost | stuck | twice | wrong | again: p50 | p99 | longest | counted from |")
	p("|---|---|---|---|---|---|---|---|---|---|---|---|---|")
	for _, l := range lines {
		f := l.figures
		p("| %s | %s | %d | %d | %d | %d | %d | %d | %d | %s |", l.id, l.fault, l.times, f.Ops, f.OK, f.Lost, f.Stuck, f.Twice, f.Wrong,
			strings.Join(l.again(), " | "))
	}

	p("")
	for _, l := range lines {
		if l.failed {
			p("- %s FAILED: see the output of its test.", l.id)
		}
		if at, ok := percentile(l.took, 99); ok && l.goal {
			word := "reached"
			if at >= goalServed {
				word = "missed"
			}
			p("- %s: p99 of %d times %.1f s, goal %s: %s.", l.id, len(l.took), at.Seconds(), goalServed, word)
		}
	}
	return b.String()
}

// again has the last columns of a line.
func (l line) again() []string {
	if len(l.took) == 0 {
		return []string{"-", "-", "-", "-"}
	}
	var list []string
	for _, percent := range []int{50, 99, 100} {
		at, _ := percentile(l.took, percent)
		list = append(list, fmt.Sprintf("%.1f s", at.Seconds()))
	}
	return append(list, l.since)
}

// percentile is how long a share of a list took at most. ok is false for an empty list.
func percentile(list []time.Duration, percent int) (at time.Duration, ok bool) {
	if len(list) == 0 {
		return 0, false
	}
	list = slices.Sorted(slices.Values(list))
	return list[min(len(list)-1, len(list)*percent/100)], true
}

// number is the number in the id of a fault.
func number(id string) (n int) {
	_, _ = fmt.Sscanf(id, "C%d", &n) // 0: an id of another form comes first
	return n
}

// TestTableOfFigures: the page has every line, in the order of their ids, and names those that failed or missed the goal.
func TestTableOfFigures(t *testing.T) {
	text := pageOf([]line{
		{id: "C10", fault: "ten", times: 3, figures: ledger.Figures{Ops: 12, OK: 11, Twice: 1}, failed: true},
		{id: "C2", fault: "two", times: 1, since: "the kill", took: []time.Duration{7 * time.Second, time.Second}, goal: true},
	}, time.Minute)
	for _, want := range []string{"| C10 | ten | 3 | 12 | 11 | 0 | 0 | 1 | 0 | - | - | - | - |",
		"| C2 | two | 1 | 0 | 0 | 0 | 0 | 0 | 0 | 7.0 s | 7.0 s | 7.0 s | the kill |", "C10 FAILED", "C2: p99 of 2 times 7.0 s, goal 5s: missed"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if strings.Index(text, "| C2 |") > strings.Index(text, "| C10 |") {
		t.Errorf("the order is wrong: %s", text)
	}
}
