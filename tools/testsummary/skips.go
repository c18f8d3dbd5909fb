package main

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
)

// skipEntry allows the tests of one package whose names match a pattern to be skipped.
type skipEntry struct {
	folder string // of the package inside the module
	test   string // a pattern of path.Match; a star does not match the slash before a subtest
	reason string
}

func (e *skipEntry) matches(k testKey) bool {
	ok, _ := path.Match(e.test, k.test) // the pattern was checked when it was read
	return ok && e.folder == short(k.pkg)
}

type skipList []skipEntry

// readSkips reads a list: a line for each entry with folder, pattern and reason, separated by spaces. A line that
// starts with # is a comment.
func readSkips(file string) (skipList, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the list of skips: %w", err)
	}

	var list skipList
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		words := strings.Fields(line)
		if len(words) < 3 {
			return nil, fmt.Errorf("%s:%d: want a folder, a test and a reason", file, number)
		}
		if _, err := path.Match(words[1], ""); err != nil {
			return nil, fmt.Errorf("%s:%d: %q: %w", file, number, words[1], err)
		}
		list = append(list, skipEntry{folder: words[0], test: words[1], reason: strings.Join(words[2:], " ")})
	}

	return list, nil
}

// find is the entry that allows a skip, nil when there is none.
func (l skipList) find(k testKey) *skipEntry {
	for i := range l {
		if l[i].matches(k) {
			return &l[i]
		}
	}
	return nil
}

// unknown are the entries of packages that ran, for tests that these packages do not have.
func (l skipList) unknown(ran map[testKey]bool) []skipEntry {
	var unknown []skipEntry
	for i := range l {
		packageRan, testRan := false, false
		for k := range ran {
			packageRan = packageRan || short(k.pkg) == l[i].folder
			testRan = testRan || l[i].matches(k)
		}
		if packageRan && !testRan {
			unknown = append(unknown, l[i])
		}
	}
	return unknown
}

// printSkips prints all skips. In a strict run it turns those that are not listed, and entries of the list for no
// test, into failures.
func (s *summary) printSkips(list skipList, strict bool) {
	slices.SortFunc(s.skips, func(a, b skip) int { return strings.Compare(a.String(), b.String()) })

	if len(s.skips) > 0 {
		fmt.Fprintln(s.out, "skipped:")
	}

	for _, k := range s.skips {
		entry := list.find(k.testKey)
		if entry != nil {
			fmt.Fprintf(s.out, "  %s: %s (allowed: %s)\n", k.testKey, k.reason, entry.reason)
			continue
		}
		fmt.Fprintf(s.out, "  %s: %s\n", k.testKey, k.reason)
		if strict {
			s.tests.skipped--
			s.tests.failed++
			s.failed = append(s.failed, k.String()+" (skipped, and the list of skips does not allow it)")
		}
	}

	if !strict {
		return
	}

	for _, entry := range list.unknown(s.ran) {
		s.tests.failed++
		s.failed = append(s.failed, fmt.Sprintf("%s %s (in the list of skips, and there is no such test)",
			entry.folder, entry.test))
	}
}
