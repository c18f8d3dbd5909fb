package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/gozzard/gozzard/client"
)

// aProcess is a process on a host for tests of the output.
func aProcess(name, ip, state string) client.Process {
	p := client.Process{Namespace: "shop", Name: name, State: state, PID: -1, Host: client.HostRef{Agent: "a", IP: ip}}
	if state == client.StateRunning {
		p.PID, p.CPU, p.MemBytes = 4711, 1.25, 12_900_000
		p.StartedAt = client.At(atStart.Add(-90 * time.Second))
	}
	return p
}

func testEnv() *cliEnv { return &cliEnv{now: func() time.Time { return atStart }} }

func TestProcessTable(t *testing.T) {
	web, loop, gone, job := aProcess("web", "10.0.0.1", client.StateRunning),
		aProcess("loop", "10.0.0.1", client.StateCrashLoop), aProcess("网关服", "10.0.0.2", client.StateUnknown),
		aProcess("job", "10.0.0.2", client.StateScheduled)
	loop.Restarts, loop.NextAt = 12, client.Time{Time: atStart.Add(40 * time.Second)}
	gone.LastState, gone.PID = client.StateRunning, 7
	job.NextAt = client.Time{Time: atStart.Add(-time.Second)}
	loop.Name = "lo\x1b[2Jop"

	want := `NAMESPACE  NAME     HOST        STATE                  PID   RESTARTS  CPU(HOST)  MEM       UPTIME  NEXT
shop       web      0:10.0.0.1  running                4711  0         1.2%       12.3 MiB  1m30s   -
shop       lo[2Jop  0:10.0.0.1  crash loop             -     12        -          -         -       in 40s
shop       网关服   0:10.0.0.2  unknown (was running)  -     0         -          -         -       -
shop       job      0:10.0.0.2  scheduled              -     0         -          -         -       now`
	rows := []client.Process{web, loop, gone, job}
	if got := strings.Join(testEnv().processTable(rows, false, false).lines(), "\n"); got != want {
		t.Errorf("the table is\n%s\nwant\n%s", got, want)
	}

	// Colours do not change the columns, and there is no other control sequence.
	painted := testEnv().processTable(rows, false, true).lines()
	if !strings.Contains(painted[2], "\x1b[31mcrash loop\x1b[0m") {
		t.Errorf("the crash loop is not red: %q", painted[2])
	}
	for i, line := range painted {
		plain := strings.NewReplacer("\x1b[31m", "", "\x1b[32m", "", "\x1b[33m", "", "\x1b[0m", "").Replace(line)
		if plain != strings.Split(want, "\n")[i] {
			t.Errorf("with colours, line %d is %q", i, line)
		}
	}
}

func TestSortProcesses(t *testing.T) {
	rows := []client.Process{
		aProcess("b", "10.0.0.10", client.StateRunning), aProcess("b", "10.0.0.9", client.StateStopped),
		aProcess("a", "10.0.0.10", client.StateCrashLoop), aProcess("c", "10.0.0.1", client.StateRunning),
	}
	rows[0].CPU, rows[3].CPU = 5, 7
	rows[0].MemBytes, rows[3].MemBytes = 9, 8
	rows[2].Restarts = 3
	rows[3].StartedAt = client.At(atStart.Add(-time.Hour))

	for by, want := range map[string]string{
		"name": "a10 b9 b10 c1", "-name": "c1 b9 b10 a10", "host": "c1 b9 a10 b10", "state": "a10 b9 b10 c1",
		"cpu": "c1 b10 a10 b9", "mem": "b10 c1 a10 b9", "restarts": "a10 b9 b10 c1", "uptime": "c1 b10 a10 b9",
		"-cpu": "a10 b9 b10 c1",
	} {
		s := sortFlags{by: by}
		if err := s.check(); err != nil {
			t.Fatal(err)
		}
		sorted := slices.Clone(rows)
		s.sort(sorted, s.by)
		var got []string
		for i := range sorted {
			host := processHost(&sorted[i])
			got = append(got, sorted[i].Name+host[strings.LastIndex(host, ".")+1:])
		}
		if strings.Join(got, " ") != want {
			t.Errorf("by %s: %v, want %s", by, got, want)
		}
	}

	for _, bad := range []string{"pid", "-", "--cpu"} {
		if err := (&sortFlags{by: bad}).check(); err == nil {
			t.Errorf("--sort %s is accepted", bad)
		}
	}
}

func TestGroups(t *testing.T) {
	var rows []client.Process
	for i := range 60 {
		rows = append(rows, aProcess("web", fmt.Sprintf("10.0.0.%d", i), client.StateRunning))
	}
	rows = append(rows, aProcess("web", "10.0.0.1", client.StateStopped), aProcess("db", "10.0.0.1", client.StateRunning),
		aProcess("loop", "10.0.0.1", client.StateCrashLoop))
	rows[62].Restarts = 9

	groups := groupByName(rows)
	(&sortFlags{}).sortGroups(groups, "state")
	want := `NAMESPACE  NAME  PROCESSES  HOSTS  STATE                  RESTARTS  MEM
shop       loop  1          1      1 crash loop           9         -
shop       web   61         60     1 stopped, 60 running  0         738.1 MiB
shop       db    1          1      1 running              0         12.3 MiB`
	if got := strings.Join(groupTable(groups, false).lines(), "\n"); got != want {
		t.Errorf("the groups are\n%s\nwant\n%s", got, want)
	}
	if got, want := testEnv().totals("process", countStates(rows), false), "63 processes: 1 crash loop, 1 stopped, 61 running"; got != want {
		t.Errorf("the totals are %q, want %q", got, want)
	}

	// Only a terminal is grouped without being asked, and never when the caller sorts by what groups do not have.
	env, screen := testEnv(), testEnv()
	screen.screen = true
	all := &listing{rows: rows, total: len(rows)}
	for _, c := range []struct {
		env  *cliEnv
		o    psOptions
		rows *listing
		room int
		want bool
	}{
		{env, psOptions{}, all, 0, false},
		{screen, psOptions{}, all, 0, true},
		{screen, psOptions{groupFlags: groupFlags{never: true}}, all, 0, false},
		{screen, psOptions{sortFlags: sortFlags{by: "cpu"}}, all, 0, false},
		{screen, psOptions{}, &listing{rows: rows, total: 9999, next: 63}, 0, false},
		{screen, psOptions{}, &listing{rows: rows[40:], total: 23}, 0, false},
		{screen, psOptions{}, &listing{rows: rows[40:], total: 23}, 20, true},
		{screen, psOptions{}, &listing{rows: rows[40:], total: 23}, 2, false},
	} {
		v := &psView{env: c.env, o: &c.o}
		if got := v.shouldGroup(c.rows, groupByName(c.rows.rows), c.room); got != c.want {
			t.Errorf("%+v with %d rows and room for %d: grouped is %v", c.o, len(c.rows.rows), c.room, got)
		}
	}
}

func TestFrameFitsTheScreen(t *testing.T) {
	p := picture{title: "12 processes: " + strings.Repeat("x", 100), hint: "enlarge the window"}
	for i := range 50 {
		p.lines = append(p.lines, fmt.Sprintf("%d 网关服网关服 %s", i, painter(true).paint(red, "crash loop crash loop")))
	}

	for width := 1; width < 60; width += 3 {
		for height := 1; height < 60; height += 7 {
			frame := p.frame(width, height)
			body, ok := strings.CutPrefix(frame, cursorHome)
			body, ends := strings.CutSuffix(body, clearRest)
			lines := strings.Split(body, "\r\n")
			if !ok || !ends || len(lines) > height {
				t.Fatalf("%d lines on a screen of %d: %q", len(lines), height, frame)
			}
			for _, line := range lines {
				line = strings.TrimSuffix(line, clearLine)
				if n := text.StringWidthWithoutEscSequences(line); n > width {
					t.Fatalf("%q has %d columns on a screen of %d", line, n, width)
				}
				if strings.Count(line, "\x1b[31m") != strings.Count(line, endColour) {
					t.Fatalf("a colour does not end in %q", line)
				}
			}
			if height == 8 && width > 40 && !strings.Contains(lines[7], "... 44 more; enlarge") {
				t.Errorf("the last line does not say what is missing: %q", lines[7])
			}
		}
	}
}

func TestColourOnlyOnTerminals(t *testing.T) {
	for _, c := range []struct {
		when   string
		screen bool
		no     string
		want   painter
	}{
		{"auto", true, "", true}, {"auto", false, "", false}, {"auto", true, "1", false}, {"always", false, "1", true},
		{"never", true, "", false},
	} {
		env := &cliEnv{screen: c.screen, lookup: func(string) (string, bool) { return c.no, c.no != "" }}
		if got := (&colourFlag{when: c.when}).painter(env); got != c.want {
			t.Errorf("%+v: colours are %v", c, got)
		}
	}
}

func TestPsSortsAllBeforeTheLimit(t *testing.T) {
	c := newCLI(t)
	out, errs, _ := c.run(t.Context(), "ps", "--sort", "-name", "--limit", "1")
	if !strings.Contains(out, "网关服  0:10.0.0.1") || strings.Contains(out, "web") {
		t.Errorf("the last name is not first:\n%s", out)
	}
	if !strings.Contains(errs, "1 of 4 processes listed; --limit 0 lists all\n4 processes: 2 stopped, 2 running\n") {
		t.Errorf("stderr is %s", errs)
	}
	c.want(0, "shop       web     2          2      2 running", "ps", "--group")
	c.want(2, "", "ps", "--group", "--sort", "cpu")
	c.want(2, "", "ps", "--group", "--no-group")
	c.want(2, "", "ps", "--sort", "size")
	c.want(2, "", "ps", "--color", "red")
	c.want(0, "running", "ps", "--state", "Running", "--state", "running")
}

// TestWatchScreenKeepsThePicture shows that a server that is away does not clear the screen, and that every way out of
// it restores the terminal.
func TestWatchScreenKeepsThePicture(t *testing.T) {
	var out bytes.Buffer
	env := testEnv()
	env.out, env.size = &out, func() (int, int) { return 60, 10 }
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	err := env.watchScreen(ctx, time.Millisecond, nil, func(int) (picture, error) {
		switch n++; n {
		case 1:
			return picture{title: "2 processes", lines: []string{"HEADER", "web"}}, nil
		case 2:
			return picture{}, withExitCode(errors.New("the server is away\x1b[2J"))
		}
		cancel()
		return picture{}, ctx.Err()
	})
	want := enterScreen + cursorHome + "2 processes\x1b[K\r\nHEADER\x1b[K\r\nweb\x1b[K" + clearRest +
		cursorHome + "gozzard: the server is away[2J; trying again\x1b[K\r\nHEADER\x1b[K\r\nweb\x1b[K" + clearRest + leaveScreen
	if err != nil || out.String() != want {
		t.Errorf("%v: the terminal got %q, want %q", err, out.String(), want)
	}

	out.Reset()
	refused := usage("no such business")
	if err := env.watchScreen(t.Context(), time.Millisecond, nil, func(int) (picture, error) {
		return picture{}, refused
	}); !errors.Is(err, refused) || out.String() != enterScreen+leaveScreen {
		t.Errorf("%v: the terminal got %q", err, out.String())
	}
}
