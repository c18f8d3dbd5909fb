package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

const (
	dataRace = "WARNING: DATA RACE" // how the race detector begins a report
	aPanic   = "panic: "            // the tests after it did not run
)

// secondTry says which failed tests may run once more, alone. Tests that start many processes can fail for lack of
// processor time on a machine that is shared.
type secondTry struct {
	most    int      // failed tests, without their subtests; with more of them the failure is not a matter of time
	command []string // go test with its flags; the name of the tests and the package are added
}

// again runs failed tests alone and takes those that pass off the list of failures. It does nothing when a package was
// not built or did not end, after a panic, and when the race detector reported something.
func (s *summary) again(try secondTry) error {
	failed := s.failedTests()
	if len(failed) > try.most {
		s.giveUp(fmt.Sprintf("%d tests failed, and at most %d run again", len(failed), try.most))
	}
	switch {
	case len(try.command) == 0 || len(failed) == 0 || len(s.running) > 0:
		return nil
	case s.hopeless != "":
		fmt.Fprintf(s.out, "no second try: %s\n", s.hopeless)
		return nil
	}

	fmt.Fprintf(s.out, "again, alone: %s\n", strings.Join(names(failed), ", "))
	for _, key := range failed {
		passed, err := s.alone(key, try.command)
		if err != nil {
			return err
		}
		if passed {
			s.forgive(key)
		}
	}

	return nil
}

// failedTests are the failed tests without their subtests, in the order of packages and names.
func (s *summary) failedTests() []testKey {
	tops := map[testKey]bool{}
	for key := range s.failedKeys {
		tops[key.top()] = true
	}

	var failed []testKey
	for key := range tops {
		failed = append(failed, key)
	}
	slices.SortFunc(failed, func(a, b testKey) int { return strings.Compare(a.String(), b.String()) })

	return failed
}

// top is the test that a subtest belongs to.
func (k testKey) top() testKey {
	name, _, _ := strings.Cut(k.test, "/")
	return testKey{k.pkg, name}
}

func names(keys []testKey) (names []string) {
	for _, key := range keys {
		names = append(names, key.String())
	}
	return names
}

// alone runs one test, prints what it prints when it fails again, and reports whether it passed without a race. A test
// that skips a part at its second try has not passed.
func (s *summary) alone(key testKey, command []string) (passed bool, err error) {
	args := slices.Concat(command[1:], []string{"-count=1", "-run", "^" + regexp.QuoteMeta(key.test) + "$", key.pkg})
	cmd := exec.Command(command[0], args...)
	cmd.Stderr = os.Stderr
	output, runErr := cmd.Output()
	if len(output) == 0 && runErr != nil {
		return false, fmt.Errorf("cannot run %s again: %w", key, runErr)
	}

	second := newSummary(s.out)
	for line := range bytes.Lines(output) {
		second.line(line)
	}

	clean := second.tests.passed > 0 && second.tests.failed == 0 && len(second.skips) == 0 && second.hopeless == ""
	return runErr == nil && clean, nil
}

// forgive takes a test and its subtests off the failures, and its package when nothing else failed in it.
func (s *summary) forgive(top testKey) {
	s.forgiven = append(s.forgiven, top.String())
	left := false
	for key := range s.failedKeys {
		switch {
		case key.top() == top:
			delete(s.failedKeys, key)
			s.failed = slices.DeleteFunc(s.failed, func(name string) bool { return name == key.String() })
			s.tests.failed--
			s.tests.passed++
		case key.pkg == top.pkg:
			left = true
		}
	}

	if !left {
		s.pkgFailed--
		s.pkgPassed++
	}
}

// printForgiven lists the tests that passed at their second try, so that nobody overlooks them.
func (s *summary) printForgiven(out io.Writer) {
	if len(s.forgiven) == 0 {
		return
	}
	fmt.Fprintln(out, "failed among others and passed alone:")
	for _, name := range s.forgiven {
		fmt.Fprintf(out, "  %s\n", name)
	}
}
