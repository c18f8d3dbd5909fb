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

// TestImportTable compares the table of packages in docs/architecture.md with mayImport and the doc comments. The Chinese page
// has the same rows and imports. Its sentences are written by hand: -update keeps them, and gives a new package the English one.
func TestImportTable(t *testing.T) {
	sentences := packageSentences(t)
	compareTable(t, filepath.Join("docs", "architecture.md"), func(string) string { return importTable(english, sentences) })
	compareTable(t, filepath.Join("docs", "zh", "architecture.md"), func(got string) string {
		return importTable(chinese, chineseSentences(got, sentences))
	})
}

// compareTable compares the import table of a page with what is wanted instead of it.
func compareTable(t *testing.T, page string, wanted func(got string) string) {
	t.Helper()
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}

	before, rest, begun := strings.Cut(string(b), tableBegin)
	got, after, ended := strings.Cut(rest, tableEnd)
	if !begun || !ended {
		t.Fatalf("%s has no import table between its two marks", page)
	}

	want := wanted(got)
	if got == want {
		return
	}
	if !*writeDocs {
		t.Errorf("the import table in %s differs from arch_test.go or from a doc comment; write it with: "+
			"go test -run TestImportTable . -update", page)
		return
	}

	if err := os.WriteFile(page, []byte(before+tableBegin+want+tableEnd+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// tableWords are the words of the import table that are no names of packages.
type tableWords struct{ head, root, everything, comma string }

var (
	english = tableWords{"| package | the package … | may import |\n", "root", "everything but `cmd`", ", "}
	chinese = tableWords{"| 包 | 作用 | 可导入 |\n", "根包", "除 `cmd` 外的全部", "、"}
)

// chineseSentences has the sentences of the table as it is, and the others for packages without a row.
func chineseSentences(table string, others map[string]string) map[string]string {
	sentences := maps.Clone(others)
	for folder := range mayImport {
		_, row, found := strings.Cut("\n"+table, "\n| "+importName(chinese, folder)+" | ")
		if sentence, _, ended := strings.Cut(row, " | "); found && ended {
			sentences[folder] = sentence
		}
	}
	return sentences
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
func importTable(words tableWords, sentences map[string]string) string {
	var b strings.Builder
	b.WriteString(words.head + "|---|---|---|\n")

	for _, folder := range slices.Sorted(maps.Keys(mayImport)) {
		var imports []string
		for _, name := range slices.Sorted(slices.Values(mayImport[folder])) {
			imports = append(imports, importName(words, name))
		}
		if len(imports) == 0 {
			imports = []string{"–"}
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", importName(words, folder), sentences[folder],
			strings.Join(imports, words.comma))
	}
	return b.String()
}

// importName is the short name of a package in the table.
func importName(words tableWords, folder string) string {
	switch folder {
	case ".":
		return words.root
	case everything:
		return words.everything
	}
	return "`" + strings.TrimPrefix(folder, "internal/") + "`"
}
