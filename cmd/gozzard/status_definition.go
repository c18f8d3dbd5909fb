package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard/client"
)

// definitionKeys are the keys of a definition that the status shows.
type definitionKeys struct {
	Command  string         `json:"command"`
	Folder   string         `json:"folder"`
	User     string         `json:"user"`
	Schedule string         `json:"schedule"`
	TimeZone string         `json:"time_zone"`
	Memory   any            `json:"memory"` // a size or a percentage
	CPU      any            `json:"cpu"`    // cores or a percentage
	Limits   map[string]any `json:"limits"`
	Rlimits  map[string]any `json:"rlimits"`
	Health   map[string]any `json:"health"`
}

// definitionLines are the lines about what the process is.
func (env *cliEnv) definitionLines(p *client.Process, parts *processParts) [][2]string {
	d := &parts.definition
	check := env.keyText(d.Health)
	if check != "" && isUp(p) && p.Health == "" { // the host does not report failures that are too few
		failures := "3"
		if n, ok := d.Health["failures"]; ok {
			failures = valueText(n)
		}
		check += env.text(": no result yet; unhealthy after %s failures in a row", failures)
	}
	lines := [][2]string{
		{"check", check},
		{"limits", env.limitText(d)},
		{"rlimits", env.keyText(d.Rlimits)},
		{"command", d.Command},
		{"folder", d.Folder},
		{"user", d.User},
		{"schedule", strings.TrimSpace(d.Schedule + " " + d.TimeZone)},
	}
	if parts.definitionErr != nil {
		lines = [][2]string{{"definition", env.text("cannot be shown: %s", errorText(env.chinese, parts.definitionErr))}}
	}

	return append(lines, [][2]string{
		{"kind", kindText(p.Kind)},
		{"version", p.Version},
		{"labels", labelText(p.Labels)},
		{"registered", momentOf(p.RegisteredAt)},
		{"reported", env.momentAgo(p.ReportedAt)},
	}...)
}

// kindText is the kind of a process, with the key that makes it: a service that is not started again is of the same kind as
// a script that runs once.
func kindText(kind string) string {
	if kind == client.KindOneShot {
		return stateWords(kind) + ", restart: never"
	}
	return stateWords(kind)
}

// limitText lists the limits of a definition.
func (env *cliEnv) limitText(d *definitionKeys) string {
	var parts []string
	if d.Memory != nil {
		parts = append(parts, "memory "+fmt.Sprint(d.Memory))
	}
	if _, ok := d.CPU.(float64); ok {
		parts = append(parts, env.text("cpu %s cores", valueText(d.CPU)))
	} else if d.CPU != nil {
		parts = append(parts, "cpu "+fmt.Sprint(d.CPU))
	}
	for _, key := range slices.Sorted(maps.Keys(d.Limits)) {
		parts = append(parts, env.moreLimit(key, d.Limits[key]))
	}
	return env.clauses(parts)
}

// keyText is an object of a definition in a line, such as "interval 5s, tcp 6379".
func (env *cliEnv) keyText(object map[string]any) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(object)) {
		parts = append(parts, key+" "+valueText(object[key]))
	}
	return env.clauses(parts)
}

// valueText is a value of a definition. Large numbers keep their digits.
func valueText(value any) string {
	if n, ok := value.(float64); ok {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	return fmt.Sprint(value)
}

// wholeNumber is a number of a definition, which JSON has as a float.
func wholeNumber(value any) int64 {
	n, _ := value.(float64)
	return int64(n)
}

// moreLimit is one key of the object limits of a definition in words.
func (env *cliEnv) moreLimit(key string, value any) string {
	text := valueText(value)
	switch key {
	case "act":
		return env.text("%s when it is above a limit", text)
	case "files":
		return env.text("%d open files", wholeNumber(value))
	case "samples":
		return env.text("%d samples in a row", wholeNumber(value))
	case "enforce":
		return env.text("enforced by the kernel: %s", yesNo(value == true))
	}
	return key + " " + text
}
