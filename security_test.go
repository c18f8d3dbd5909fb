package gozzard_test

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// decoders are the packages that read foreign input: requests, answers, messages, files. Each has a fuzz target.
var decoders = []string{
	".",                        // task ids, addresses, names
	"client",                   // live data
	"internal/cron",            // crontab rules
	"internal/expression",      // expressions
	"internal/strictjson",      // JSON bodies, texts in answers
	"internal/agent",           // records of the journal
	"internal/api",             // requests of every route
	"internal/backup",          // files that a restore takes out
	"internal/cmdb",            // answers of CMDB
	"internal/yamldoc",         // YAML and JSON documents
	"internal/enrol",           // enrolment tokens
	"internal/blueking",        // credentials
	"internal/blueking/gse",    // bodies of every call
	"internal/blueking/gsekit", // bodies of every call
	"internal/history",         // ring files
	"internal/host",            // pid files, output of commands
	"internal/blueking/job",    // bodies of every call
	"internal/importer",        // configurations of other supervisors
	"internal/journal",         // the journal's frames
	"internal/agentsock",       // requests on the local socket
	"internal/otlp",            // files of headers
	"internal/policy",          // policy files
	"internal/keyprogram",      // answers of the external signer
	"internal/procfs",          // /proc
	"internal/release",         // manifests
	"internal/signing",         // signed envelopes
	"internal/mako",            // templates
	"internal/topology",        // documents of businesses
	"internal/wire",            // commands and reports
}

// TestFuzzTargets: every decoder has a fuzz target, and every target runs within the bounds of time and memory.
func TestFuzzTargets(t *testing.T) {
	found := map[string]bool{}
	for _, s := range parseAll(t) {
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !s.isTest() || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Fuzz") {
				continue
			}
			found[s.folder] = true
			bounded := slices.ContainsFunc(s.file.Imports,
				func(i *ast.ImportSpec) bool { return i.Path.Value == strconv.Quote(module+"/test/fuzztest") })
			if !bounded {
				t.Errorf("%s: %s does not run within bounds; see test/fuzztest", s.path, f.Name.Name)
			}
		}
	}

	for _, folder := range decoders {
		if !found[folder] {
			t.Errorf("%s reads what others wrote and has no fuzz target", folder)
		}
	}
}

// TestThreatTable: every threat of the table has a line, and the proofs that it names are there.
func TestThreatTable(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}

	tests := map[string]bool{}
	for _, s := range parseAll(t) {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.isTest() {
				tests[f.Name.Name] = true
			}
		}
	}

	named := regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9_]+)")
	for _, m := range named.FindAllStringSubmatch(string(text), -1) {
		if !tests[m[1]] {
			t.Errorf("%s is named as a proof and does not exist", m[1])
		}
	}

	for kind, last := range map[string]int{"TS": 8, "TT": 6, "TR": 3, "TI": 5, "TD": 6, "TE": 9} {
		for n := 1; n <= last; n++ {
			if id := kind + strconv.Itoa(n); !strings.Contains(string(text), "\n| "+id+" |") {
				t.Errorf("%s has no line", id)
			}
		}
	}
}
