//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// line is one line of the journal, which all processes of a soak share. A line is written by one call to a file that
// is opened for appending, so lines are never mixed.
type line struct {
	At     int64  `json:"at"` // Unix nanoseconds
	Event  string `json:"event"`
	Name   string `json:"name"`
	PID    int    `json:"pid"`
	Start  uint64 `json:"start"` // of the process, as the kernel counts it
	Role   string `json:"role,omitempty"`
	Launch string `json:"launch,omitempty"`
	Op     string `json:"op,omitempty"`
	Text   string `json:"text,omitempty"`
}

// note adds a line to the journal. It is about this process, unless the line names another one.
func (c config) note(l line) {
	l.At, l.Name, l.Op = time.Now().UnixNano(), c.Name, os.Getenv("GOZZARD_OP_ID")
	if l.PID == 0 {
		l.PID = os.Getpid()
	}
	if l.Start == 0 {
		l.Start = startOf(l.PID)
	}

	b, err := json.Marshal(l)
	if err == nil {
		err = appendTo(c.Journal, append(b, '\n'))
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "cannot write to the journal of the soak: %v\n", err)
		os.Exit(4)
	}
}

func appendTo(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Write(b)
	return err
}

// startOf is the start time of a live process, 0 for one that does not exist or has ended.
func startOf(pid int) uint64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	i := bytes.LastIndexByte(b, ')')
	if err != nil || i < 0 {
		return 0
	}
	f := strings.Fields(string(b[i+1:]))
	if len(f) < 20 || f[0] == "Z" || f[0] == "X" {
		return 0
	}
	n, _ := strconv.ParseUint(f[19], 10, 64)
	return n
}

// state is what the present main process has written about itself. The commands use it and never the pid file, which
// the soak falsifies.
type state struct {
	PID    int
	Start  uint64
	Launch string
}

func (s state) alive() bool { return s.PID > 0 && s.Start != 0 && startOf(s.PID) == s.Start }

func readState() (s state) {
	b, err := os.ReadFile("state.json")
	if err != nil || json.Unmarshal(b, &s) != nil {
		return state{}
	}
	return s
}

func (s state) write() {
	b, err := json.Marshal(s)
	next := fmt.Sprintf("state.%d", os.Getpid())
	if err == nil {
		err = os.WriteFile(next, b, 0o666)
	}
	if err == nil {
		err = os.Rename(next, "state.json")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
