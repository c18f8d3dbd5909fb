package gozzard_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/internal/language"
)

// quotes are what pages quote of the program, beginnings of its texts.
var quotes = []struct{ page, text string }{
	{"definition.md", `health.htp: unknown, did you mean "http"?`},
	{"definition.md", `pid 4711 runs as "python3", but the definition says proc_name "myapp"`},
	{"definition.md", `pid 4711 runs as "sh", but it is the shell that runs start_cmd`},
	{"people-and-rights.md", "permission: account root is not allowed by local policy (allow_root in /etc/gozzard/policy.yaml)"},
	{"identity.md", "runs as python3, definition says nginx"},
	{"monitor.md", "by alice (20240102030405:17)"},
	{"monitor.md", "CPU, % of one core: now 8.2%, average 7.9%, most 8.6%"},
	{"install.md", "this command runs as gozzard-server, the owner of /var/lib/gozzard"},
	{"troubleshoot.md", "this is not an enrolment token, which has the form gz1.ID.SECRET.PIN"},
}

// restOf is what follows in the texts that are quoted in part.
var restOf = map[string]string{
	`pid 4711 runs as "python3", but the definition says proc_name "myapp"`: ": correct proc_name if this is the process",
	`pid 4711 runs as "sh", but it is the shell that runs start_cmd`: ", and a shell line is not the process: write exec before " +
		"the program (cd /dir && exec ./program) and its name as proc_name, or exec sh -c '...' around a line that is to be the process",
}

// TestQuotesOfChinesePages: a Chinese page quotes what the program says in a Chinese shell, where the English page quotes
// English.
func TestQuotesOfChinesePages(t *testing.T) {
	all, chinese := pages(t), language.CommandLine()
	for _, q := range quotes {
		if !strings.Contains(all["docs/"+q.page], q.text) {
			t.Errorf("docs/%s does not quote %q", q.page, q.text)
		}
		rest := restOf[q.text]
		said := strings.TrimPrefix(chinese.Joined("x; "+q.text+rest), "x；")
		if said = strings.TrimPrefix(said, "x; "); rest == "" {
			said = saidInChinese(chinese, q.text)
		}
		page := all["docs/zh/"+q.page]
		if said == q.text+rest || !strings.Contains(page, quotedPart(said)) {
			t.Errorf("docs/zh/%s does not quote %q", q.page, quotedPart(said))
		}
		if strings.Contains(page, q.text) {
			t.Errorf("docs/zh/%s quotes %q, which a Chinese shell does not show", q.page, q.text)
		}
	}
}

// quotedPart is a text up to its advice.
func quotedPart(said string) string {
	for _, end := range []string{"：如果它", "，不会被当作"} {
		said, _, _ = strings.Cut(said, end)
	}
	return said
}

// saidInChinese is a message of the program, alone or after the path of a key, in a Chinese shell.
func saidInChinese(chinese *language.Catalogue, text string) string {
	if said := chinese.Joined(text); said != text {
		return said
	}
	if said := chinese.Message(text + "\n"); said != text+"\n" { // a whole line
		return strings.TrimSuffix(said, "\n")
	}
	return chinese.Message(text)
}

// quotedInPage are words in the form of code and words in quotation marks.
var quotedInPage = regexp.MustCompile("`([^`\n]+)`|“([^”\n]+)”")

// fineInEnglish are quotes on Chinese pages that only look like texts of the command line.
var fineInEnglish = []struct{ page, begin string }{
	{"troubleshoot.md", "address already in use"},         // in the log of the server
	{"troubleshoot.md", "the write-ahead log of the rec"}, // in the log of the server
	{"definition-reference.md", "not known since"},        // a field of a query
	{"compatibility.md", "no such task"},                  // an answer in English
	{"people-and-rights.md", "namespace: web"},            // YAML
	{"faults.md", "make faults"},
	{"install.md", "chown "},
	{"backup-and-restore.md", "chown "},
	{"people-and-rights.md", "gozzard app rotate"},
}

// TestChinesePagesQuoteChinese: no Chinese page quotes a text in English, or its beginning, that a Chinese shell shows in
// Chinese: neither in a sentence nor in a block of what the program prints.
func TestChinesePagesQuoteChinese(t *testing.T) {
	chinese, begins := language.CommandLine(), beginsOfTexts(t)
	all := pages(t)
	quotes, used := 0, map[int]bool{}
	for page, text := range all {
		name, ok := strings.CutPrefix(page, "docs/zh/")
		if !ok && page != "README.zh.md" || strings.Contains(text, "<!-- Generated: ") {
			continue
		}
		for _, m := range quotedInPage.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			quote := m[1] + m[2]
			if strings.Count(quote, " ") == 0 {
				continue
			}
			quotes++
			said := saidInChinese(chinese, quote)
			at := slices.IndexFunc(begins, func(b string) bool { return beginsLike(quote, b) })
			if said == quote && at < 0 {
				continue
			}
			fine := false
			for i, f := range fineInEnglish {
				if f.page == name && strings.HasPrefix(quote, f.begin) {
					fine, used[i] = true, true
				}
			}
			switch {
			case fine:
			case said != quote:
				t.Errorf("%s quotes %q: a Chinese shell shows %q", page, quote, said)
			default:
				t.Errorf("%s quotes %q: a Chinese shell shows the Chinese text of %q", page, quote, begins[at])
			}
		}
	}
	for i, f := range fineInEnglish {
		if !used[i] {
			t.Errorf("docs/zh/%s does not quote %q any more", f.page, f.begin)
		}
	}
	if quotes < 500 {
		t.Errorf("only %d quotes were found", quotes)
	}
}

// beginsOfTexts are the words before the first argument of each text with at least three of them.
func beginsOfTexts(t *testing.T) (all []string) {
	t.Helper()
	names, err := filepath.Glob("internal/language/zh/*.po")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		for _, e := range readPO(t, name) {
			begin, _, _ := strings.Cut(e.English, "%")
			if begin = strings.TrimSpace(begin); strings.Count(begin, " ") >= 2 {
				all = append(all, begin)
			}
		}
	}
	return all
}

// beginsLike says whether a quote is a text from its begin on, or three words and more of it.
func beginsLike(quote, begin string) bool {
	return strings.HasPrefix(quote, begin) || strings.Count(quote, " ") >= 2 && strings.HasPrefix(begin, quote)
}
