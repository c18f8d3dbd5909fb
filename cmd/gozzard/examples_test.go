package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/internal/policy"
	"github.com/gozzard/gozzard/internal/specjson"
	"github.com/gozzard/gozzard/internal/strictjson"
	"github.com/gozzard/gozzard/internal/topology"
)

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```")

// TestExamples reads the YAML examples of the pages as the program does: definitions, businesses and policies.
func TestExamples(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	chinese, err := filepath.Glob(filepath.Join("..", "..", "docs", "zh", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	pages = append(pages, chinese...)

	seen := map[string]int{}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range yamlBlock.FindAllStringSubmatch(string(text), -1) {
			kind, err := readExample(m[1])
			seen[kind]++
			if err != nil {
				t.Errorf("%s: example of a %s: %v\n%s", page, kind, err, m[1])
			}
		}
	}

	for _, kind := range []string{"definition", "business", "policy", "template"} {
		if seen[kind] == 0 {
			t.Errorf("no page has an example of a %s", kind)
		}
	}
}

// readExample reads a YAML example as the program does, and returns what it is an example of.
func readExample(text string) (kind string, err error) {
	switch {
	case strings.HasPrefix(text, "biz:"):
		_, err := topology.Parse([]byte(text), topology.Flat{Names: specjson.FlatNames(), Read: specjson.ReadProcess})
		return "business", err
	case strings.HasPrefix(text, "allow_root:"):
		_, err := policy.Parse("example", []byte(text))
		return "policy", err
	case strings.Contains(text, "\nfile_name:"):
		_, err := (&configApplyOptions{file: "-"}).requests(strings.NewReader(text))
		return "template", err
	case !strings.HasPrefix(text, "namespace:") && !strings.HasPrefix(text, "name:"):
		return "part of a document", nil
	}

	// As gozzard register reads it, then as the server does.
	docs, err := readDocuments("-", nil, strings.NewReader(text))
	if err != nil {
		return "definition", err
	}
	if len(docs) != 1 {
		return "definition", errors.New("not one document")
	}
	doc, err := strictjson.Parse(docs[0].json)
	if err != nil {
		return "definition", err
	}
	var faults strictjson.Faults
	root, err := doc.Root(&faults)
	if err != nil {
		return "definition", err
	}
	specjson.ReadDefinition(root)
	return "definition", faults.Err()
}
