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
	check := keyText(d.Health)
	if check != "" && isUp(p) && p.Health == "" {
		check += env.text(": it has not run yet")
	}
	lines := [][2]string{
		{"check", check},
		{"limits", d.limitText()},
		{"rlimits", keyText(d.Rlimits)},
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
func (d *definitionKeys) limitText() string {
	var parts []string
	if d.Memory != nil {
		parts = append(parts, "memory "+fmt.Sprint(d.Memory))
	}
	if _, ok := d.CPU.(float64); ok {
		parts = append(parts, "cpu "+valueText(d.CPU)+" cores")
	} else if d.CPU != nil {
		parts = append(parts, "cpu "+fmt.Sprint(d.CPU))
	}
	for _, key := range slices.Sorted(maps.Keys(d.Limits)) {
		parts = append(parts, moreLimit(key, d.Limits[key]))
	}
	return strings.Join(parts, ", ")
}

// keyText is an object of a definition in a line, such as "interval 5s, tcp 6379".
func keyText(object map[string]any) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(object)) {
		parts = append(parts, key+" "+valueText(object[key]))
	}
	return strings.Join(parts, ", ")
}

// valueText is a value of a definition. Large numbers keep their digits.
func valueText(value any) string {
	if n, ok := value.(float64); ok {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	return fmt.Sprint(value)
}

// moreLimit is one key of the object limits of a definition in words.
func moreLimit(key string, value any) string {
	text := valueText(value)
	switch key {
	case "act":
		return text + " when it is above a limit"
	case "files":
		return text + " open files"
	case "samples":
		return text + " samples in a row"
	case "enforce":
		return "enforced by the kernel: " + yesNo(value == true)
	}
	return key + " " + text
}
