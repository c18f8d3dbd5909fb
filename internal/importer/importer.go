package importer

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/specjson"
	"github.com/gozzard/gozzard/internal/strictjson"
)

const defaultNamespace = "default"

// Limits of what is imported.
const (
	maxProcesses = 10000
	maxNotes     = 100000
	maxValue     = 200 // bytes of a value in the report
)

// File is a configuration with its name.
type File struct {
	Name string
	Text []byte
}

// World is what an importer sees beside the files that it was given. The functions may be nil: there is nothing to see then.
type World struct {
	Namespace string                                // of all processes; "" means those of the configuration
	User      string                                // the account of processes that name none
	Profile   string                                // of pm2: the variables of env_PROFILE count, too
	Hostname  string                                // of the machine
	Adopts    bool                                  // the services of this machine are adopted: what is below /run is kept
	Env       func(name string) (string, bool)      // the environment of the other supervisor
	Read      func(path string) ([]byte, error)     // a file that a configuration names
	Script    func(path string) bool                // whether a program is a script
	Glob      func(pattern string) (paths []string) // files that a configuration names, in the order of their names
}

func (w *World) read(path string) ([]byte, error) {
	if w.Read == nil {
		return nil, errors.New("there are no other files")
	}
	return w.Read(path)
}

func (w *World) glob(pattern string) []string {
	if w.Glob == nil {
		return nil
	}
	return w.Glob(pattern)
}

func (w *World) exists(path string) bool {
	_, err := w.read(path)
	return err == nil
}

// Level says how much a note matters.
type Level string

// The levels, from the one that matters most.
const (
	LeftOut  Level = "left out" // the process is not imported
	Security Level = "security" // it runs with less protection than before
	Check    Level = "check"    // it may behave in another way: decide before it is started
	Harmless Level = "note"     // a difference that does no harm
)

// Note is one line of the report.
type Note struct {
	Level   Level  `json:"level"`
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Process string `json:"process,omitempty"`
	Key     string `json:"key,omitempty"`
	Value   string `json:"value,omitempty"`
	Reason  string `json:"reason"`
	Advice  string `json:"advice,omitempty"`
}

// Process is a definition that was made from a configuration.
type Process struct {
	Namespace string
	Name      string
	Comment   string           // a line for people
	Fields    []specjson.Field // the document, without namespace and name

	Source  string   // its name at the other supervisor
	Folders []string // that it keeps its data in, if the configuration names no folder for its commands
	DropIns []string // of its unit of systemd
	PID     int      // if the configuration names it
	File    string
	Line    int
}

// Document is the whole definition.
func (p *Process) Document() specjson.Object {
	doc := specjson.Object{{Key: "name", Value: p.Name}}
	if p.Namespace != defaultNamespace {
		doc = append(specjson.Object{{Key: "namespace", Value: p.Namespace}}, doc...)
	}
	return append(doc, p.Fields...)
}

// Result is what an importer made of configurations.
type Result struct {
	Processes []Process
	Notes     []Note
}

// Error says where and why a configuration cannot be read.
type Error struct {
	File string
	Line int // 0 if the whole file is meant
	Text string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Text)
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Text)
}

func fault(file string, line int, format string, args ...any) error {
	return &Error{File: file, Line: line, Text: fmt.Sprintf(format, args...)}
}

// LeftOutProcesses counts the processes that are not imported.
func (r *Result) LeftOutProcesses() int {
	seen := map[string]bool{}
	for i := range r.Notes {
		if n := &r.Notes[i]; n.Level == LeftOut {
			seen[n.File+"\x00"+n.Process] = true
		}
	}
	return len(seen)
}

// note adds a line to the report.
func (r *Result) note(n Note) {
	n.Value = gozzard.Clip(strings.ToValidUTF8(n.Value, "?"), maxValue)
	if len(r.Notes) < maxNotes {
		r.Notes = append(r.Notes, n)
	}
}

// check finds the faults of a document as the server would.
func check(p *Process) error {
	if err := specjson.CheckProcessName(p.Namespace); err != nil {
		return fmt.Errorf("namespace: %w", err)
	}
	if err := specjson.CheckProcessName(p.Name); err != nil {
		return fmt.Errorf("name: %w", err)
	}
	_, err := p.Spec()
	return err
}

// Spec is the definition as the server and the agent understand it.
func (p *Process) Spec() (*gozzard.Spec, error) {
	text, err := p.Document().MarshalJSON()
	if err != nil {
		return nil, err
	}
	doc, err := strictjson.Parse(text)
	if err != nil {
		return nil, err
	}

	var faults strictjson.Faults
	root, err := doc.Root(&faults)
	if err != nil {
		return nil, err
	}
	d := specjson.ReadDefinition(root)
	return d.Spec, faults.Err()
}
