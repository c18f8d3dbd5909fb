package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/gozzard/gozzard/client"
)

// maxDocument limits the size of a file of definitions.
const maxDocument = 4 << 20

// document is one definition of a file, in the form of the API.
type document struct {
	name string // is shown with the progress
	json []byte
	file string
	body ast.Node // for the lines of faults
}

// readDocuments reads a file and converts each of its documents to JSON. The server checks their contents.
func readDocuments(file string, onHosts []string, in io.Reader) ([]document, error) {
	// Read the file.
	text, err := readDefinitions(file, in)
	if err != nil {
		return nil, err
	}
	hosts, err := parseHostFlags(onHosts)
	if err != nil {
		return nil, err
	}
	parsed, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, usage("cannot read the definitions in %s: %w", fileName(file), err)
	}

	// Convert its documents.
	var docs []document
	for _, d := range parsed.Docs {
		if d.Body == nil { // nothing between two separators
			continue
		}
		doc := document{file: file, body: d.Body}
		if err := doc.convert(hosts); err != nil {
			return nil, usage("definitions in %s, document %d: %w", fileName(file), len(docs)+1, err)
		}
		docs = append(docs, doc)
	}

	if len(docs) == 0 {
		return nil, usage("there is no definition in %s", fileName(file))
	}

	return docs, nil
}

// readDefinitions reads the text of a file, or standard input.
func readDefinitions(file string, in io.Reader) ([]byte, error) {
	if file == "" {
		return nil, usage("give the definitions with -f FILE; -f - reads standard input")
	}

	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, usage("cannot read the definitions: %w", err)
		}
		defer f.Close()
		in = f
	}

	text, err := io.ReadAll(io.LimitReader(in, maxDocument+1))
	if err != nil {
		return nil, usage("cannot read the definitions: %w", err)
	}
	if len(text) > maxDocument {
		return nil, usage("definitions in %s have more than %d MiB", fileName(file), maxDocument>>20)
	}

	return text, nil
}

// convert makes the JSON of a definition. hosts replace those of the definition, if there are any.
func (d *document) convert(hosts []client.Host) error {
	var v any
	if err := yaml.NodeToValue(d.body, &v); err != nil {
		return err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return errors.New("a definition is a mapping with keys such as name and command")
	}
	for _, other := range []struct{ key, command string }{
		{"sets", "gozzard topology apply -f FILE"}, {"content", "gozzard config apply -f FILE"}, {"content_file", "gozzard config apply -f FILE"},
	} {
		if _, has := m[other.key]; has {
			return fmt.Errorf("this is no definition, because it has %s: use %s", other.key, other.command)
		}
	}
	if len(hosts) > 0 {
		m["hosts"] = hosts
		delete(m, "all")
	}

	b, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("cannot convert to JSON: %w", err)
	}
	d.name, d.json = printable(fmt.Sprint(m["name"])), b
	return nil
}

// lineOf is the line of a value, such as spec.control.start_cmd or hosts[0].ip. For one that is not there it is the
// line of the nearest value around it.
func (d *document) lineOf(path string) int {
	for ; path != ""; path = around(path) {
		p, err := yaml.PathString("$." + path)
		if err != nil {
			continue
		}
		if n, err := p.FilterNode(d.body); err == nil && n != nil {
			return n.GetToken().Position.Line
		}
	}
	return d.body.GetToken().Position.Line
}

// around is the path of the value that has another one.
func around(path string) string {
	return path[:max(strings.LastIndexAny(path, ".["), 0)]
}

// fileName is the name of a file in messages.
func fileName(file string) string {
	if file == "-" {
		return "standard input"
	}
	return file
}
