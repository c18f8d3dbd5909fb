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

// MaxDocument is the largest size of a document, in bytes.
const MaxDocument = yamldoc.MaxSize

// maxFaults limits how many faults of a document are listed. The others are counted.
const maxFaults = 1000

// Parse reads a document, YAML or JSON, and returns the business, sorted. If the document has any fault, there is no
// business: the error is a *gozzard.Error with every fault and where it is, such as "line 12: sets[0].modules[1].name".
// flat reads the keys that definitions of other doors have too.
func Parse(doc []byte, flat ...Flat) (*Business, error) {
	root, err := yamldoc.Parse(doc)
	if err != nil {
		var e *yamldoc.Error
		if !errors.As(err, &e) {
			return nil, fmt.Errorf("cannot read the document: %w", err)
		}
		return nil, faulty([]gozzard.Fault{{Path: "line " + strconv.Itoa(e.Line), Text: e.Text}})
	}

	// A value that could not be decoded is 0 or empty, so Check may find it as well: report it once.
	d := &decoder{texts: map[string]string{}, reported: map[string]bool{}}
	for _, f := range flat {
		d.reader, d.flatKeys = f, f.keys()
	}
	b := d.business(root)
	for _, f := range b.Check() {
		if !d.isReported(f.Path) {
			d.faults = append(d.faults, lineFault{line(root, f.Path), f})
		}
	}

	if len(d.faults) > 0 {
		return nil, faulty(d.list())
	}

	b.Sort()
	return b, nil
}

func faulty(faults []gozzard.Fault) error {
	return &gozzard.Error{Kind: gozzard.ErrInvalid, Message: "the document has faults; nothing was changed",
		Faults: faults}
}

// lineFault is a fault with its line in the document.
type lineFault struct {
	line int32
	gozzard.Fault
}

// list returns the faults in the order of the document, with their lines.
func (d *decoder) list() []gozzard.Fault {
	slices.SortStableFunc(d.faults, func(a, b lineFault) int { return cmp.Compare(a.line, b.line) })
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

// isReported reports whether there is already a fault of a value, or of a mapping or list that it is in.
func (d *decoder) isReported(path string) bool {
	for path != "" {
		if d.reported[path] {
			return true
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return d.reported[""]
}

// line finds the line of a path. If the document does not have the path, it is the line of the nearest mapping or list
// around it.
func line(n *yamldoc.Node, path string) int32 {
	for path != "" {
		// Cut the first step, a key or an index, off the path.
		step := path
		if i := strings.IndexAny(path[1:], ".["); i >= 0 {
			step = path[:i+1]
		}
		path = path[len(step):]
		step = strings.TrimPrefix(step, ".")

		// Take the step.
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
