package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard/client"
)

// The sizes of the status of several processes, which stays on one screen.
const (
	maxStatusRows    = 20
	maxVersionsShown = 5
)

// printProcesses prints the status of several processes: a summary, and those that are not well.
func (env *cliEnv) printProcesses(rows []client.Process, all bool, p painter) error {
	// Summarize them.
	lines := env.summarize(rows, p)
	groups := groupByName(rows)
	if len(groups) > 1 && len(rows) > maxStatusRows {
		(&sortFlags{}).sortGroups(groups, "state")
		shown, notes := cut(groups, maxStatusRows, len(groups), "name")
		lines = append(append(append(lines, ""), groupTable(shown, p).lines()...), notes...)
	}

	// List all of them, or those that are not well.
	(&sortFlags{}).sort(rows, "state")
	listed, rest := rows, ""
	if !all && len(rows) > maxStatusRows {
		bad := 0
		for bad < len(rows) && !isWell(&rows[bad]) {
			bad++
		}
		if listed = rows[:min(bad, maxStatusRows)]; bad > maxStatusRows {
			rest = fmt.Sprintf("%d of %d that are not well; --all lists all", maxStatusRows, bad)
		}
	}
	if len(listed) > 0 {
		lines = append(append(lines, ""), env.statusTable(listed, p).lines()...)
	}
	if err := checkWrite(fmt.Fprintln(env.out, strings.Join(lines, "\n"))); err != nil {
		return err
	}
	if rest != "" {
		env.remark("%s", rest)
	}

	return nil
}

// summarize makes the lines of the summary.
func (env *cliEnv) summarize(rows []client.Process, p painter) []string {
	hosts, versions, restarts := map[string]bool{}, map[string]int{}, 0
	for i := range rows {
		r := &rows[i]
		hosts[processHost(r)] = true
		if r.Version != "" {
			versions[r.Version]++
		}
		restarts += r.Restarts
	}

	on := env.text("%d on %d hosts", len(rows), len(hosts))
	if len(hosts) == 1 {
		on = env.text("%d on 1 host", len(rows))
	}
	lines := []string{
		"processes   " + on,
		"states      " + countText(countStates(rows), p),
		"restarts    " + strconv.Itoa(restarts),
	}
	if len(versions) > 0 {
		lines = append(lines, "versions    "+env.versionText(versions))
	}
	return lines
}

// versionText lists versions, the most frequent first.
func (env *cliEnv) versionText(counts map[string]int) string {
	order := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	var parts []string
	for i, v := range order {
		if i == maxVersionsShown {
			parts = append(parts, env.text("and %d more", len(order)-i))
			break
		}
		parts = append(parts, printable(v)+env.inParentheses(strconv.Itoa(counts[v])))
	}
	return env.clauses(parts)
}

// statusTable is the table of processes with the reasons of their states.
func (env *cliEnv) statusTable(rows []client.Process, p painter) *textTable {
	t := newTable("NAMESPACE", "NAME", "HOST", "STATE", "PID", "RESTARTS", "UPTIME", "NEXT", "LAST EXIT", "MESSAGE")
	for i := range rows {
		r := &rows[i]
		live := env.liveCells(r, true)
		exit := env.exitText(r.Exit)
		if exit != "" && !r.Exit.At.IsZero() {
			exit += env.text(", %s ago", since(env.now(), r.Exit.At.Time))
		}
		message := r.Message
		if r.State == client.StateUnhealthy && r.HealthMessage != "" {
			message = r.HealthMessage
		}
		t.addDecorated(paintState(r, 3, p), r.Namespace, r.Name, processHost(r), live[0], live[1], live[2], live[5],
			live[6], exit, shorten(env.said(message), maxMessageShown))
	}
	return t
}

// maxMessageShown is how many characters of a message a table shows. The status of one process has it all.
const maxMessageShown = 80

// shorten cuts a text to a number of characters.
func shorten(s string, n int) string {
	s = harmless(s)
	if runes := []rune(s); len(runes) > n {
		return string(runes[:n]) + "..."
	}
	return s
}

// exitText is how a process ended, "" if that is not known.
func (env *cliEnv) exitText(e *client.Exit) string {
	if e == nil {
		return ""
	}
	parts := []string{env.endText(e.Code, e.Signal)}
	if e.OOM {
		parts = append(parts, env.text("out of memory"))
	}
	if e.Core {
		parts = append(parts, env.text("core dumped"))
	}
	return env.clauses(parts)
}

// endText is the code or the signal of an end.
func (env *cliEnv) endText(code *int, signal string) string {
	switch {
	case signal != "":
		return signal
	case code != nil:
		return env.text("code %d", *code)
	}
	return env.text("code not known")
}
