package gozzard_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// foreignWords are the words of BlueKing's APIs, as sequences of their parts: op_type, OpType and op-type are the same.
// They may stand in identifiers and string literals of the doors and of the CMDB client, and nowhere else: the domain,
// the agent, the record, our own API and our command line have plain words. Comments may explain.
var foreignWords = []string{
	"bk", "bkapi", "gse", "gsetask", "gsekit", "job biz", "op type", "auto type", "esb",
	"no need to", "post check", // of GSE's sentences
}

// foreignFolders may use the words: they translate.
var foreignFolders = []string{"internal/blueking", "internal/cmdb"}

// lawlessFolders are test rigs and benchmarks that call the program as its clients do.
var lawlessFolders = []string{"test", "bench", "tools"}

// wordException allows a word in a file or a folder.
type wordException struct {
	where  string
	word   string
	reason string
}

var wordExceptions = []wordException{
	// Stored values, and values that scripts use.
	{"business.go", "gsekit", "the namespaces of a business are stored with its processes and written in grants"},
	{"business.go", "job biz", "the namespaces of a business are stored with its processes and written in grants"},
	{"internal/taskname", "gsetask", "task ids are stored with it, and the hash chain of the audit covers it"},
	{"internal/sqlstore/account.go", "op type", "the name of a column"},
	{"internal/auth/config.go", "op type", "the JSON name in stored accounts"},
	{"internal/control/business_items.go", "bk", "labels are stored with processes and visible to callers"},
	{"internal/topology/define.go", "bk", "placeholders in the definitions that users write"},
	{"internal/topology/template.go", "bk", "names in the templates that users write"},
	{"internal/topology/context.go", "bk", "names in the templates that users write"},
	{"internal/topology/tree.go", "bk", "names in the templates that users write"},
	{"internal/topology/extra.go", "bk", "names in the templates that users write"},
	{"internal/topology/check_process.go", "bk", "an error names the placeholder that users write"},

	// JSON names of our own API and of its client, flags and files: callers and scripts use them.
	{"internal/api/app.go", "op type", "a JSON name of our API that scripts use"},
	{"internal/specjson/policy.go", "auto type", "a key of the definitions that users write"},
	{"internal/specjson/keys.go", "auto type", "the table of keys names the key with the same meaning"},
	{"internal/specjson/write.go", "auto type", "a key of the definitions that users read back"},
	{"client/app.go", "op type", "a JSON name of our API that scripts use"},
	{"client/definition.go", "auto type", "a key of the definitions that users write"},
	{"client/client.go", "bk", "JSON names in the header that all doors read credentials from"},
	{"client/client.go", "bkapi", "the header that all doors read credentials from"},
	{"cmd/gozzard", "bk", "a flag, and the keys of credentials files"},
	{"cmd/gozzard", "op type", "a flag"},
	{"cmd/gozzard", "gse", "the help says which clients can use the program"},
	{"internal/server/accounts.go", "bk", "an error names the flag that is wrong"},
	{"internal/server/credentials.go", "bk", "the keys of the credentials file that clients read"},
	{"internal/server/doors.go", "gse", "the table of routes names the door that owns a route"},
	{"internal/server/doors.go", "gsekit", "the table of routes names the door that owns a route"},
}

// use is a word in an identifier or in a string literal.
type use struct {
	word string
	text string
}

// foreign finds the words in a file. Import paths, and names that are used from
// such a package, do not count: the law of imports covers them.
func foreign(f *ast.File) (uses []use) {
	doors := map[string]bool{}
	for _, spec := range f.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil || !within(strings.TrimPrefix(imported, module+"/"), foreignFolders) {
			continue
		}
		if spec.Name != nil {
			doors[spec.Name.Name] = true
		} else {
			doors[path.Base(imported)] = true
		}
	}

	note := func(text string) {
		for _, w := range wordsIn(text) {
			uses = append(uses, use{w, text})
		}
	}

	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && doors[x.Name] {
				return false
			}
		case *ast.Ident:
			note(n.Name)
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				note(text)
			}
		}
		return true
	})
	return uses
}

func within(folder string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		return folder == root || strings.HasPrefix(folder, root+"/")
	})
}

// wordsIn lists the foreign words in a text, each once.
func wordsIn(text string) (found []string) {
	all := " " + strings.Join(parts(text), " ") + " "
	for _, w := range foreignWords {
		if strings.Contains(all, " "+w+" ") {
			found = append(found, w)
		}
	}
	return found
}

// parts splits a text where a word ends: at characters that are neither letter nor digit, and inside fooBar and FOOBar.
func parts(text string) (list []string) {
	runes := []rune(text)
	begin := -1
	end := func(i int) {
		if begin >= 0 {
			list = append(list, strings.ToLower(string(runes[begin:i])))
		}
		begin = -1
	}

	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end(i)
			continue
		case begin >= 0 && unicode.IsUpper(r) && !unicode.IsUpper(runes[i-1]),
			begin >= 0 && unicode.IsUpper(r) && i+1 < len(runes) && unicode.IsLower(runes[i+1]):
			end(i)
		}
		if begin < 0 {
			begin = i
		}
	}

	end(len(runes))
	return list
}

func TestWords(t *testing.T) {
	used := make([]bool, len(wordExceptions))
	for _, s := range parseAll(t) {
		if s.isTest() || within(s.folder, foreignFolders) || within(s.folder, lawlessFolders) {
			continue
		}
		for _, u := range foreign(s.file) {
			i := slices.IndexFunc(wordExceptions, func(e wordException) bool {
				return e.word == u.word && (e.where == s.path || e.where == s.folder)
			})
			if i < 0 {
				t.Errorf("%s: %q is a word of BlueKing's APIs, in %.80q: only %s may use it", s.path, u.word, u.text,
					strings.Join(foreignFolders, " and "))
				continue
			}
			used[i] = true
		}
	}

	for i, e := range wordExceptions {
		if !used[i] {
			t.Errorf("the exception for %q in %s is not used any more: remove it", e.word, e.where)
		}
		if e.reason == "" || !slices.Contains(foreignWords, e.word) {
			t.Errorf("the exception for %q in %s has no reason, or is for no word of the law", e.word, e.where)
		}
	}
}

// TestLawOfWords: the law finds a planted word in each of its forms, and nothing else.
func TestLawOfWords(t *testing.T) {
	const header = "package x\n\nimport (\n\t\"" + module + "/internal/blueking/gse\"\n\tkit \"" + module +
		"/internal/blueking/gsekit\"\n)\n\n"
	for code, want := range map[string][]string{
		`var a = "plain words, a FlagSet and a stop_type"`:         nil,
		"// GSE says bk_biz_id\nvar _ = gse.New(kit.GSEOptions{})": nil,
		`var bkBizID int`: {"bk"},
		`type t struct { Biz int ` + "`json:\"bk_biz_id\"`" + ` }`:        {"bk"},
		`const header = "X-Bkapi-Authorization"`:                          {"bkapi"},
		`const id = "GSETASK:20240102030405:17"`:                          {"gsetask"},
		`func namespace() string { return "GSEKIT_BIZ_2" }`:               {"gsekit"},
		`func namespace() string { return "JOB_BIZ_2" }`:                  {"job biz"},
		`var MissingOpTypeMeansStart bool`:                                {"op type"},
		`var flag = "missing-op-type-means-start"`:                        {"op type"},
		`func (GSEKit) autoType() {}`:                                     {"gse", "auto type"},
		`var text = "no need to stop the process(x) that is not running"`: {"no need to"},
		`var text = "failed, for post-check status not alive"`:            {"post check"},
		`var path = "/api/c/compapi/v2/esb/"`:                             {"esb"},
		`var agent = "gse_agent"`:                                         {"gse"},
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "x.go", header+code, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}

		var got []string
		for _, u := range foreign(f) {
			got = append(got, u.word)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: found %q, want %q", code, got, want)
		}
	}
}
