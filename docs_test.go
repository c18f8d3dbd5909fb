package gozzard_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/api"
	"github.com/gozzard/gozzard/internal/docsite"
	"github.com/gozzard/gozzard/internal/specjson"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// pages reads every Markdown file of the project.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (name[0] == '.' || name == "testdata" || name == "bin" || name == "dist" ||
			name == "node_modules"):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(name) != ".md":
			return nil
		}

		b, err := os.ReadFile(path)
		all[filepath.ToSlash(path)] = string(b)
		return err
	})

	if err != nil {
		t.Fatal(err)
	}
	return all
}

var (
	fence      = regexp.MustCompile("(?ms)^[ \t]*```.*?^[ \t]*```[ \t]*$")
	codeSpan   = regexp.MustCompile("`[^`\n]*`")
	link       = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading    = regexp.MustCompile(`(?m)^#{1,6} +(.+?)[ \t]*$`)
	linkTarget = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// TestLinks follows every relative link and anchor of every page.
func TestLinks(t *testing.T) {
	all := pages(t)
	checked := 0
	for page, text := range all {
		text = codeSpan.ReplaceAllString(fence.ReplaceAllString(text, ""), "")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			checked++
			if why := brokenLink(all, page, m[1]); why != "" {
				t.Errorf("%s: link %s: %s", page, m[1], why)
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d links were found; does the pattern still fit?", checked)
	}
}

// brokenLink says why a link of a page leads nowhere, "" when it leads somewhere or out of the project.
func brokenLink(all map[string]string, page, target string) string {
	u, err := url.Parse(target)
	switch {
	case err != nil:
		return err.Error()
	case u.Scheme != "" || u.Host != "":
		return ""
	}

	to := page
	if u.Path != "" {
		to = filepath.ToSlash(filepath.Join(filepath.Dir(page), u.Path))
		if _, err := os.Stat(to); err != nil {
			return "no such file"
		}
	}
	if u.Fragment == "" {
		return ""
	}

	text, known := all[to]
	if !known {
		return "an anchor in a file that is no page"
	}
	if !slices.Contains(anchors(text), u.Fragment) {
		return "no such heading"
	}
	return ""
}

// anchors are the names that a forge gives to the headings of a page.
func anchors(text string) []string {
	var all []string
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		title := linkTarget.ReplaceAllString(m[1], "$1")
		all = append(all, docsite.Anchor(title))
	}
	return all
}

// Pages whose words come from elsewhere: STYLE.md quotes what not to write, the references are help texts.
var otherWords = []string{"STYLE.md", "docs/command-reference.md", "docs/configuration-reference.md"}

// unwanted are words that make a reader guess: they name no subject, or have an unusual meaning.
var unwanted = regexp.MustCompile(`(?i)\b(who|whoever|whom|he|him|his|himself|told|tells|lets? be|let go|puts? out|` +
	`la(id|y|ys) down|lacks?|may everything)\b`)

// TestPlainWords looks for unwanted words in the pages.
func TestPlainWords(t *testing.T) {
	for page, text := range pages(t) {
		if slices.Contains(otherWords, page) || strings.HasPrefix(page, "bench/") {
			continue
		}
		for n, line := range strings.Split(withoutImportTable(text), "\n") {
			if word := unwanted.FindString(line); word != "" {
				t.Errorf("%s:%d: %q: name the subject and use a known word (STYLE.md)", page, n+1, word)
			}
		}
	}
}

// withoutImportTable leaves out the table whose sentences are doc comments, and keeps the numbers of lines.
func withoutImportTable(text string) string {
	before, rest, begun := strings.Cut(text, tableBegin)
	table, after, ended := strings.Cut(rest, tableEnd)
	if !begun || !ended {
		return text
	}
	return before + "\n" + strings.Repeat("\n", strings.Count(table, "\n")+1) + after
}

// TestCodesAreExplained: the pages for troubleshooting have every code of a verdict.
func TestCodesAreExplained(t *testing.T) {
	source, err := os.ReadFile("verdict.go")
	if err != nil {
		t.Fatal(err)
	}
	codes := regexp.MustCompile(`\bCode = "([a-z_]+)"`).FindAllSubmatch(source, -1)
	if len(codes) < 10 {
		t.Fatalf("only %d codes were found in verdict.go; does the pattern still fit?", len(codes))
	}

	all := pages(t)
	for _, page := range []string{"docs/troubleshoot.md", "docs/zh/troubleshoot.md"} {
		for _, m := range codes {
			if !strings.Contains(all[page], "`"+string(m[1])+"`") {
				t.Errorf("%s does not explain %s", page, m[1])
			}
		}
	}
}

// TestIndexOfPages: docs/README.md and docs/zh/README.md link to every page beside them, and docs/adr/README.md to every decision.
func TestIndexOfPages(t *testing.T) {
	all := pages(t)
	for page := range all {
		folder, name := filepath.Split(page)
		if folder != "docs/" && folder != "docs/zh/" && folder != "docs/adr/" || name == "README.md" {
			continue
		}
		if !strings.Contains(all[folder+"README.md"], "]("+name+")") {
			t.Errorf("%sREADME.md has no link to %s", folder, name)
		}
	}
}

// TestDefinitionReference compares the definition references with the keys that the program reads.
func TestDefinitionReference(t *testing.T) {
	flat := specjson.FlatNames() // their page is docs/definition.md, which is made from the program
	known := slices.DeleteFunc(definitionKeys(t), func(key string) bool { return slices.Contains(flat, key) })
	row := regexp.MustCompile("(?m)^\\| `([a-z0-9_.\\[\\]]+)` \\|")
	all := pages(t)
	for _, page := range []string{"docs/definition-reference.md", "docs/zh/definition-reference.md"} {
		var documented []string
		for _, m := range row.FindAllStringSubmatch(all[page], -1) {
			documented = append(documented, m[1])
		}
		for _, key := range known {
			if !slices.Contains(documented, key) {
				t.Errorf("%s: %s is read by the program and has no row", page, key)
			}
		}
		for _, key := range documented {
			if !slices.Contains(known, key) {
				t.Errorf("%s: %s has a row and the program does not know it", page, key)
			}
		}
	}
}

// unknownKey is unlike every real key, so that the program answers with all known keys.
const unknownKey = "qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq"

// definitionKeys asks the program: it rejects an unknown key in each part of a definition and lists the known ones.
func definitionKeys(t *testing.T) []string {
	t.Helper()
	var keys []string
	add := func(prefix string, names []string) {
		if len(names) == 0 {
			t.Errorf("%q: the refusal of an unknown key does not list the known ones", prefix)
		}
		for _, name := range names {
			keys = append(keys, prefix+name)
		}
	}

	// The document around the definition, and its hosts.
	add("", knownKeys(t, putFaults(t, `{"all":true,"`+unknownKey+`":1}`), unknownKey))
	add("hosts[].", knownKeys(t, putFaults(t, `{"hosts":[{"`+unknownKey+`":1}]}`), "hosts[0]."+unknownKey))

	// The definition, part by part.
	add("spec.", knownKeys(t, specFaults(t, `{"`+unknownKey+`":1}`), "spec."+unknownKey))
	for _, part := range []string{"identity", "control", "resource", "monitor_policy", "warn_report_policy"} {
		add("spec."+part+".", knownKeys(t, specFaults(t, `{"`+part+`":{"`+unknownKey+`":1}}`), "spec."+part+"."+unknownKey))
	}
	add("spec.configmap[].", knownKeys(t, specFaults(t, `{"configmap":[{"`+unknownKey+`":1}]}`),
		"spec.configmap[0]."+unknownKey))

	return keys
}

// knownKeys finds the fault of the unknown key and reads the keys out of its text.
func knownKeys(t *testing.T, faults []gozzard.Fault, path string) []string {
	t.Helper()
	for _, f := range faults {
		if f.Path != path {
			continue
		}
		if i := strings.LastIndex(f.Text, " are "); i >= 0 {
			return strings.Split(f.Text[i+len(" are "):], ", ")
		}
	}
	t.Errorf("%s: no fault says what is known: %v", path, faults)
	return nil
}

// specFaults reads a definition as our own API does.
func specFaults(t *testing.T, spec string) []gozzard.Fault {
	t.Helper()
	doc, err := strictjson.Parse([]byte(`{"spec":` + spec + `}`))
	if err != nil {
		t.Fatal(err)
	}
	var faults strictjson.Faults
	root, err := doc.Root(&faults)
	if err != nil {
		t.Fatal(err)
	}
	specjson.ReadSpec(root.Get("spec"), specjson.Rules{Strict: true})

	refused, _ := faults.Err().(*gozzard.Error)
	if refused == nil {
		return nil
	}
	return refused.Faults
}

// putFaults sends a document to the route that `gozzard register` uses.
func putFaults(t *testing.T, body string) []gozzard.Fault {
	t.Helper()
	h := api.New(api.Options{Authenticate: func(*http.Request) (gozzard.Caller, error) { return gozzard.Caller{}, nil }})
	r := httptest.NewRequest(http.MethodPut, "/api/v1/processes", bytes.NewReader([]byte(body)))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)

	var answer struct {
		Error struct {
			Faults []gozzard.Fault `json:"faults"`
		} `json:"error"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return answer.Error.Faults
}

var (
	testName = regexp.MustCompile(`\bTest[A-Z0-9][A-Za-z0-9]*\b`)
	testFunc = regexp.MustCompile(`(?m)^func (Test[A-Z0-9][A-Za-z0-9]*)\(`)
	promises = regexp.MustCompile(`(?s)\n## (?:What it promises|可靠性)\n(.*?)\n(?:## |The words)`)
)

// TestProofsExist: every promise of the README names the test that proves it, with a link to its file, and every test
// that a README or the page of faults names exists.
func TestProofsExist(t *testing.T) {
	all := pages(t)
	inFile := regexp.MustCompile(`\[(Test[A-Za-z0-9]+)\]\(([^)]+_test\.go)\)`)
	for _, page := range []string{"README.md", "README.zh.md"} {
		part := promises.FindStringSubmatch(all[page])
		if part == nil {
			t.Fatalf("%s has no promises", page)
		}
		for _, promise := range strings.Split(strings.TrimSpace(part[1]), "\n- ") {
			proofs := inFile.FindAllStringSubmatch(promise, -1)
			if len(proofs) == 0 {
				t.Errorf("%s: no test proves %q", page, promise)
			}
			for _, m := range proofs {
				if b, err := os.ReadFile(m[2]); err != nil || !strings.Contains(string(b), "\nfunc "+m[1]+"(") {
					t.Errorf("%s: %s is not in %s (%v)", page, m[1], m[2], err)
				}
			}
		}
	}

	known := testsOfModule(t)
	for line := range strings.Lines(all["docs/faults.md"]) {
		if !strings.HasPrefix(line, "|") {
			continue // outside of the tables a pattern may stand for several tests
		}
		for _, name := range testName.FindAllString(line, -1) {
			if !known[name] {
				t.Errorf("docs/faults.md: there is no %s", name)
			}
		}
	}
}

// testsOfModule are the names of all test functions.
func testsOfModule(t *testing.T) map[string]bool {
	t.Helper()
	known := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		for _, m := range testFunc.FindAllSubmatch(b, -1) {
			known[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return known
}
