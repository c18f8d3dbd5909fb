package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/language"
)

func number(n int) *int { return &n }

func TestStatusOfOne(t *testing.T) {
	p := aProcess("job", "10.0.0.1", client.StateCrashLoop)
	p.Restarts, p.Message, p.Kind, p.Wanted = 7, "ended 3 times\x1b[2J within a minute", client.KindPeriodic, "running"
	p.NextAt, p.Managed = client.At(atStart.Add(30*time.Second)), true
	p.Exit = &client.Exit{At: client.At(atStart.Add(-5 * time.Second)), Signal: "SIGKILL", OOM: true, Core: true}
	p.LastRun = &client.LastRun{StartedAt: client.At(atStart.Add(-65 * time.Second)), Code: number(3),
		EndedAt: client.At(atStart.Add(-5 * time.Second))}
	p.Health, p.HealthMessage = client.HealthFailing, "HTTP 500"
	parts := &processParts{definition: definitionKeys{Command: "./run.sh", User: "www", Memory: "512M", CPU: 1.5,
		Limits: map[string]any{"files": 100.0, "act": "restart", "net": "1G", "samples": 2.0, "enforce": true}}}

	env, got := testEnv(), ""
	for _, l := range append(env.stateLines(&p, parts), env.definitionLines(&p, parts)...) {
		if l[1] != "" {
			got += l[0] + ": " + printable(l[1]) + "\n"
		}
	}
	at := func(d time.Duration) string { return momentOf(client.At(atStart.Add(d))) }
	want := "process: shop:job\nhost: 0:10.0.0.1 (a)\nstate: crash loop\nreason: ended 3 times[2J within a minute\n" +
		"wanted: running\nmanaged: yes\nrestarts: 7\nnext run: " + at(30*time.Second) + " (in 30s)\n" +
		"last run: code 3, took 1m0s, " + at(-65*time.Second) + " (1m5s ago)\n" +
		"last exit: SIGKILL, out of memory, core dumped, " + at(-5*time.Second) + " (5s ago)\nhealth: failing, HTTP 500\n" +
		"limits: memory 512M, cpu 1.5 cores, restart when it is above a limit, " +
		"enforced by the kernel: yes, 100 open files, net 1G, 2 samples in a row\ncommand: ./run.sh\nuser: www\nkind: periodic\n"
	if got != want {
		t.Errorf("the status is\n%s\nwant\n%s", got, want)
	}

	// A part that cannot be read is named, and the output of the process controls no terminal.
	var b strings.Builder
	broken := &processParts{definitionErr: errors.New("no\x1b right"), eventsErr: errors.New("away"),
		log: "  one\x1b[2J\n\ttwo\u202e\n"}
	env.writeEvents(&b, broken)
	env.writeLog(&b, broken)
	if got := b.String(); got != "\nevents cannot be shown: away\n\nlast output:\n    one[2J\n   two\n" {
		t.Errorf("the rest is %q", got)
	}
	if lines := env.definitionLines(&p, broken); lines[0][1] != "cannot be shown: no\x1b right" {
		t.Errorf("the definition is %q", lines[0])
	}
}

// TestStatusInChinese: the values in the status of a process are in the language of the reader, with its punctuation. The words
// of states are not.
func TestStatusInChinese(t *testing.T) {
	env := testEnv()
	env.chinese = language.CommandLine()
	p := aProcess("job", "10.0.0.1", client.StateCrashLoop)
	d := &definitionKeys{Memory: "512M", CPU: 1.5, Limits: map[string]any{"files": 100.0, "act": "restart", "samples": 2.0}}
	for want, got := range map[string]string{
		"SIGKILL，内存不足，已生成 core": env.exitText(&client.Exit{Signal: "SIGKILL", OOM: true, Core: true}),
		"退出码 3":   env.exitText(&client.Exit{Code: number(3)}),
		"（10s 后）": env.untilIn(atStart.Add(10 * time.Second)),
		"memory 512M，cpu 1.5 核，超过限制时 restart，打开文件 100 个，连续采样 2 次": env.limitText(d),
		"1.0（2），0.9（1）":            env.versionText(map[string]int{"1.0": 2, "0.9": 1}),
		"processes   1 个，在 1 台主机上": env.summarize([]client.Process{p}, false)[0],
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestNotMeasured: a process that was just started uses something that is not known yet, not nothing.
func TestNotMeasured(t *testing.T) {
	p := aProcess("web", "10.0.0.1", client.StateRunning)
	p.CPU, p.Mem, p.MemBytes, p.FD = 0, 0, 0, 0
	env := testEnv()
	table := strings.Join(env.processTable([]client.Process{p}, false, false).lines(), "\n")
	if !strings.HasSuffix(table, "running  4711  0         -          -    1m30s") {
		t.Errorf("the table is\n%s", table)
	}

	got := fmt.Sprint(env.stateLines(&p, &processParts{}))
	for _, want := range []string{"[cpu not measured yet]", "[memory not measured yet]", "[open files not measured yet]"} {
		if !strings.Contains(got, want) {
			t.Errorf("the status is %s, without %s", got, want)
		}
	}
}

// TestStatusOfUnmanaged: an unmanaged process that has ended stays down, although it shall run.
func TestStatusOfUnmanaged(t *testing.T) {
	env := testEnv()
	for state, want := range map[string]string{
		client.StateStopped: "running, but it stays down because it is not managed; " +
			"to start and supervise it: gozzard manage web -n shop",
		client.StateFailed: "running, but it stays down because it is not managed; " +
			"to start and supervise it: gozzard manage web -n shop",
		client.StateRunning: "running", client.StateUnknown: "running", client.StateStarting: "running",
	} {
		p := aProcess("web", "10.0.0.1", state)
		p.Wanted = client.StateRunning
		if got := fmt.Sprint(env.stateLines(&p, &processParts{})); !strings.Contains(got, "[wanted "+want+"]") {
			t.Errorf("%s: the status is %s", state, got)
		}
		p.Managed = true
		if got := fmt.Sprint(env.stateLines(&p, &processParts{})); !strings.Contains(got, "[wanted running]") {
			t.Errorf("%s and managed: the status is %s", state, got)
		}
	}
}

// TestUnhealthySince: an unhealthy process has the time since its check fails, not that since its start, or none.
func TestUnhealthySince(t *testing.T) {
	env := testEnv()
	p := aProcess("web", "10.0.0.1", client.StateUnhealthy)
	p.PID = 4711
	event := func(pid int, ago time.Duration, text string) client.Event {
		return client.Event{Kind: gozzard.EventHealth, PID: pid, At: client.At(env.now().Add(-ago)), Message: text}
	}
	failed, again := event(int(p.PID), 10*time.Second, "unhealthy: refused"), event(int(p.PID), time.Second, "healthy again")
	for want, events := range map[string][]client.Event{
		"[state unhealthy for 10s]": {failed, event(1, time.Second, "unhealthy: of an earlier run")},
		"[state unhealthy]":         {failed, again},
	} {
		if got := fmt.Sprint(env.stateLines(&p, &processParts{events: events})); !strings.Contains(got, want) {
			t.Errorf("the status is %s, without %s", got, want)
		}
	}
}

// TestStatusOfMany shows that 2,000 processes stay on one screen, and that the counts cover all of them.
func TestStatusOfMany(t *testing.T) {
	var rows []client.Process
	for i := range 2000 {
		p := aProcess("web", fmt.Sprintf("10.0.%d.%d", i/250, i%250), client.StateRunning)
		p.Version = fmt.Sprintf("1.%d", i%3)
		if i%50 == 0 {
			p.State, p.PID, p.Restarts, p.Message = client.StateCrashLoop, -1, 3, strings.Repeat("long ", 100)
			p.Exit = &client.Exit{Code: number(1), At: client.At(atStart.Add(-time.Minute))}
		}
		rows = append(rows, p)
	}

	var out, errs bytes.Buffer
	env := testEnv()
	env.out, env.errs = &out, &errs
	if err := env.printProcesses(rows, false, false); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	want := []string{"processes   2000 on 2000 hosts", "states      40 crash loop, 1960 running", "restarts    120",
		"versions    1.0 (667), 1.1 (667), 1.2 (666)", ""}
	if len(lines) != len(want)+1+maxStatusRows || strings.Join(lines[:5], "\n") != strings.Join(want, "\n") {
		t.Errorf("%d lines:\n%s", len(lines), out.String())
	}
	row := "shop       web   0:10.0.0.0    crash loop  -    3         -       -     code 1, 1m0s ago  long long"
	if !strings.HasPrefix(lines[6], row) || len(lines[6]) > 200 {
		t.Errorf("the first row is %q", lines[6])
	}
	if errs.String() != "20 of 40 that are not well; --all lists all\n" {
		t.Errorf("the note is %q", errs.String())
	}

	out.Reset()
	if err := env.printProcesses(rows, true, false); err != nil || strings.Count(out.String(), "\n") != 2006 {
		t.Errorf("--all has %d lines: %v", strings.Count(out.String(), "\n"), err)
	}

	// If all of them are well, there is no table.
	well := rows[100:160] // they are sorted now
	out.Reset()
	if err := env.printProcesses(well, false, false); err != nil || strings.Contains(out.String(), "NAMESPACE") {
		t.Errorf("%v:\n%s", err, out.String())
	}
}

// TestWell has the states that are well, as the exit code of status says it.
func TestWell(t *testing.T) {
	well := map[string]bool{client.StateRunning: true, client.StateScheduled: true, client.StateCompleted: true}
	for _, state := range client.States() {
		p := client.Process{State: state}
		if isWell(&p) != well[state] {
			t.Errorf("%s: well is %v", state, isWell(&p))
		}
		if viewState(state).rank == viewState("").rank {
			t.Errorf("%s has no place in the order of states", state)
		}
	}
}
