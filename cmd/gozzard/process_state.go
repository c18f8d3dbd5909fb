package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gozzard/gozzard/client"
)

// stateView is how people see a state.
type stateView struct {
	rank   int // 0 is the worst
	colour colour
	well   bool
}

// viewState is how people see a state of client.Process.
func viewState(state string) stateView {
	switch state {
	case client.StateCrashLoop:
		return stateView{0, red, false}
	case client.StateFailed:
		return stateView{1, red, false}
	case client.StateUnhealthy:
		return stateView{2, red, false}
	case client.StateBackingOff:
		return stateView{3, yellow, false}
	case client.StateUnknown:
		return stateView{4, yellow, false}
	case client.StateStarting:
		return stateView{6, yellow, false}
	case client.StateUnregistered:
		return stateView{7, faint, false}
	case client.StateStopped:
		return stateView{8, faint, false}
	case client.StateRunning:
		return stateView{9, green, true}
	case client.StateScheduled:
		return stateView{10, green, true}
	case client.StateCompleted:
		return stateView{11, green, true}
	}
	return stateView{5, yellow, false} // of a newer server
}

// isWell reports whether a process is as it should be, as the exit code of `gozzard status` says it.
func isWell(p *client.Process) bool { return viewState(p.State).well }

// isUp reports whether the last report of a process has a pid and measurements.
func isUp(p *client.Process) bool { return p.PID > 0 && p.State != client.StateUnknown }

// stateText is the state of a process in words.
func stateText(p *client.Process) string {
	if p.LastState != "" {
		return stateWords(p.State) + " (was " + stateWords(p.LastState) + ")"
	}
	return stateWords(p.State)
}

// stateWords are the words for a state, such as "backing off".
func stateWords(state string) string { return strings.ReplaceAll(state, "_", " ") }

// countStates counts processes by their state.
func countStates(rows []client.Process) map[string]int {
	counts := map[string]int{}
	for i := range rows {
		counts[rows[i].State]++
	}
	return counts
}

// worstFirst are the states of some counts, the worst first.
func worstFirst(counts map[string]int) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		if d := viewState(a).rank - viewState(b).rank; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
}

// countText lists counts by state, such as "1 crash loop, 9 running", for a table.
func countText(counts map[string]int, p painter) string {
	return strings.Join(countTexts(counts, p), ", ")
}

// countTexts are counts by state, such as "1 crash loop". States are the same in every language.
func countTexts(counts map[string]int, p painter) []string {
	var parts []string
	for _, state := range worstFirst(counts) {
		parts = append(parts, p.paint(viewState(state).colour,
			fmt.Sprintf("%d %s", counts[state], printable(stateWords(state)))))
	}
	return parts
}

// totals is the line with the number of processes and their states.
func (env *cliEnv) totals(noun string, counts map[string]int, p painter) string {
	n := 0
	for _, c := range counts {
		n += c
	}

	list := env.clauses(countTexts(counts, p))
	switch {
	case noun == "instance" && n == 1:
		return env.text("1 instance: %s", list)
	case noun == "instance":
		return env.text("%d instances: %s", n, list)
	case n == 1:
		return env.text("1 process: %s", list)
	}
	return env.text("%d processes: %s", n, list)
}
