package gozzard_test

import (
	"strings"
	"testing"

	"github.com/gozzard/gozzard/internal/language"
)

// quotes are what pages quote of the program, beginnings of its texts.
var quotes = []struct{ page, text string }{
	{"definition.md", `unknown, did you mean "http"?`},
	{"definition.md", `pid 4711 runs as "python3", but the definition says proc_name "myapp"`},
	{"definition.md", `pid 4711 runs as "sh", but it is the shell that runs start_cmd`},
	{"people-and-rights.md", "permission: account root is not allowed by local policy (allow_root in /etc/gozzard/policy.yaml)"},
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
			said = chinese.Joined(q.text)
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
