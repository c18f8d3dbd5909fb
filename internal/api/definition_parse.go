package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/strictjson"
	"github.com/gozzard/gozzard/internal/yamldoc"
)

const (
	// maxDefinitionText limits the text of one definition, in bytes.
	maxDefinitionText = 512 << 10
	// maxYAMLValues is how many values a document may have that is written as YAML: each costs some 20 microseconds.
	maxYAMLValues = 2000
)

// postParse reads a definition that a person types, and answers it as document and as YAML with its faults.
func (a *api) postParse(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	// Read the request.
	var in client.DefinitionText
	if err := readValue(w, r, 2*maxDefinitionText, &in); err != nil {
		return err
	}
	if max(len(in.Text), len(in.Document)) > maxDefinitionText {
		return gozzard.Errorf(gozzard.ErrInvalid, "the definition has more than %s", sizeText(maxDefinitionText))
	}
	out := client.ParsedDefinition{Document: in.Document, Text: in.Text, Faults: []client.DefinitionFault{}}

	// Convert it.
	var root *yamldoc.Node
	if in.Document != nil {
		out.Text = definitionText(in.Document)
	} else {
		var err error
		if root, err = yamldoc.Parse([]byte(in.Text)); err != nil {
			out.Faults = append(out.Faults, syntaxFault(err))
			return answer(w, http.StatusOK, out)
		}
		out.Document = appendJSON(nil, root)
	}

	// Check it.
	out.Faults = a.definitionFaults(caller, out.Document)
	for i := range out.Faults {
		if f := &out.Faults[i]; root != nil {
			f.Line = lineOf(root, f.Path)
		}
	}
	return answer(w, http.StatusOK, out)
}

func syntaxFault(err error) client.DefinitionFault {
	var at *yamldoc.Error
	if errors.As(err, &at) {
		return client.DefinitionFault{Line: at.Line, Text: at.Text}
	}
	return client.DefinitionFault{Line: 1, Text: err.Error()}
}

// definitionFaults checks a document as PUT /api/v1/processes does.
func (a *api) definitionFaults(caller gozzard.Caller, doc []byte) []client.DefinitionFault {
	out := []client.DefinitionFault{}
	var faults strictjson.Faults
	root, err := readObject(doc, &faults)
	if err == nil {
		a.readRegistration(caller, &root)
		err = faults.Err()
	}

	var invalid *gozzard.Error
	switch {
	case err == nil:
	case errors.As(err, &invalid) && len(invalid.Faults) > 0:
		for _, f := range invalid.Faults {
			out = append(out, client.DefinitionFault{Path: f.Path, Text: f.Text})
		}
	default:
		out = append(out, client.DefinitionFault{Text: err.Error()})
	}
	return out
}

// definitionText is a document as YAML. If it has very many values, or if the YAML would not be read back as the same, it is
// the document in lines, which is YAML, too.
func definitionText(doc []byte) string {
	var lines bytes.Buffer
	if err := json.Indent(&lines, doc, "", "  "); err != nil {
		return string(doc)
	}
	plain := lines.String() + "\n"
	if bytes.Count(doc, []byte(",")) >= maxYAMLValues {
		return plain
	}

	var v any
	if err := yaml.UnmarshalWithOptions(doc, &v, yaml.UseOrderedMap()); err != nil {
		return plain
	}
	text, err := yaml.MarshalWithOptions(v, yaml.UseLiteralStyleIfMultiline(true))
	if err != nil {
		return plain
	}
	root, err := yamldoc.Parse(text)
	if err != nil || !sameJSON(doc, appendJSON(nil, root)) {
		return plain
	}
	return string(text)
}

func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// jsonNumber is a number as JSON writes it: all readers of YAML agree on those.
var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][-+]?[0-9]{1,3})?$`)

// appendJSON appends a value of YAML as JSON.
func appendJSON(to []byte, n *yamldoc.Node) []byte {
	switch n.Kind {
	case yamldoc.Null:
		return append(to, "null"...)
	case yamldoc.List:
		to = append(to, '[')
		for i := range n.Kids {
			if i > 0 {
				to = append(to, ',')
			}
			to = appendJSON(to, &n.Kids[i])
		}
		return append(to, ']')
	case yamldoc.Mapping:
		to = append(to, '{')
		for i := range n.Kids {
			if i > 0 {
				to = append(to, ',')
			}
			to = append(appendText(to, n.Kids[i].Key), ':')
			to = appendJSON(to, &n.Kids[i])
		}
		return append(to, '}')
	}

	if b, ok := n.Bool(); ok {
		return strconv.AppendBool(to, b)
	}
	if n.Kind == yamldoc.Plain && len(n.Text) < 32 && jsonNumber.MatchString(n.Text) {
		return append(to, n.Text...)
	}
	return appendText(to, n.Text)
}

func appendText(to []byte, s string) []byte {
	b, _ := json.Marshal(s) // a text can always be encoded
	return append(to, b...)
}

// lineOf is the line of a value such as hosts[0].ip, or of the nearest value around it.
func lineOf(root *yamldoc.Node, path string) int {
	at := root
	for _, part := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		var next *yamldoc.Node
		if i, err := strconv.Atoi(part); err == nil && at.Kind == yamldoc.List {
			if i >= 0 && i < len(at.Kids) {
				next = &at.Kids[i]
			}
		} else {
			next = at.Get(part)
		}
		if next == nil {
			break
		}
		at = next
	}
	return int(at.Line)
}
