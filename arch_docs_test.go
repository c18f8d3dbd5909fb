package gozzard_test

import (
	"flag"
	"fmt"
	"go/doc"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var writeDocs = flag.Bool("update", false, "write the generated tables in docs")

const (
	tableBegin = "<!-- begin of the import table; written by: go test -run TestImportTable . -update -->\n"
	tableEnd   = "<!-- end of the import table -->\n"
)

// TestImportTable compares the table of packages in docs/architecture.md with mayImport and the doc comments.
func TestImportTable(t *testing.T) {
	page := filepath.Join("docs", "architecture.md")
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}

	before, rest, begun := strings.Cut(string(b), tableBegin)
	got, after, ended := strings.Cut(rest, tableEnd)
	if !begun || !ended {
		t.Fatalf("%s has no import table between its two marks", page)
	}

	want := importTable(packageSentences(t))
	if got == want {
		return
	}
	if !*writeDocs {
		t.Fatalf("the import table in %s differs from arch_test.go or from a doc comment; write it with: "+
			"go test -run TestImportTable . -update", page)
	}

	if err := os.WriteFile(page, []byte(before+tableBegin+want+tableEnd+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// packageSentences gives the first sentence of the doc comment of each package, without "Package name".
func packageSentences(t *testing.T) map[string]string {
	sentences := map[string]string{}
	for _, s := range parseAll(t) {
		if s.isTest() || !describes(s.file) {
			continue
		}
		text := new(doc.Package).Synopsis(s.file.Doc.Text())
		text = strings.TrimPrefix(strings.TrimPrefix(text, "Package "), "Command ")
		_, text, _ = strings.Cut(text, " ")
		sentences[s.folder] = strings.ReplaceAll(text, "|", `\|`)
	}
	return sentences
}

// importTable writes one row for each package of the import law.
func importTable(sentences map[string]string) string {
	var b strings.Builder
	b.WriteString("| package | the package … | may import |\n|---|---|---|\n")

	for _, folder := range slices.Sorted(maps.Keys(mayImport)) {
		var imports []string
		for _, name := range slices.Sorted(slices.Values(mayImport[folder])) {
			imports = append(imports, importName(name))
		}
		if len(imports) == 0 {
			imports = []string{"–"}
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", importName(folder), sentences[folder], strings.Join(imports, ", "))
	}
	return b.String()
}

// importName is the short name of a package in the table.
func importName(folder string) string {
	switch folder {
	case ".":
		return "root"
	case everything:
		return "everything but `cmd`"
	}
	return "`" + strings.TrimPrefix(folder, "internal/") + "`"
}
