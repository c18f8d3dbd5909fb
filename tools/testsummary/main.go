// Command testsummary reads the output of `go test -json` and prints what a reader of a test run needs: one line
// for every package as soon as that package ends, the output of failed tests and failed builds, every skipped test
// with its reason, the slowest tests, and the totals. Passing tests print nothing.
//
//	go test -json ./... | testsummary -skips FILE [-strict] [-again N COMMAND]
//
// FILE lists the tests that may be skipped. With -strict a skip that is not in the list fails the run, and so does
// an entry for a test that does not exist. With -again up to N failed tests run once more, each alone, by COMMAND, which
// is go test with its flags; those that pass are listed and do not fail the run. The exit code is 1 when a test, a build or one of these checks failed.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	skips := flag.String("skips", "", "file with the tests that may be skipped")
	strict := flag.Bool("strict", false, "fail on skips that are not in the file")
	again := flag.Int("again", 0, "run up to this many failed tests once more, by the command in the arguments")
	flag.Parse()

	passed, err := run(os.Stdin, os.Stdout, *skips, *strict, secondTry{*again, flag.Args()})
	if err != nil {
		fmt.Fprintf(os.Stderr, "testsummary: %v\n", err)
		_, _ = io.Copy(io.Discard, os.Stdin) // go test goes on to its end
	}
	if err != nil || !passed {
		os.Exit(1)
	}
}

// run summarises one test run and reports whether it passed.
func run(in io.Reader, out io.Writer, skipFile string, strict bool, try secondTry) (passed bool, err error) {
	var list skipList

	if skipFile != "" {
		if list, err = readSkips(skipFile); err != nil {
			return false, err
		}
	}

	s := newSummary(out)
	lines := bufio.NewReaderSize(in, 1<<16)
	for {
		line, err := lines.ReadBytes('\n')
		s.line(line)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return false, fmt.Errorf("cannot read the output of go test: %w", err)
		}
	}

	if err := s.again(try); err != nil {
		return false, err
	}

	return s.finish(list, strict), nil
}
