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
	"sync"
	"testing"
)

const module = "github.com/gozzard/gozzard"

// everything stands for all our packages except the program.
const everything = "*"

// mayImport is the law of imports: which package of ours may import which, by folder, "." being the root. Tests may
// import everything except the program, because they combine real parts.
var mayImport = map[string][]string{
	".":      {},
	"client": {"."},

	// The program: flags, verbs and tables. Long-lived parts are in the composition roots, drivers behind them.
	"cmd/gozzard": {".", "client", "internal/agentd", "internal/doctor", "internal/server",
		"internal/adopt",            // keeps processes that another supervisor gives up
		"internal/agentsock",        // the client of the agent's socket, as package client is of the API
		"internal/atomicfile",       // checks that only the owner may read a secret
		"internal/backup",           // keys and options of the verbs
		"internal/blueking/conform", // the documented requests
		"internal/importer",         // reads configurations of other supervisors
		"internal/language",         // the Chinese texts
		"internal/notify",           // the settings of alerts
		"internal/relay",            // runs beside the composition roots: a relay has no other part
		"internal/release",          // reads a manifest before it is sent
		"internal/selfupdate",       // reads the state of updates, and a release in a folder
		"internal/signing",          // lists and rotates keys in a data folder
		"internal/specjson",         // reads the definitions in a business before it is sent
		"internal/suggest",          // the name that is probably meant
		"internal/taskname",         // reads task ids as people have them
		"internal/topology",         // reads a document before it is sent
		"test/sim"},                 // the fleet of `gozzard sim` is the one of the tests

	// Composition roots.
	"internal/agentd": {".", "internal/agent", "internal/agentmetrics", "internal/agentsock", "internal/atomicfile", "internal/enrol",
		"internal/history", "internal/host", "internal/journal", "internal/kept", "internal/nats", "internal/otlp", "internal/policy", "internal/release",
		"internal/selfupdate", "internal/signing"},
	"internal/blueking/conform": {},
	"internal/doctor": {".", "internal/agentd", "internal/backup", "internal/enrol", "internal/host", "internal/journal",
		"internal/policy", "internal/procfs", "internal/selfupdate", "internal/signing", "internal/sqlstore"},
	"internal/server": {".", "client", "internal/api", "internal/approval", "internal/atomicfile", "internal/audit",
		"internal/auditexport", "internal/auth", "internal/backup",
		"internal/blueking", "internal/blueking/gse", "internal/blueking/gsekit", "internal/blueking/job",
		"internal/cmdb", "internal/configfile", "internal/console", "internal/control", "internal/docsite", "internal/enrol", "internal/fleet", "internal/journal",
		"internal/keyprogram", "internal/lease", "internal/live", "internal/nats", "internal/notify", "internal/otlp", "internal/ratelimit", "internal/record", "internal/relay", "internal/release", "internal/signing",
		"internal/sqlstore", "internal/taskname", "internal/topology", "internal/tracing", "internal/upgrade", "internal/waves",
		"packaging"}, // the files that the join script brings

	// The core of the server.
	"internal/cmdb":        {".", "internal/lease", "internal/pace", "internal/topology"},
	"internal/configfile":  {".", "internal/mako", "internal/record", "internal/topology", "internal/turns"},
	"internal/console":     {},
	"internal/docsite":     {"docs"},
	"docs":                 {},
	"internal/audit":       {"."},
	"internal/otlp":        {".", "internal/atomicfile"},
	"internal/tracing":     {".", "internal/otlp", "internal/record", "internal/taskname"},
	"internal/auditexport": {".", "client", "internal/atomicfile", "internal/lease"},
	"internal/control": {".", "internal/audit", "internal/delivery", "internal/fleet", "internal/pace",
		"internal/record", "internal/taskname", "internal/topology", "internal/topology/index"},
	"internal/delivery":       {".", "internal/pace", "internal/statelock", "internal/turns"},
	"internal/fleet":          {".", "internal/statelock"},
	"internal/lease":          {},
	"internal/live":           {".", "client", "internal/fleet", "internal/topology"},
	"internal/notify":         {".", "internal/fleet", "internal/language", "internal/lease", "internal/record", "internal/suggest", "internal/taskname"},
	"internal/record":         {".", "internal/fleet", "internal/topology"},
	"internal/rendered":       {"."},
	"internal/topology":       {".", "internal/expression", "internal/mako", "internal/suggest", "internal/yamldoc"},
	"internal/topology/index": {".", "internal/expression", "internal/topology"},
	"internal/upgrade":        {".", "internal/lease", "internal/release"},
	"internal/waves":          {".", "internal/lease", "internal/pace", "internal/record", "internal/topology"},

	// The core of the agent.
	"internal/agent": {".", "internal/fairlist", "internal/history", "internal/journal", "internal/pace",
		"internal/supervise"},
	"internal/agentmetrics": {".", "internal/atomicfile", "internal/supervise"},
	"internal/agentsock":    {".", "internal/policy"},
	"internal/host":         {".", "internal/identity", "internal/procfs", "internal/supervise"},
	"internal/fairlist":     {},
	"internal/history":      {"."},
	"internal/identity":     {},
	"internal/journal":      {"internal/atomicfile"},
	"internal/kept":         {".", "internal/atomicfile"},
	"internal/policy":       {".", "internal/atomicfile", "internal/yamldoc"},
	"internal/pace":         {},
	"internal/procfs":       {},
	"internal/selfupdate":   {".", "internal/atomicfile", "internal/release"},
	"internal/supervise":    {".", "internal/cron", "internal/identity"},

	// Doors.
	"internal/api": {".", "client", "internal/approval", "internal/audit", "internal/auth", "internal/enrol",
		"internal/expression", "internal/fleet", "internal/language",
		"internal/live", "internal/openapi", "internal/record", "internal/rendered", "internal/specjson", "internal/strictjson",
		"internal/suggest", "internal/taskname", "internal/topology", "internal/topology/index",
		"internal/upgrade", "internal/yamldoc"},
	"internal/blueking": {".", "internal/audit", "internal/auth", "internal/language", "internal/strictjson"},
	"internal/blueking/gse": {".", "internal/auth", "internal/blueking", "internal/fleet", "internal/record",
		"internal/rendered", "internal/specjson", "internal/strictjson", "internal/taskname"},
	"internal/blueking/gsekit": {".", "internal/auth", "internal/blueking", "internal/expression", "internal/language", "internal/record",
		"internal/strictjson", "internal/taskname", "internal/topology"},
	"internal/blueking/job": {".", "internal/auth", "internal/blueking", "internal/fleet", "internal/record",
		"internal/specjson", "internal/strictjson", "internal/taskname"},

	// Trust.
	"internal/approval":   {"."},
	"internal/auth":       {"."},
	"internal/enrol":      {".", "internal/approval", "internal/atomicfile", "internal/signing"},
	"internal/keyprogram": {},
	"internal/ratelimit":  {".", "internal/auth"},
	"internal/signing":    {".", "internal/atomicfile"},

	// Technology.
	"internal/backup":  {".", "internal/atomicfile", "internal/enrol", "internal/record", "internal/signing"},
	"internal/nats":    {".", "internal/wire"},
	"internal/relay":   {".", "internal/atomicfile", "internal/enrol"},
	"internal/release": {"internal/atomicfile"},
	"internal/sqlstore": {".", "internal/approval", "internal/auth", "internal/enrol", "internal/lease", "internal/record", "internal/taskname", "internal/topology",
		"internal/turns", "internal/upgrade"},
	"internal/wire": {"."},

	// Small and finished.
	"internal/adopt":      {"internal/procfs"},
	"internal/atomicfile": {},
	"internal/cron":       {},
	"internal/expression": {},
	"internal/importer":   {".", "internal/specjson", "internal/strictjson", "internal/yamldoc"},
	"internal/openapi":    {},
	"internal/language":   {},
	"internal/mako":       {},
	"internal/specjson":   {".", "internal/cron", "internal/strictjson"},
	"internal/statelock":  {},
	"internal/strictjson": {".", "internal/suggest"},
	"internal/suggest":    {},
	"internal/taskname":   {"."},
	"internal/turns":      {},
	"internal/yamldoc":    {},
	"packaging":           {},

	// Test rigs, measurements, tools.
	"bench/child":                 {},
	"bench/console":               {everything},
	"bench/crowd":                 {everything},
	"bench/firsthour":             {everything},
	"bench/fleet":                 {everything},
	"bench/metrics":               {everything},
	"bench/profile":               {everything},
	"bench/scale":                 {everything},
	"bench/sheet":                 {},
	"bench/spine":                 {everything},
	"bench/supervisors":           {everything},
	"bench/supervisors/prototype": {},
	"bench/templates":             {everything},
	"bench/topology":              {everything},
	"test/compat":                 {everything},
	"test/console":                {everything},
	"test/cluster":                {everything},
	"test/explore":                {},
	"test/faults":                 {everything},
	"test/fleettest":              {everything},
	"test/fuzztest":               {},
	"test/goldentest":             {},
	"test/identity":               {everything},
	"test/ledger":                 {everything},
	"test/notify":                 {everything},
	"test/packages":               {everything},
	"test/pgtest":                 {},
	"test/pages":                  {everything},
	"test/sim":                    {everything},
	"test/soak":                   {everything},
	"test/soak/goosed":            {},
	"test/storetest":              {everything},
	"test/tenants":                {everything},
	"tools/readability":           {},
	"tools/testsummary":           {},
	"tools/supply":                {"internal/release"},
}

// Package names that say nothing about the content.
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

// parseAll gives every Go file of the module itself, whatever its build tags: what is built for Windows obeys the
// same law. Tests share the files and change nothing in them.
func parseAll(t *testing.T) []source {
	t.Helper()
	all, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// parsed reads the files once, because many tests look through them.
var parsed = sync.OnceValues(func() (all []source, err error) {
	err = filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
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
	return all, err
})

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

// refuse returns why a file must not import a path, or "" if it may.
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

// imports are the packages of ours that each package imports outside its tests.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, s := range parseAll(t) {
		if s.isTest() {
			continue
		}
		if all[s.folder] == nil {
			all[s.folder] = []string{}
		}

		for _, spec := range s.file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			rest, ours := strings.CutPrefix(imported, module)
			if !ours || rest != "" && rest[0] != '/' {
				continue
			}

			folder := path.Clean("./" + strings.TrimPrefix(rest, "/"))
			if !slices.Contains(all[s.folder], folder) {
				all[s.folder] = append(all[s.folder], folder)
			}
		}
	}
	return all
}

// The table has a row for every package and no other row, and allows no import that is not used.
func TestTableOfImportsIsTight(t *testing.T) {
	all := imports(t)
	for folder, allowed := range mayImport {
		used, exists := all[folder]
		if !exists && !hasGoFiles(t, folder) {
			t.Errorf("the table of imports has a row for %s, which is no package", folder)
		}
		for _, other := range allowed {
			if other != everything && !slices.Contains(used, other) {
				t.Errorf("the table of imports allows %s to import %s, which it does not", folder, other)
			}
		}
	}
}

// hasGoFiles reports whether a folder has Go files of any kind, tests included.
func hasGoFiles(t *testing.T, folder string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	return len(files) > 0
}

// maxDepth is how many packages of ours the longest chain of imports has, the program and the root included.
const maxDepth = 6

func TestDepthOfImports(t *testing.T) {
	all := imports(t)
	depth := map[string]int{}
	next := map[string]string{}
	var measure func(folder string) int
	measure = func(folder string) int {
		if n, known := depth[folder]; known {
			return n
		}
		depth[folder] = 1
		for _, other := range all[folder] {
			if n := 1 + measure(other); n > depth[folder] {
				depth[folder], next[folder] = n, other
			}
		}
		return depth[folder]
	}

	for folder := range all {
		if strings.HasPrefix(folder, "test/") || strings.HasPrefix(folder, "bench/") {
			continue // they stand on top of everything
		}
		if n := measure(folder); n > maxDepth {
			chain := folder
			for at := next[folder]; at != ""; at = next[at] {
				chain += " → " + at
			}
			t.Errorf("a chain of imports has %d packages, at most %d are allowed: %s", n, maxDepth, chain)
		}
	}
	if n := measure("cmd/gozzard"); n < 3 {
		t.Errorf("the program has a depth of %d: nothing was measured", n)
	}
}

// The program has flags, verbs and tables. What runs for long is in the composition roots: the program declares no Run
// that takes a context, and starts no goroutine.
func TestProgramHasNoLongLivedPart(t *testing.T) {
	looked := 0
	for _, s := range parseAll(t) {
		if s.folder != "cmd/gozzard" || s.isTest() {
			continue
		}

		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				looked++
				if n.Name.Name == "Run" && takesContext(n.Type) {
					t.Errorf("%s: %s is a long-lived part: it belongs into internal/server or internal/agentd", s.path,
						n.Name.Name)
				}
			case *ast.Field: // of an interface or a struct
				for _, name := range n.Names {
					if f, ok := n.Type.(*ast.FuncType); ok && name.Name == "Run" && takesContext(f) {
						t.Errorf("%s: %s declares a long-lived part", s.path, name.Name)
					}
				}
			case *ast.GoStmt:
				t.Errorf("%s: starts a goroutine; what runs beside a verb belongs into a package", s.path)
			case *ast.CallExpr:
				if sel, ok := n.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Go" { // of a sync.WaitGroup
					t.Errorf("%s: starts a goroutine; what runs beside a verb belongs into a package", s.path)
				}
			}
			return true
		})
	}

	if looked < 100 {
		t.Errorf("only %d functions of the program were found", looked)
	}
}

// takesContext reports whether a function has a parameter of type context.Context.
func takesContext(f *ast.FuncType) bool {
	return slices.ContainsFunc(f.Params.List, func(p *ast.Field) bool {
		sel, ok := p.Type.(*ast.SelectorExpr)
		if !ok || sel.Sel.Name != "Context" {
			return false
		}
		pkg, ok := sel.X.(*ast.Ident)
		return ok && pkg.Name == "context"
	})
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
				t.Errorf("%s: has an init function; wiring is code in the composition roots", s.path)
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
