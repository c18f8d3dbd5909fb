//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// onScreen runs a command in a terminal of a size until the terminal shows a text, and presses Ctrl-C then, or q for
// top: onscreen FILE COLUMNSxLINES REGEXP COMMAND... What the terminal got is in the file. A picture that is larger than
// the terminal is a fault, and so is an exit code that is not 0.
func onScreen(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 {
		ts.Fatalf("usage: onscreen FILE COLUMNSxLINES REGEXP COMMAND...")
	}
	var columns, lines uint16
	_, err := fmt.Sscanf(args[1], "%dx%d", &columns, &lines)
	ts.Check(err)
	want, err := regexp.Compile(args[2])
	ts.Check(err)

	// Start the command.
	program := ""
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if info, err := os.Stat(filepath.Join(dir, args[3])); err == nil && !info.IsDir() && program == "" {
			program = filepath.Join(dir, args[3])
		}
	}
	terminal, inside := openTerminal(ts, columns, lines)
	defer terminal.Close()
	cmd := exec.Command(program, args[4:]...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = ts.Getenv("WORK"), inside, inside, inside
	for _, name := range []string{"PATH", "HOME", "WORK", "GOZZARD_CREDENTIALS", "NO_COLOR"} {
		if v := ts.Getenv(name); v != "" {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	cmd.Env = append(cmd.Env, "TERM=xterm")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	ts.Check(cmd.Start())
	ts.Check(inside.Close())

	// Read what it shows, and press Ctrl-C when the text is there.
	var all bytes.Buffer
	shown := make(chan []byte)
	go func() {
		defer close(shown)
		for part := make([]byte, 1<<16); ; {
			n, err := terminal.Read(part)
			if n > 0 {
				shown <- bytes.Clone(part[:n])
			}
			if err != nil { // the command has ended
				return
			}
		}
	}()
	limit, pressed := time.After(time.Minute), false
	for open := true; open; {
		var part []byte
		select {
		case part, open = <-shown:
		case <-limit:
			_ = cmd.Process.Kill() // the wait below fails
		}
		all.Write(part)
		if !pressed && want.Match(all.Bytes()) {
			if slices.Contains(args, "--watch") || slices.Contains(args, "-w") { // other commands end by themselves; Ctrl-C may come before that
				_, err := terminal.Write([]byte{3})
				ts.Check(err)
			}
			if slices.Contains(args, "top") {
				_, err := terminal.Write([]byte("q"))
				ts.Check(err)
			}
			pressed = true
		}
	}
	err = cmd.Wait()
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), all.Bytes(), 0o600))
	if err != nil || !pressed {
		ts.Fatalf("%v; the screen showed %q", err, all.String())
	}
	checkFrames(ts, all.String(), int(columns), int(lines))
}

// checkFrames rejects pictures that do not fit into the terminal.
func checkFrames(ts *testscript.TestScript, all string, columns, lines int) {
	for _, frame := range strings.Split(all, cursorHome)[1:] {
		frame, _, _ = strings.Cut(frame, clearRest)
		rows := strings.Split(frame, "\r\n")
		if len(rows) > lines {
			ts.Fatalf("%d lines in a terminal of %d: %q", len(rows), lines, frame)
		}
		for _, row := range rows {
			if n := text.StringWidthWithoutEscSequences(strings.TrimSuffix(row, clearLine)); n > columns {
				ts.Fatalf("%d columns in a terminal of %d: %q", n, columns, row)
			}
		}
	}
}

// openTerminal makes a terminal: what a person sees of it, and what a program has as its input and output.
func openTerminal(ts *testscript.TestScript, columns, lines uint16) (outside, inside *os.File) {
	outside, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	ts.Check(err)
	fd := int(outside.Fd())
	ts.Check(unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	ts.Check(err)
	ts.Check(unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: lines}))
	inside, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	ts.Check(err)
	return outside, inside
}
