package gozzard_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/gozzard/gozzard"

// everything stands for all packages of ours but the program.
const everything = "*"

// mayImport is the law of imports: which package of ours may import which, by folder, "." being the root. Tests may
// import everything but the program: they put real parts together.
var mayImport = map[string][]string{
	".":      {},
	"client": {"."},

	// The program, and what it is composed of.
	"cmd/gozzard": {everything},

	// The server's brain.
	"internal/cmdb":           {".", "internal/topology"},
	"internal/control":        {".", "internal/fleet", "internal/record", "internal/topology", "internal/topology/index"},
	"internal/fleet":          {"."},
	"internal/record":         {".", "internal/fleet", "internal/topology"},
	"internal/topology":       {".", "internal/expression", "internal/yamldoc"},
	"internal/topology/index": {".", "internal/expression", "internal/topology"},
	"internal/upgrade":        {".", "internal/release"},
	"internal/waves":          {".", "internal/record", "internal/topology"},

	// The host's brain.
	"internal/agent":      {".", "internal/journal", "internal/supervise"},
	"internal/agentsock":  {".", "internal/policy"},
	"internal/host":       {".", "internal/procfs", "internal/supervise"},
	"internal/journal":    {".", "internal/atomicfile"},
	"internal/policy":     {".", "internal/atomicfile", "internal/yamldoc"},
	"internal/procfs":     {"."},
	"internal/selfupdate": {".", "internal/atomicfile", "internal/release"},
	"internal/supervise":  {".", "internal/cron"},

	// Doors.
	"internal/api": {".", "internal/auth", "internal/enrol", "internal/expression", "internal/fleet",
		"internal/record", "internal/specjson", "internal/strictjson", "internal/topology", "internal/topology/index", "internal/upgrade"},
	"internal/blueking": {".", "internal/auth", "internal/strictjson"},
	"internal/blueking/gse": {".", "internal/auth", "internal/blueking", "internal/fleet", "internal/record",
		"internal/specjson", "internal/strictjson"},
	"internal/blueking/gsekit": {".", "internal/auth", "internal/blueking", "internal/expression", "internal/record",
		"internal/strictjson", "internal/topology"},
	"internal/blueking/job": {".", "internal/auth", "internal/blueking", "internal/fleet", "internal/record",
		"internal/specjson", "internal/strictjson"},

	// Trust.
	"internal/auth":      {"."},
	"internal/enrol":     {".", "internal/atomicfile", "internal/signing"},
	"internal/ratelimit": {".", "internal/auth"},
	"internal/signing":   {".", "internal/atomicfile"},

	// Technology.
	"internal/backup":  {".", "internal/atomicfile", "internal/enrol", "internal/signing"},
	"internal/nats":    {".", "internal/wire"},
	"internal/release": {"internal/atomicfile"},
	"internal/sqlstore": {".", "internal/auth", "internal/enrol", "internal/record", "internal/topology",
		"internal/upgrade"},
	"internal/wire": {"."},

	// Small and finished.
	"internal/atomicfile": {},
	"internal/cron":       {},
	"internal/expression": {},
	"internal/specjson":   {".", "internal/cron", "internal/strictjson"},
	"internal/strictjson": {"."},
	"internal/yamldoc":    {},

	// Test rigs, measurements, tools.
	"bench/sheet":       {},
	"bench/spine":       {everything},
	"bench/supervisors": {everything},
	"bench/topology":    {everything},
	"test/compat":       {everything},
	"test/faults":       {everything},
	"test/fleettest":    {everything},
	"test/fuzztest":     {},
	"test/goldentest":   {},
	"test/sim":          {everything},
	"test/storetest":    {everything},
	"test/tenants":      {everything},
	"tools/readability": {},
	"tools/testsummary": {},
	"tools/supply":      {"internal/release"},
}

// Names that say nothing about what is inside.
var emptyNames = []string{"pkg", "util", "utils", "common", "helper", "helpers", "types", "models", "shared", "misc",
	"base"}

const maxLines = 700

// source is one Go file of ours.
type source struct {
	path   string
	folder string // slash-separated, "." for the root
	lines  int
	file   *ast.File
}

func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

// parseAll reads every Go file of the module itself, whatever its build tags: what is built for Windows obeys the
// same law.
func parseAll(t *testing.T) []source {
	t.Helper()
	var all []source
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}

		name := d.Name()

		if d.IsDir() {
			if p != "." && (name == "testdata" || name[0] == '.' || name[0] == '_') {
				return fs.SkipDir
			}
			if _, err := os.Stat(filepath.Join(p, "go.mod")); err == nil && p != "." { // a module of its own
				return fs.SkipDir
			}
			return nil
		}

		if !strings.HasSuffix(name, ".go") {
			return nil
		}

		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}

		file, err := parser.ParseFile(token.NewFileSet(), p, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}

		all = append(all, source{path: p, folder: filepath.ToSlash(filepath.Dir(p)),
			lines: bytes.Count(text, []byte("\n")), file: file})
		return nil
	})

	if err != nil {
		t.Fatal(err)
	}

	return all
}

func TestImports(t *testing.T) {
	for _, s := range parseAll(t) {
		allowed, known := mayImport[s.folder]
		if !known {
			t.Errorf("%s: package %s is not in the table of imports", s.path, s.folder)
			continue
		}
		for _, spec := range s.file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if why := refuse(s, allowed, imported); why != "" {
				t.Errorf("%s: imports %s: %s", s.path, imported, why)
			}
		}
	}
}

// refuse says why a file must not import a path, "" when it may.
func refuse(s source, allowed []string, imported string) string {
	if imported == "C" {
		return "no cgo"
	}

	rest, ours := strings.CutPrefix(imported, module)
	if !ours || rest != "" && rest[0] != '/' {
		first, _, _ := strings.Cut(imported, "/")
		if s.folder == "." && strings.Contains(first, ".") {
			return "the root uses the standard library only"
		}
		return ""
	}

	folder := path.Clean(strings.TrimPrefix(rest, "/"))
	switch {
	case folder == "cmd" || strings.HasPrefix(folder, "cmd/"):
		return "nothing imports the program"
	case s.isTest(), slices.Contains(allowed, everything), slices.Contains(allowed, folder):
		return ""
	}

	return "not in the table of imports"
}

func TestPackages(t *testing.T) {
	documented := map[string]bool{}
	for _, s := range parseAll(t) {
		if slices.Contains(emptyNames, path.Base(s.folder)) || slices.Contains(emptyNames, s.file.Name.Name) {
			t.Errorf("%s: the package name says nothing", s.path)
		}
		if s.isTest() {
			continue
		}
		documented[s.folder] = documented[s.folder] || describes(s.file)
	}

	for folder, ok := range documented {
		if !ok {
			t.Errorf("package %s has no doc comment that begins with \"Package %s\" or \"Command %s\"", folder,
				path.Base(folder), path.Base(folder))
		}
	}
}

func describes(f *ast.File) bool {
	text := f.Doc.Text()
	if f.Name.Name == "main" {
		return strings.HasPrefix(text, "Command ")
	}
	return strings.HasPrefix(text, "Package "+f.Name.Name+" ")
}

func TestFiles(t *testing.T) {
	for _, s := range parseAll(t) {
		if s.lines > maxLines {
			t.Errorf("%s has %d lines, at most %d are allowed", s.path, s.lines, maxLines)
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s: has an init function; wiring is code in cmd", s.path)
			}
		}
	}
}

func TestLawOfImports(t *testing.T) {
	plain := source{path: "internal/fleet/x.go", folder: "internal/fleet"}
	test := source{path: "internal/fleet/x_test.go", folder: "internal/fleet"}
	root := source{path: "x.go", folder: "."}
	for _, tt := range []struct {
		from     source
		imported string
		may      bool
	}{
		{plain, module, true},
		{plain, "fmt", true},
		{plain, "golang.org/x/sys/unix", true},
		{plain, module + "/internal/control", false},
		{plain, module + "extra", true},
		{plain, "C", false},
		{test, module + "/internal/control", true},
		{test, module + "/cmd/gozzard", false},
		{root, "net/netip", true},
		{root, "golang.org/x/text", false},
		{root, module + "/internal/fleet", false},
	} {
		if why := refuse(tt.from, mayImport[tt.from.folder], tt.imported); (why == "") != tt.may {
			t.Errorf("%s imports %s: %q", tt.from.path, tt.imported, why)
		}
	}
}
