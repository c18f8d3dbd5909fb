// Package sheet writes the results of a benchmark: tables that compare figures with those of a peer or a limit, notes,
// missed goals, and faults.
package sheet

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// Sheet is the result of a run.
type Sheet struct {
	At   time.Time
	Took time.Duration

	tables []*Table
	notes  []string
	missed []string
	faults []string
}

// Head is the text above the tables.
type Head struct {
	Title    string
	Command  string // the command that made the results
	Shared   string // what else used the machine, as words after "in the run"
	Versions string
	Read     string // how to read the figures
}

// Table compares figures with those of a limit or peer.
type Table struct {
	title, ours, peer string
	lines             [][5]string // what, ours, peer, ratio, goal
}

// Table adds a table. peer is "" when there is none.
func (s *Sheet) Table(title, ours, peer string) *Table {
	t := &Table{title: title, ours: ours, peer: peer}
	s.tables = append(s.tables, t)
	return t
}

// Add adds a line to the table.
func (t *Table) Add(what, ours, peer, ratio, goal string) {
	t.lines = append(t.lines, [5]string{what, ours, peer, ratio, goal})
}

// Done sets the time that the run took.
func (s *Sheet) Done() { s.Took = time.Since(s.At) }

// Note adds a note.
func (s *Sheet) Note(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

// Miss says of a goal that is missed by how much and why.
func (s *Sheet) Miss(format string, args ...any) {
	s.missed = append(s.missed, fmt.Sprintf(format, args...))
}

// Missed are the goals that are missed so far.
func (s *Sheet) Missed() []string { return s.missed }

// AddFault records that something went wrong in the run.
func (s *Sheet) AddFault(format string, args ...any) {
	s.faults = append(s.faults, fmt.Sprintf(format, args...))
}

// Fault returns an error if something went wrong in the run.
func (s *Sheet) Fault() error {
	if len(s.faults) == 0 {
		return nil
	}
	return errors.New("the run had faults:\n  " + strings.Join(s.faults, "\n  "))
}

// Markdown returns the whole sheet.
func (s *Sheet) Markdown(h Head) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("# %s\n", h.Title)
	p("Made by `%s` on %s in %s, %s/%s, %d CPUs shared by everything in the run%s.", h.Command,
		s.At.UTC().Format("2006-01-02"), s.Took.Round(time.Second),
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), h.Shared)
	p("%s.\n", h.Versions)
	p("%s", h.Read)

	for _, t := range s.tables {
		t.write(p)
	}

	section(p, "Notes", s.notes)
	section(p, "Goals that are missed", s.missed)
	section(p, "What went wrong", s.faults)
	return b.String()
}

func (t *Table) write(p func(string, ...any)) {
	p("\n## %s\n", t.title)

	if t.peer == "" {
		p("| | %s |\n|---|---|", t.ours)
	} else {
		p("| | %s | %s | ratio | goal |\n|---|---|---|---|---|", t.ours, t.peer)
	}

	for _, l := range t.lines {
		if t.peer == "" {
			p("| %s | %s |", l[0], l[1])
		} else {
			p("| %s |", strings.Join(l[:], " | "))
		}
	}
}

func section(p func(string, ...any), title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	p("\n## %s\n", title)
	for _, l := range lines {
		p("- %s", l)
	}
}

// Versions lists the version of Go, the text also, and the versions of modules of this program.
func Versions(also string, modules ...string) string {
	list := []string{runtime.Version()}

	if also != "" {
		list = append(list, also)
	}

	info, _ := debug.ReadBuildInfo()
	for _, want := range modules {
		version := "of unknown version"
		if info != nil {
			if i := slices.IndexFunc(info.Deps, func(m *debug.Module) bool { return m.Path == want }); i >= 0 {
				version = info.Deps[i].Version
			}
		}
		list = append(list, want+" "+version)
	}

	return strings.Join(list, ", ")
}
