package pages_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// repository is the top of the source code.
const repository = "../.."

// command is one command of a page, with the lines that continue it.
type command struct {
	line    int
	text    string // without the comment at its end
	says    string // the comment at its end
	section string // the heading above it, such as "## gozzard agent join"
}

// prints is the text that the page promises as output, "" if it promises none.
func (c command) prints() string {
	for _, mark := range []string{"prints: ", "输出："} {
		if _, text, found := strings.Cut(c.says, mark); found {
			return text
		}
	}
	return ""
}

var (
	blockBegin = regexp.MustCompile("^ *```(\\w*)$")
	remark     = regexp.MustCompile(`^(.*?)(?:^|\s+)#\s+(.*)$`)
	document   = regexp.MustCompile(`<<'?([A-Z]+)'?(?:$|\s)`)
)

// open reports whether the next line belongs to the command, too: it ends with a backslash, or has a here document that
// did not end.
func (c command) open() bool {
	first, rest, _ := strings.Cut(c.text, "\n")
	if m := document.FindStringSubmatch(first); m != nil {
		return rest != m[1] && !strings.HasSuffix(rest, "\n"+m[1])
	}
	return strings.HasSuffix(c.text, "\\")
}

// readPage returns the commands of a page and its YAML examples. Only blocks that are marked as sh count: other blocks
// are output, drawings or files.
func readPage(t *testing.T, page string) (commands []command, examples []string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(repository, page))
	if err != nil {
		t.Fatal(err)
	}

	kind, section, block := "", "", []string(nil)
	for n, line := range strings.Split(string(b), "\n") {
		m := blockBegin.FindStringSubmatch(line)
		switch {
		case m != nil && kind == "":
			kind, block = "block:"+m[1], nil
		case m != nil && kind == "block:yaml":
			kind, examples = "", append(examples, strings.Join(block, "\n")+"\n")
		case m != nil:
			kind = ""
		case kind == "block:sh":
			commands = addLine(commands, n+1, section, line)
		case kind != "":
			block = append(block, line)
		case strings.HasPrefix(line, "## "):
			section = line
		}
	}
	return commands, examples
}

// addLine adds a line of a block to its commands.
func addLine(commands []command, n int, section, line string) []command {
	if last := len(commands) - 1; last >= 0 && commands[last].open() {
		commands[last].text += "\n" + line
		return commands
	}

	c := command{line: n, text: strings.TrimSpace(line), section: section}
	if m := remark.FindStringSubmatch(c.text); m != nil && !strings.ContainsAny(m[2], `'"`) {
		c.text, c.says = strings.TrimSpace(m[1]), m[2]
	}
	if c.text == "" {
		return commands
	}
	return append(commands, c)
}

// TestReadPage shows how commands are taken from a page.
func TestReadPage(t *testing.T) {
	var all []command
	for i, line := range []string{"# on the server", "a b   # prints: x y", "c \\", "  d", "gse x '{#}'", "", "cat >f <<'END'",
		"# a comment of f", "", "END", "e"} {
		all = addLine(all, i+1, "## s", line)
	}
	want := []command{{2, "a b", "prints: x y", "## s"}, {3, "c \\\n  d", "", "## s"}, {5, "gse x '{#}'", "", "## s"},
		{7, "cat >f <<'END'\n# a comment of f\n\nEND", "", "## s"}, {11, "e", "", "## s"}}
	if len(all) != len(want) {
		t.Fatalf("%d commands: %+v", len(all), all)
	}
	for i := range want {
		if all[i] != want[i] {
			t.Errorf("command %d: %+v, want %+v", i, all[i], want[i])
		}
	}
	if p := all[0].prints(); p != "x y" {
		t.Errorf("it prints %q", p)
	}
	if p := (command{says: "输出：x y"}).prints(); p != "x y" {
		t.Errorf("in Chinese it prints %q", p)
	}
}
