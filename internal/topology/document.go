package topology

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/yamldoc"
)

// MaxDocument is how many bytes a document may have.
const MaxDocument = yamldoc.MaxSize

// maxFaults bounds what is listed of a document that is wrong all over; the rest is counted.
const maxFaults = 1000

// Parse reads a document, YAML or JSON, into a sorted business. It is taken whole or not at all: the error is a
// *gozzard.Error with every fault and its place, such as "line 12: sets[0].modules[1].name".
func Parse(doc []byte) (*Business, error) {
	root, err := yamldoc.Parse(doc)
	if err != nil {
		var e *yamldoc.Error
		if !errors.As(err, &e) {
			return nil, fmt.Errorf("cannot read the document: %w", err)
		}
		return nil, faulty([]gozzard.Fault{{Path: "line " + strconv.Itoa(e.Line), Text: e.Text}})
	}

	d := &decoder{texts: map[string]string{}, bad: map[string]bool{}}
	b := d.business(root)
	for _, f := range b.Check() {
		if !d.told(f.Path) {
			d.faults = append(d.faults, located{line(root, f.Path), f})
		}
	}

	if len(d.faults) > 0 {
		return nil, faulty(d.list())
	}

	b.Sort()
	return b, nil
}

func faulty(faults []gozzard.Fault) error {
	return &gozzard.Error{Kind: gozzard.ErrInvalid, Message: "the document is wrong and nothing was changed",
		Faults: faults}
}

// located is a fault with its line.
type located struct {
	line int32
	gozzard.Fault
}

// list puts the faults in the order of the document, with their lines.
func (d *decoder) list() []gozzard.Fault {
	slices.SortStableFunc(d.faults, func(a, b located) int { return cmp.Compare(a.line, b.line) })
	list := make([]gozzard.Fault, 0, min(len(d.faults), maxFaults+1))
	for i, f := range d.faults {
		if i == maxFaults {
			return append(list, gozzard.Fault{Text: fmt.Sprintf("and %d more", len(d.faults)-maxFaults)})
		}
		path := "line " + strconv.Itoa(int(f.line))
		if f.Path != "" {
			path += ": " + f.Path
		}
		list = append(list, gozzard.Fault{Path: path, Text: f.Text})
	}

	return list
}

// told reports whether something was said already about a value, or about what it stands in: what follows from that
// is no fault of its own.
func (d *decoder) told(path string) bool {
	for path != "" {
		if d.bad[path] {
			return true
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return d.bad[""]
}

// line finds the line of a path, or of the nearest that there is on the way to it.
func line(n *yamldoc.Node, path string) int32 {
	for path != "" {
		step := path
		if i := strings.IndexAny(path[1:], ".["); i >= 0 {
			step = path[:i+1]
		}
		path = path[len(step):]
		step = strings.TrimPrefix(step, ".")
		var next *yamldoc.Node
		if number, isIndex := strings.CutPrefix(step, "["); isIndex {
			i, err := strconv.Atoi(strings.TrimSuffix(number, "]"))
			if err == nil && n.Kind == yamldoc.List && i < len(n.Kids) {
				next = &n.Kids[i]
			}
		} else {
			next = n.Get(step)
		}
		if next == nil {
			break
		}
		n = next
	}
	return n.Line
}
