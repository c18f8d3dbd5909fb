//go:build linux

package pages_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

func TestMain(m *testing.M) { ft.Main(m) }

// TestCommandsOfPages runs every command of the pages, page by page, each on a machine of its own. The commands of a page in
// Chinese run as in a Chinese shell. What a table of rules leaves out has a reason there. A rule that fits no command fails, so
// the tables do not rot.
func TestCommandsOfPages(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root for a machine of its own")
	}
	ft.Binary(t) // all pages use it

	for _, p := range pages() {
		t.Run(strings.NewReplacer("/", "_", ".md", "").Replace(p.file)+p.part, func(t *testing.T) {
			t.Parallel()
			p.run(t, 10*time.Minute, nil)
		})
	}
}

// run runs the commands of a page by its rules. programs are further files and folders for /stage, by name.
func (p page) run(t *testing.T, limit time.Duration, programs map[string]string) {
	t.Helper()
	stage := t.TempDir()
	script, run, left := p.script(t)
	write(t, filepath.Join(stage, "page.sh"), script)
	for i, example := range p.examples(t) {
		write(t, filepath.Join(stage, fmt.Sprintf("example-%d.yaml", i)), example)
	}

	all := map[string]string{"gozzard": ft.Binary(t)}
	maps.Copy(all, programs)
	for name, from := range all {
		if out, err := exec.Command("cp", "-r", from, filepath.Join(stage, name)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}

	out := inWorld(t, stage, p.locale(), limit)
	t.Logf("%d commands were run, %d are left to other tests:\n%s", run, left, out)
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// locale is the environment that chooses the language of the programs: that of the page.
func (p page) locale() string {
	if strings.HasPrefix(p.file, "docs/zh/") || strings.HasSuffix(p.file, ".zh.md") {
		return "LANG=zh_CN.UTF-8"
	}
	return "LC_ALL=C"
}

// inWorld runs the script of a page on a machine of its own.
func inWorld(t *testing.T, stage, locale string, limit time.Duration) string {
	t.Helper()
	testdata, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "--pid", "--net", "--ipc", "--fork", "--kill-child",
		"--propagation", "private", "bash", filepath.Join(testdata, "world.sh"), t.TempDir(), testdata, stage, "page.sh")
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/go/bin", locale,
		"HOME=/root", "GORACE=atexit_sleep_ms=50"} // else each program waits for a second at its end
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// script is the script that runs the commands of a page by its rules.
func (p page) script(t *testing.T) (script string, run, left int) {
	t.Helper()
	commands := p.commands(t)
	if len(commands) == 0 {
		t.Fatal("the page has no commands; remove it from the table")
	}

	var b strings.Builder
	fmt.Fprintln(&b, p.before)
	used := make([]bool, len(p.rules))
	section := rule{}
	for i, c := range commands {
		if i == 0 || c.section != commands[i-1].section {
			section, _ = p.rule(used, c.section)
			fmt.Fprintln(&b, section.first)
		}
		r, found := p.rule(used, c.text)
		if !found {
			r.how, r.why = section.how, section.why
		}

		fmt.Fprintln(&b, r.first)
		if r.how == elsewhere {
			left++
			fmt.Fprintf(&b, "echo %s\n", quoted(fmt.Sprintf("%d: %s: left out: %s", c.line, c.text, r.why)))
		} else {
			run++
			fmt.Fprintf(&b, "%s %d %s %s\n", cmp.Or(r.how, "command_of_page"), c.line, quoted(p.replace(c.text)), quoted(p.replace(c.prints())))
		}
		fmt.Fprintln(&b, r.then)

		if i == len(commands)-1 || c.section != commands[i+1].section {
			fmt.Fprintln(&b, section.then)
		}
	}

	for i, r := range p.rules {
		if !used[i] {
			t.Errorf("no command and no section begins with %q any more; remove the rule", r.begins)
		}
		if r.how == elsewhere && r.why == "" {
			t.Errorf("the rule for %q has no reason", r.begins)
		}
	}
	return b.String(), run, left
}

// rule is the first rule for a text that was not used yet. Then it is used.
func (p page) rule(used []bool, text string) (r rule, found bool) {
	for i, r := range p.rules {
		whole := strings.HasPrefix(r.begins, "## ") // "## gozzard key" is not "## gozzard key list"
		if !used[i] && (text == r.begins || !whole && strings.HasPrefix(text, r.begins)) {
			used[i] = true
			return r, true
		}
	}
	return rule{}, false
}

// commands are the commands of the page, or of its part.
func (p page) commands(t *testing.T) []command {
	t.Helper()
	all, _ := readPage(t, p.file)
	return slices.DeleteFunc(all, func(c command) bool { return p.nouns != "" && !p.has(c.section) })
}

// has reports whether a section of a page belongs to the part: "## gozzard agent join" is of the noun agent.
func (p page) has(section string) bool {
	words := strings.Fields(section)
	return len(words) > 2 && slices.Contains(strings.Fields(p.nouns), words[2])
}

func (p page) examples(t *testing.T) []string {
	_, examples := readPage(t, p.file)
	for i := range examples {
		examples[i] = p.replace(examples[i])
	}
	return examples
}

// replace puts in what the page leaves to the reader.
func (p page) replace(text string) string { return strings.NewReplacer(p.replaced...).Replace(text) }

// quoted is a text as one word of a shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
