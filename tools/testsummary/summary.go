package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

const module = "github.com/gozzard/gozzard"

// maxOutput limits what is kept of the output of one test until the test ends.
const maxOutput = 4 << 20

// event is one line of `go test -json`. `go doc test2json` and `go help buildjson` describe its fields.
type event struct {
	Action     string
	Package    string
	ImportPath string // of a build event
	Test       string // "" for the package as a whole
	Elapsed    float64
	Output     string
	Code       int // of the action exit, which the Makefile writes when go test fails
}

// testKey names one test of one package.
type testKey struct{ pkg, test string }

func (k testKey) String() string { return short(k.pkg) + " " + k.test }

// short is the folder of a package inside the module, "." for the root.
func short(pkg string) string {
	if pkg == module {
		return "."
	}
	return strings.TrimPrefix(pkg, module+"/")
}

// counts are the results of tests and subtests.
type counts struct{ passed, failed, skipped int }

// pkgState is a package whose tests have not ended yet.
type pkgState struct {
	counts
	cached bool
	output map[string]*bytes.Buffer // by test, until the test ends
}

// skip is a test that did not run, with the reason that it gave.
type skip struct {
	testKey
	reason string
}

// summary collects the events of a run and prints while it does.
type summary struct {
	out     io.Writer
	running map[string]*pkgState
	tests   counts
	ran     map[testKey]bool // all tests that ended
	skips   []skip
	failed  []string // tests and packages, for the list at the end
	times   []timed

	failedKeys map[testKey]bool // tests that ended and failed
	forgiven   []string         // tests that passed at their second try
	hopeless   string           // what failed that a second try cannot mend; "": nothing
	explained  int              // how many failures belong to commands that have ended

	pkgPassed, pkgFailed, pkgWithout int
}

func newSummary(out io.Writer) *summary {
	return &summary{out: out, running: map[string]*pkgState{}, ran: map[testKey]bool{}, failedKeys: map[testKey]bool{}}
}

// line reads one line of input. A line that is no event is printed as it is: go itself wrote it.
func (s *summary) line(line []byte) {
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}

	var e event
	if json.Unmarshal(line, &e) != nil || e.Action == "" {
		fmt.Fprintf(s.out, "%s\n", bytes.TrimRight(line, "\n"))
		return
	}

	switch at := (testKey{e.Package, e.Test}).String(); {
	case strings.Contains(e.Output, dataRace):
		s.giveUp("the race detector reported something in " + at)
	case strings.HasPrefix(e.Output, aPanic):
		s.giveUp("a panic in " + at)
	}

	switch {
	case e.Action == "build-output":
		fmt.Fprint(s.out, e.Output)
	case e.Action == "exit":
		s.exit(e.Code)
	case e.Package == "":
	case e.Test == "":
		s.packageEvent(&e)
	default:
		s.testEvent(&e)
	}
}

// giveUp notes why failed tests are not run once more. The first reason stays.
func (s *summary) giveUp(why string) {
	if s.hopeless == "" {
		s.hopeless = why
	}
}

// exit takes the code of a go test that failed. When no test or package of it did, go itself failed.
func (s *summary) exit(code int) {
	if len(s.failed) == s.explained {
		s.giveUp("go test failed, and no test")
		s.tests.failed++
		s.failed = append(s.failed, fmt.Sprintf("go test ended with exit code %d, and no test failed: see above", code))
	}
	s.explained = len(s.failed)
}

func (s *summary) state(pkg string) *pkgState {
	p := s.running[pkg]
	if p == nil {
		p = &pkgState{output: map[string]*bytes.Buffer{}}
		s.running[pkg] = p
	}
	return p
}

// keep adds to the output of a test.
func (p *pkgState) keep(test, text string) {
	b := p.output[test]
	if b == nil {
		b = &bytes.Buffer{}
		p.output[test] = b
	}
	if b.Len() < maxOutput {
		b.WriteString(text)
	}
}

func (s *summary) testEvent(e *event) {
	p := s.state(e.Package)
	key := testKey{e.Package, e.Test}

	switch e.Action {
	case "run":
		p.keep(e.Test, "") // unfinished until it ends
		return
	case "output":
		p.keep(e.Test, e.Output)
		return
	case "pass":
		p.passed++
	case "fail":
		p.failed++
		s.failed = append(s.failed, key.String())
		s.failedKeys[key] = true
		s.print(key, p.output[e.Test])
	case "skip":
		p.skipped++
		s.skips = append(s.skips, skip{key, skipReason(p.output[e.Test])})
	default: // pause, cont, bench
		return
	}

	if key == key.top() {
		s.times = append(s.times, timed{key, e.Elapsed})
	}

	s.ran[key] = true
	delete(p.output, e.Test)
}

// print shows the output of a failed test.
func (s *summary) print(key testKey, output *bytes.Buffer) {
	fmt.Fprintf(s.out, "=== %s\n", key)
	if output == nil || output.Len() == 0 {
		return
	}
	for line := range strings.Lines(output.String()) {
		if !progress(line) {
			fmt.Fprintln(s.out, strings.TrimRight(line, "\n"))
		}
	}
	if output.Len() >= maxOutput {
		fmt.Fprintln(s.out, "(the rest of this output is left out)")
	}
}

// progress reports whether a line only says that a test goes on.
func progress(line string) bool {
	for _, word := range []string{"RUN", "PAUSE", "CONT", "NAME"} {
		if strings.HasPrefix(line, "=== "+word+" ") {
			return true
		}
	}
	return false
}

// skipReason finds what a test gave to Skip: the line before its result.
func skipReason(output *bytes.Buffer) string {
	if output == nil {
		return ""
	}
	reason := ""
	for line := range strings.Lines(output.String()) {
		line = strings.TrimSpace(line)
		if line != "" && !progress(line) && !strings.HasPrefix(line, "--- ") {
			reason = line
		}
	}
	return reason
}

func (s *summary) packageEvent(e *event) {
	p := s.state(e.Package)

	switch e.Action {
	case "output":
		p.cached = p.cached || strings.HasPrefix(e.Output, "ok ") && strings.Contains(e.Output, "(cached)")
		p.keep("", e.Output)
		return
	case "pass":
		s.pkgPassed++
		s.closing("ok  ", e, p)
	case "fail":
		s.pkgFailed++
		s.packageFailed(e, p)
	case "skip":
		s.pkgWithout++
		fmt.Fprintf(s.out, "?   \t%s\t[no test files]\n", e.Package)
	default: // start
		return
	}

	s.tests.passed += p.passed
	s.tests.failed += p.failed
	s.tests.skipped += p.skipped
	delete(s.running, e.Package)
}

// packageFailed prints what no test that ended has printed: the output of tests that a panic or the time limit
// stopped, and of the package itself.
func (s *summary) packageFailed(e *event, p *pkgState) {
	var unfinished []string
	for test := range p.output {
		if test != "" {
			unfinished = append(unfinished, test)
		}
	}

	slices.Sort(unfinished)

	for _, test := range unfinished {
		key := testKey{e.Package, test}
		s.giveUp(key.String() + " did not end")
		p.failed++
		s.failed = append(s.failed, key.String()+" (did not end)")
		s.print(key, p.output[test])
	}

	if p.failed == 0 { // it was not built, or it ended outside of its tests
		s.giveUp(short(e.Package) + " was not built, or ended outside of its tests")
		p.failed++
		s.failed = append(s.failed, short(e.Package))
	}

	if own := p.output[""]; own != nil {
		s.printOwn(own.String())
	}

	s.closing("FAIL", e, p)
}

// printOwn prints the output of a package that belongs to no test, without the closing lines of go test.
func (s *summary) printOwn(text string) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if line != "PASS" && line != "FAIL" && !strings.HasPrefix(line, "FAIL\t") &&
			!strings.HasPrefix(line, "ok  \t") {
			fmt.Fprintln(s.out, line)
		}
	}
}

// closing prints the line of a package in the form of go test, with its counts.
func (s *summary) closing(word string, e *event, p *pkgState) {
	took := fmt.Sprintf("%.1fs", e.Elapsed)
	if p.cached {
		took = "(cached)"
	}
	text := fmt.Sprintf("%d passed", p.passed)
	if p.failed > 0 {
		text += fmt.Sprintf(", %d failed", p.failed)
	}
	if p.skipped > 0 {
		text += fmt.Sprintf(", %d skipped", p.skipped)
	}
	fmt.Fprintf(s.out, "%s\t%s\t%s\t[%s]\n", word, e.Package, took, text)
}

// finish prints the end of the summary and reports whether the run passed.
func (s *summary) finish(list skipList, strict bool) (passed bool) {
	// A package without an end was interrupted.
	for pkg := range s.running {
		s.pkgFailed++
		s.tests.failed++
		s.failed = append(s.failed, short(pkg)+" (did not end)")
	}

	// Skips, each with its reason and that of the list.
	s.printSkips(list, strict)
	s.printSlowest()
	s.printForgiven(s.out)

	// Failures once more, because their output may be far above.
	slices.Sort(s.failed)

	if len(s.failed) > 0 {
		fmt.Fprintln(s.out, "failed:")
		for _, name := range s.failed {
			fmt.Fprintf(s.out, "  %s\n", name)
		}
	}

	if s.pkgPassed+s.pkgFailed == 0 {
		fmt.Fprintln(s.out, "no package was tested")
	}

	// Totals. The last line is for programs as well.
	fmt.Fprintf(s.out, "packages: %d passed, %d failed, %d without tests\n", s.pkgPassed, s.pkgFailed, s.pkgWithout)
	fmt.Fprintf(s.out, "%d passed, %d failed, %d skipped\n", s.tests.passed, s.tests.failed, s.tests.skipped)
	return s.pkgPassed > 0 && s.pkgFailed == 0 && s.tests.failed == 0
}
