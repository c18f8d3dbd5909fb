package main

import (
	"fmt"
	"os"
	"path"
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
