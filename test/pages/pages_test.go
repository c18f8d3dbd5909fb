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
		t.Run(strings.NewReplacer("/", "_", ".md", "").Replace(p.file), func(t *testing.T) {
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
	commands, _ := readPage(t, p.file)
	if len(commands) == 0 {
		t.Fatal("the page has no commands; remove it from the table")
	}

	var b strings.Builder
	fmt.Fprintln(&b, p.before)
	used := make([]bool, len(p.rules))
	for _, c := range commands {
		text := p.replace(c.text)
		r := rule{}
		for i := range p.rules {
			if !used[i] && strings.HasPrefix(c.text, p.rules[i].begins) {
				used[i], r = true, p.rules[i]
				break
			}
		}

		if r.first != "" {
			fmt.Fprintln(&b, r.first)
		}
		switch r.how {
		case elsewhere:
			left++
			fmt.Fprintf(&b, "echo %s\n", quoted(fmt.Sprintf("%d: %s: left out: %s", c.line, c.text, r.why)))
		default:
			run++
			fmt.Fprintf(&b, "%s %d %s %s\n", cmp.Or(r.how, "command_of_page"), c.line, quoted(text), quoted(p.replace(c.prints())))
		}
		if r.then != "" {
			fmt.Fprintln(&b, r.then)
		}
	}

	for i, r := range p.rules {
		if !used[i] {
			t.Errorf("no command begins with %q any more; remove the rule", r.begins)
		}
		if r.how == elsewhere && r.why == "" {
			t.Errorf("the rule for %q has no reason", r.begins)
		}
	}
	return b.String(), run, left
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
