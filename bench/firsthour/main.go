//go:build linux

// Command firsthour takes the first steps of a new user in a fresh Debian, as an ordinary account: clone, make run, run
// a program, look at it, kill it, stop it. It takes the same steps with pm2, and writes the times of both.
//
//	go run ./bench/firsthour            writes bench/firsthour/RESULTS.md
//
// It needs root, debootstrap, npm and the registries of Debian, Go and npm. DEBIAN_MIRROR names another source for
// debootstrap. A step that fails ends the command with an error.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/gozzard/gozzard/bench/sheet"
)

func main() {
	out := flag.String("out", "bench/firsthour/RESULTS.md", "write the results to this `FILE`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *out)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "firsthour:", err)
		os.Exit(1)
	}
}

// run takes the steps with both programs and writes the results.
func run(ctx context.Context, out string) (err error) {
	if os.Getuid() != 0 {
		return errors.New("needs root, because debootstrap does; the steps themselves run as an ordinary account")
	}

	// Make the machine.
	began := time.Now()
	m, err := newMachine(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.remove()) }()

	// Get both programs.
	var ours, peers figures
	if err := m.get(ctx, &ours, &peers); err != nil {
		return err
	}

	// Take the steps.
	if err := m.steps(ctx, "gozzard", gozzardScript, &ours); err != nil {
		return err
	}
	if err := m.steps(ctx, "pm2", pm2Script, &peers); err != nil {
		return err
	}

	// Write the results.
	s := &sheet.Sheet{At: began, Took: time.Since(began)}
	if err := compare(s, ours, peers); err != nil {
		return err
	}
	return os.WriteFile(out, []byte(s.Markdown(sheet.Head{
		Title: "The first hour beside pm2", Command: "go run ./bench/firsthour",
		Shared:   " and by whatever else the machine did",
		Versions: "Versions: " + sheet.Versions("gozzard of this tree, pm2 "+m.pm2Version+", nodejs of Debian 12"),
		Read: `Both programs are used by an ordinary account in a fresh Debian (debootstrap), without cgroups of its own. The program that they run is
` + "`python3 -m http.server 9000`" + `. The ratio is gozzard's time to that of pm2: below 1 it leads.`,
	})), 0o644)
}

// compare makes the table of both.
func compare(s *sheet.Sheet, ours, peers figures) error {
	t := s.Table("Steps", "gozzard, ms", "pm2, ms")
	for _, f := range ours {
		peer, ok := peers.find(f.what)
		if !ok {
			return fmt.Errorf("pm2 has no figure for %q", f.what)
		}
		t.Add(f.what, fmt.Sprint(f.ms), fmt.Sprint(peer), fmt.Sprintf("%.2f", float64(f.ms)/float64(max(peer, 1))), "")
	}
	s.Note("`gozzard run` returns when the program was up for a second (the check after the start); `pm2 start` returns when it has started it.")
	s.Note("gozzard is built from its source here. pm2 comes as JavaScript that is ready to run; its nodejs was installed before and is not counted.")
	return nil
}
