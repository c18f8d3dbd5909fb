//go:build mako

package mako_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/mako"
)

// original is a Python program that renders one template on each line, with Mako.
const original = `
import json, sys
import mako
from mako.template import Template
print(json.dumps({"version": mako.__version__}), flush=True)
for line in sys.stdin:
    text = json.loads(line)
    try:
        print(json.dumps({"out": Template(text).render(InstID=3, bk_set_name="管控平台", name="web.api", empty="")}), flush=True)
    except BaseException as e:
        print(json.dumps({"error": type(e).__name__ + ": " + str(e)[:200]}), flush=True)
`

// TestBesideMako renders random templates with Mako of Debian too, for as long as GOZZARD_MAKO_TIME says: the output must be
// the same, and what Mako cannot render must be an error here. make fuzz-mako runs it.
func TestBesideMako(t *testing.T) {
	spend, err := time.ParseDuration(os.Getenv("GOZZARD_MAKO_TIME"))
	if err != nil {
		t.Fatal("GOZZARD_MAKO_TIME is not set: run make fuzz-mako")
	}
	ask, version := startMako(t)

	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	with := &mako.Context{Values: map[string]mako.Value{"InstID": mako.Int(3), "bk_set_name": mako.String("管控平台"),
		"name": mako.String("web.api"), "empty": mako.String("")}, Now: time.Now(), Random: random}
	compared, failed, different := 0, 0, 0
	for begin := time.Now(); time.Since(begin) < spend && different < 20; compared++ {
		text := (&writer{random: random, escapes: strings.HasPrefix(version, "1.2")}).template()
		want, fault := ask(text)
		got, err := render(text, with)
		switch {
		case fault != "" && err != nil:
			failed++
		case fault != "" && err == nil:
			different++
			t.Errorf("seed %d: %q gives %q; Mako: %s", seed, text, got, fault)
		case err != nil || got != want:
			different++
			t.Errorf("seed %d: %q\n got %q %v\nwant %q", seed, text, got, err, want)
		}
	}
	t.Logf("Mako %s, seed %d: %d templates compared, %d different; %d were errors in both", version, seed, compared, different, failed)
}

// startMako starts the original and gives a function that asks it, and its version.
func startMako(t *testing.T) (ask func(string) (out, fault string), version string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/usr/bin/python3", "-c", original)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})

	lines := bufio.NewReader(out)
	read := func() map[string]string {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			t.Fatalf("Mako ended: %v", err)
		}
		var answer map[string]string
		if err := json.Unmarshal(line, &answer); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		return answer
	}
	version = read()["version"]
	return func(text string) (string, string) {
		line, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(in, string(line)+"\n"); err != nil {
			t.Fatal(err)
		}
		answer := read()
		return answer["out"], answer["error"]
	}, version
}

// writer writes random templates.
type writer struct {
	random  *rand.Rand
	escapes bool // %% as in Mako 1.2
	depth   int
	names   int
}

func (w *writer) pick(all ...string) string { return all[w.random.IntN(len(all))] }

func (w *writer) template() string {
	var b strings.Builder
	for range 1 + w.random.IntN(5) {
		b.WriteString(w.piece())
	}
	return b.String()
}

func (w *writer) piece() string {
	if w.depth++; w.depth > 4 {
		w.depth--
		return "x\n"
	}
	defer func() { w.depth-- }()
	switch w.random.IntN(13) {
	case 0, 1, 2, 3:
		return w.pick("", "a ", "$", "  ", "b=", "中") + "${" + w.any() + w.pick("", "", "", " | h", " | trim", " | u", "|n,str") + "}" + w.pick("\n", "", ";")
	case 4:
		return w.pick("text\n", "# kept\n", "## gone\n", " ## gone\n", "a ## b\n", "join \\\nnext\n", "cr\r\n", "$x $$ {y}\n", "100%\n", "\n",
			"a < b & c\n", "<%doc>x\n</%doc>y", "<%text>${z}</%text>\n", w.escape())
	case 5:
		return "\n% if " + w.any() + ":\n" + w.piece() + w.pick("", "\n% elif "+w.any()+":\n"+w.piece(), "\n% else:\n"+w.piece()) + "\n% endif\n"
	case 6:
		return "\n% for i in " + w.list() + ":\n${i}" + w.pick("", " ${loop.index}${loop.last}") + "\n" + w.piece() + "\n% endfor\n"
	case 7:
		w.names++
		name := fmt.Sprint("n", w.names)
		return fmt.Sprintf("<%% %s = %s %%>${%s}", name, w.any(), name)
	case 8:
		return "\n% try:\n${" + w.any() + "}\n% except " + w.pick("Exception", "TypeError", "(ValueError, KeyError)", "ZeroDivisionError as e") + ":\ncaught\n% endtry\n"
	case 9:
		return "<%\ndef f(a, b=" + w.number() + "):\n    return " + w.pick("a", "b", "[a, b]", "str(a) + 'x'") + "\n%>${f(" + w.any() + ")}\n"
	case 10:
		return "<%\nt = []\nfor k in " + w.list() + ":\n    if k == " + w.number() + ":\n        " + w.pick("continue", "break") + "\n    t.append(k)\n%>${t}"
	case 11:
		return "${'" + w.pick("%s", "%r", "%5s|", "%-6s|", "%.2s") + "' % (" + w.any() + ",)}"
	default:
		return "${'" + w.pick("%d", "%05d", "%x", "%+d", "%6.2f", "%e", "%g", "%o") + "' % " + w.number() + "}"
	}
}

func (w *writer) escape() string {
	if w.escapes {
		return "\n%% x\n"
	}
	return "%\n"
}

// any is an expression of any type.
func (w *writer) any() string {
	if w.depth++; w.depth > 7 {
		w.depth--
		return "InstID"
	}
	defer func() { w.depth-- }()
	switch w.random.IntN(12) {
	case 0, 1, 2:
		return w.number()
	case 3, 4, 5:
		return w.text()
	case 6, 7:
		return w.list()
	case 8:
		return w.pick("True", "False", "None", "nope", "empty", "{}", "()")
	case 9:
		return "(" + w.any() + " if " + w.any() + " else " + w.any() + ")"
	case 10:
		return "(" + w.any() + w.pick(" == ", " != ", " < ", " >= ", " and ", " or ", " in ", " + ", " * ") + w.any() + ")"
	default:
		return "{" + w.text() + ": " + w.any() + w.pick("", ", 1: "+w.any()) + "}"
	}
}

func (w *writer) number() string {
	if w.depth++; w.depth > 7 {
		w.depth--
		return "7"
	}
	defer func() { w.depth-- }()
	switch w.random.IntN(10) {
	case 0, 1, 2:
		return w.pick("0", "1", "2", "7", "10", "255", "-3", "InstID", "1000000007", "0x1f")
	case 3:
		return w.pick("1.5", "0.1", "1e20", "2.675", "-0.5", "3.0", "1e-7", "100.0")
	case 4, 5, 6:
		return "(" + w.number() + w.pick(" + ", " - ", " * ", " / ", " // ", " % ") + w.number() + ")"
	case 7:
		return w.pick("len", "int", "str") + "(" + w.text() + ")"
	case 8:
		return w.pick("abs", "round", "int", "float", "bool") + "(" + w.number() + ")"
	default:
		return w.pick("sum", "len", "max", "min") + "(" + w.list() + ")"
	}
}

func (w *writer) text() string {
	if w.depth++; w.depth > 7 {
		w.depth--
		return "'x'"
	}
	defer func() { w.depth-- }()
	switch w.random.IntN(9) {
	case 0, 1:
		return w.pick("'a'", "'b,c'", `"it's"`, "'<b>&'", "bk_set_name", "name", "' x '", "'Ab1'", "'12'", `'a\nb\t\x01'`, "'é'", "''")
	case 2:
		return w.text() + "." + w.pick("upper()", "lower()", "strip()", "title()", "capitalize()", "swapcase()", "replace('a', 'xy')", "lstrip('a')",
			"zfill(5)", "center(7, '*')", "ljust(4)", "rjust(5, '.')", "expandtabs(4)", "partition(',')[0]")
	case 3:
		return "(" + w.text() + " + " + w.text() + ")"
	case 4:
		return w.text() + w.pick("[0]", "[-1]", "[1:]", "[::-1]", "[:2]", "[::2]")
	case 5:
		return "str(" + w.any() + ")"
	case 6:
		return "repr(" + w.any() + ")"
	case 7:
		return "'" + w.pick("{}", "{:>6}|", "{!r}", "{0}-{0}", "{:^9}") + "'.format(" + w.text() + ")"
	default:
		return "'" + w.pick("", ",", "--") + "'.join(" + w.text() + ")"
	}
}

func (w *writer) list() string {
	if w.depth++; w.depth > 7 {
		w.depth--
		return "[1]"
	}
	defer func() { w.depth-- }()
	switch w.random.IntN(8) {
	case 0, 1:
		return "[" + w.any() + ", " + w.any() + "]"
	case 2:
		return w.text() + w.pick(".split(',')", ".split()", ".rsplit('.', 1)", ".splitlines()")
	case 3:
		return "[q" + w.pick("", " * 2", " + q") + " for q in " + w.list() + w.pick("", " if q", " if q != 1") + "]"
	case 4:
		return "list(range(" + w.pick("3", "1, 4", "5, 0, -2", "0") + "))"
	case 5:
		return w.pick("sorted", "list", "list") + "(" + w.list() + ")"
	case 6:
		return "list(" + w.pick("enumerate", "zip", "reversed") + "(" + w.list() + "))"
	default:
		return "list({" + w.text() + ": " + w.number() + "}.items())"
	}
}
