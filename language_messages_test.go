package gozzard_test

import (
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/gozzard/gozzard/internal/language"
)

// spoken are the parts whose messages reach callers of BlueKing's paths. Of a folder, all sentences count, or those of
// some files only. calls restricts them to what becomes an error or a fault.
var spoken = []struct {
	folder string
	files  []string // nil means all
	calls  bool
}{
	{folder: "internal/blueking"},
	{folder: "internal/blueking/gse"},
	{folder: "internal/blueking/job"},
	{folder: "internal/blueking/gsekit", calls: true}, // its own messages are in phrases
	{folder: "internal/strictjson"},
	{folder: "internal/suggest"},
	{folder: "internal/expression"},
	{folder: "internal/cron"},
	{folder: "internal/specjson", calls: true},
	{folder: "internal/ratelimit"},
	{folder: "internal/auth", files: []string{"directory.go", "signature.go", "unknown.go"}},
	{folder: "internal/control", files: []string{"admit.go", "business_index.go", "business_items.go", "cancel.go", "draft.go",
		"group.go", "permit.go", "plane.go", "query.go", "recheck.go"}},
	{folder: "internal/delivery", files: []string{"outcome.go", "backlog.go", "quota.go"}},
	{folder: "internal/waves", calls: true},
	{folder: "internal/configfile", calls: true},
	{folder: "internal/configfile", files: []string{"rollout.go"}},
	{folder: "internal/record", files: []string{"config_unsafe.go"}},
	{folder: "internal/waves", files: []string{"create.go", "plan.go", "read.go", "retry.go", "stop.go"}},
	{folder: "internal/sqlstore", files: []string{"accept.go", "business_read.go", "config_binding.go",
		"config_instance.go", "config_template.go", "config_version.go", "job.go", "job_read.go", "presence.go",
		"store.go", "task.go", "writer_error.go"}, calls: true},
	{folder: ".", files: []string{"action.go", "key.go", "name.go", "restart.go"}},
}

// messageCalls make errors and faults.
var messageCalls = []string{"Errorf", "Fault", "Add", "violate", "fail", "faultf", "fault"}

// wordless are sentences of those parts that no caller reads, or that are the same in every language.
var wordless = map[string]string{
	"Fail to register, for the process info already exists.": gseSays,
	"still alive": gseSays,
	"not alive":   gseSays,
	"no need to start the process %s(%s) repeatedly that is already running": gseSays,
	"no need to %s the process(%s) that is not running":                      gseSays,
	"%s process (%s) failed, for post-check status %s":                       gseSays,
	") failed, for post-check status %s":                                     gseSays,
	"%s process (":                                                           gseSays,
	"; it is running and not managed: when it ends, it is not started again; send op_type 3 to manage it": gseSays,
	"not found": gseSays, // the state of an agent

	"application/json; charset=utf-8":              "a header",
	"default-src 'none'; frame-ancestors 'none'":   "a header",
	"cd %s && ./%s.sh %s &":                        "a command",
	"cd %s && %s.bat %s ":                          "a command",
	"cd -LiteralPath %s; if ($?) { .\\%s.ps1 %s }": "a command",
	"API not found [method=%+q path=%+.200q]":      "BlueKing's gateway says so in every language",
	"@every %ss":                            "a rule",
	"body is ":                              "a part that is cut off",
	"not executed: ":                        "a part that is looked for",
	"%s %q: %w":                             "joins two messages",
	"%s: %s":                                "joins two messages",
	"op_type %s":                            "the name of a field",
	"%d KiB":                                "an amount",
	"%.1f MiB":                              "an amount",
	"app %s":                                "a name",
	"user %s":                               "a name",
	"agent %s":                              "a name",
	"host %s":                               "a name",
	"an unknown name":                       "for the audit",
	"claimed user %s by a token or session": "for the audit",
	"claimed user %s":                       "for the audit",
	"claimed a user by an unknown token":    "for the audit",
	"retry:%s job %d":                       "for the audit",
	"stop:%s job %d":                        "for the audit",
	"group %s: cpu %g %%, memory %g %%, weights %d and %d\n": "for the audit",
	"%q is not the address of a login service, such as https://paas.example.com/login/accounts/is_login/": "an error of the " +
		"server's start",
}

const gseSays = "GSE says so in every language, and clients compare it"

// TestEveryMessageIsTranslated: every message that a caller of BlueKing's paths can see has a Chinese text, with the
// same arguments.
func TestEveryMessageIsTranslated(t *testing.T) {
	chinese := language.Messages()
	found := map[string]string{}
	for _, s := range parseAll(t) {
		for _, part := range spoken {
			if s.isTest() || s.folder != part.folder || part.files != nil && !slices.Contains(part.files, filepath.Base(s.path)) {
				continue
			}
			for _, text := range messagesIn(s.file, part.calls) {
				if !strings.HasSuffix(text, "%w") || part.folder == "internal/cron" { // others are causes, for the log
					found[text] = s.path
				}
			}
		}
	}
	if len(found) < 250 {
		t.Errorf("only %d messages were found", len(found))
	}

	for _, text := range slices.Sorted(maps.Keys(found)) {
		if !chinese.Has(text) && wordless[text] == "" {
			t.Errorf("%s: %q has no Chinese text in internal/language/zh/messages-*.po", found[text], text)
		}
	}

	for text := range wordless {
		if found[text] == "" {
			t.Errorf("%q is not a message any more: remove it from the list of exceptions", text)
		}
	}
	checkPO(t, "messages-*.po", func(text string) bool { return found[text] != "" })
}

// TestPhrasesAreComplete: every phrase of GSEKit has a Chinese and an English text with the same arguments.
func TestPhrasesAreComplete(t *testing.T) {
	names, pairs := 0, 0
	for _, s := range parseAll(t) {
		if s.path != "internal/blueking/gsekit/language.go" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				if strings.HasPrefix(n.Names[0].Name, "say") {
					names++
				}
			case *ast.KeyValueExpr:
				pair, ok := n.Value.(*ast.CompositeLit)
				if !ok || len(pair.Elts) != 2 {
					t.Errorf("%s: a phrase has two texts", s.path)
					return true
				}

				chinese, _ := formatOf(pair.Elts[0])
				english, _ := formatOf(pair.Elts[1])
				if chinese == "" || english == "" || !language.SameVerbs(english, chinese) {
					t.Errorf("%s: %q and %q are not the same phrase", s.path, chinese, english)
				}
				pairs++
			}
			return true
		})
	}

	if names != pairs || pairs < 40 {
		t.Errorf("there are %d phrases and %d pairs of texts", names, pairs)
	}
}

// checkPO: the files have no text twice, no text that is not used, and the same arguments in both languages.
func checkPO(t *testing.T, glob string, used func(english string) bool) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("internal/language/zh", glob))
	if err != nil || len(names) == 0 {
		t.Fatalf("no files %s: %v", glob, err)
	}

	seen := map[string]bool{}
	for _, name := range names {
		for _, e := range readPO(t, name) {
			at := name + ":" + strconv.Itoa(e.Line)
			switch {
			case seen[e.English]:
				t.Errorf("%s: %q is there twice", at, e.English)
			case !used(e.English):
				t.Errorf("%s: nothing says %q any more: remove it", at, e.English)
			case !strings.ContainsFunc(e.Chinese, func(r rune) bool { return unicode.Is(unicode.Han, r) }):
				t.Errorf("%s: %q has no Chinese text", at, e.English)
			case !slices.Equal(quoted.FindAllString(e.English, -1), quoted.FindAllString(e.Chinese, -1)):
				t.Errorf("%s: %q and %q name different values in backquotes", at, e.English, e.Chinese)
			case !language.SameVerbs(e.English, e.Chinese):
				t.Errorf("%s: %q and %q have different arguments", at, e.English, e.Chinese)
			case strings.HasSuffix(e.English, "\n") != strings.HasSuffix(e.Chinese, "\n"):
				t.Errorf("%s: %q and %q do not both end with a line end", at, e.English, e.Chinese)
			}
			seen[e.English] = true
		}
	}
}

func readPO(t *testing.T, name string) []language.Entry {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := language.ReadPO(string(data))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return entries
}

// quoted finds the names of values, which the help shows beside a flag.
var quoted = regexp.MustCompile("`[^`]*`")

// isSentence finds two words in a row, isWord one word.
var (
	isSentence = regexp.MustCompile(`[A-Za-z%][^ ]* +[^ ]*[A-Za-z]`)
	isWord     = regexp.MustCompile(`[A-Za-z]{3}`)
)

// messagesIn lists the formats in a file that people read, those that are put together by + included. Logs and panics
// are not for callers. onlyCalls leaves out what does not become an error or a fault.
func messagesIn(f *ast.File, onlyCalls bool) (list []string) {
	var look func(n ast.Node, inside, short bool)
	look = func(n ast.Node, inside, short bool) {
		ast.Inspect(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportSpec:
				return false
			case *ast.Field:
				return n.Tag == nil
			case *ast.CallExpr:
				name := calleeOf(n)
				if slices.Contains([]string{"Error", "Warn", "Info", "Debug", "panic"}, name) {
					return false
				}
				inside := inside || slices.Contains(messageCalls, name)
				for _, arg := range n.Args {
					look(arg, inside, name == "Fault")
				}
				return false
			case *ast.KeyValueExpr:
				key, ok := n.Key.(*ast.Ident)
				switch {
				case ok && key.Name == "Example":
					list = append(list, commentsIn(n.Value)...)
					return false
				case ok && key.Name == "Use": // the words that are typed
					return false
				}
				look(n.Value, inside || ok && (key.Name == "Message" || key.Name == "Text"), false)
				return false
			case ast.Expr:
				text, ok := formatOf(n)
				if !ok {
					return true
				}
				if (inside || !onlyCalls) && (isSentence.MatchString(text) || short && isWord.MatchString(text)) {
					list = append(list, text)
				}
				for _, call := range callsIn(n) {
					look(call, inside, false)
				}
				return false
			}
			return true
		})
	}

	look(f, false, false)
	return list
}

// commentsIn lists the comments of examples.
func commentsIn(n ast.Node) (list []string) {
	ast.Inspect(n, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			text, _ := strconv.Unquote(lit.Value)
			for line := range strings.SplitSeq(text, "\n") {
				if _, comment, ok := strings.Cut(line, "# "); ok {
					list = append(list, comment)
				}
			}
		}
		return true
	})
	return list
}

// callsIn lists the calls in a text that is put together.
func callsIn(n ast.Node) (list []ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			list = append(list, call)
			return false
		}
		return true
	})
	return list
}

func calleeOf(n *ast.CallExpr) string {
	switch f := n.Fun.(type) {
	case *ast.SelectorExpr:
		return f.Sel.Name
	case *ast.Ident:
		return f.Name
	}
	return ""
}

// formatOf is a text, or texts and values that are put together by +, as a format with %s for each value.
func formatOf(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return "", false
		}
		left, ok := formatOf(e.X)
		right, also := formatOf(e.Y)
		if !ok && !also {
			return "", false
		}
		if !ok {
			left = "%s"
		}
		if !also {
			right = "%s"
		}
		return left + right, true
	}
	return "", false
}
