//go:build mako

package mako_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// writer writes random templates.
type writer struct {
	random  *rand.Rand
	escapes bool // %% as in Mako 1.2
	modules bool // re, json and math are imported
	depth   int
	names   int
}

func (w *writer) pick(all ...string) string { return all[w.random.IntN(len(all))] }

func (w *writer) template() string {
	var b strings.Builder
	if w.random.IntN(4) == 0 {
		b.WriteString("<%! import re, json, math %>")
		w.modules = true
	}
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
	switch w.random.IntN(17) {
	case 16:
		return w.pick("${nope}", "${nope.x}", "${nope()}", "${nope + 1}", "% if nope:\nx\n% endif\n", "${[x for x in nope]}")
	case 13, 14:
		return w.code()
	case 15:
		return w.lines()
	case 0, 1:
		return "\n% try:\n${" + w.any() + "}\n% except Exception as e:\n${type(e).__name__}: ${e}\n% endtry\n"
	case 2, 3:
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
		return "<%\ndef f(a, b=" + w.pick("1", "'b'", "()") + "):\n    return " + w.pick("a", "b", "[a, b]", "str(a) + 'x'") + "\n%>${f(" + w.any() + ")}\n"
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
	switch w.random.IntN(16) {
	case 12:
		return w.callOf()
	case 13:
		return w.flag()
	case 14:
		return w.formatted()
	case 15:
		if w.modules {
			return w.module()
		}
		return w.dict()
	case 0, 1, 2:
		return w.number()
	case 3, 4, 5:
		return w.text()
	case 6, 7:
		return w.list()
	case 8:
		return w.pick("True", "False", "None", "(nope or 0)", "bool(nope)", "empty", "{}", "()")
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
			"zfill(5)", "center(7, '*')", "ljust(4)", "rjust(5, '.')", "expandtabs(4)", "partition(',')[0]", "rpartition('.')[2]",
			"casefold()", "removeprefix('a')", "removesuffix('b')", "replace('', '-')", "replace('b', '', 1)", "strip('ab ')",
			"rstrip()", "translate({97: 'Z'})", "splitlines()[0]", "format(1, 2)", "center(4)", "zfill(-1)")
	case 3:
		return "(" + w.text() + " + " + w.text() + ")"
	case 4:
		return w.text() + w.slice()
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
		return w.pick("list("+w.dict()+".items())", "list("+w.dict()+")", "sorted("+w.dict()+".values())", "sorted(set("+w.list()+"), key=lambda v: (str(v), str(type(v))))",
			w.list()+w.slice(), "("+w.list()+" + "+w.list()+")", "("+w.list()+" * 2)", "[*"+w.list()+", *"+w.text()+"]",
			"list(map("+w.function()+", "+w.list()+"))", "list(filter("+w.function()+", "+w.list()+"))",
			"sorted("+w.list()+", key="+w.function()+", reverse="+w.pick("True", "False")+")", "list(divmod("+w.number()+", "+w.number()+"))",
			"[(x, y) for x in "+w.list()+" for y in "+w.text()+" if x != y]", "list("+w.text()+")", "list(range("+w.pick("9", "InstID", "2, 9", "9, 2, -3")+")"+w.slice()+")")
	}
}
