//go:build mako

package mako_test

import "strings"

// slice is an index or a slice.
func (w *writer) slice() string {
	n := func() string { return w.pick("", "", "0", "1", "2", "-1", "-2", "10", "-10", "InstID") }
	switch w.random.IntN(4) {
	case 0:
		return "[" + w.pick("0", "-1", "1", "InstID", "9") + "]"
	case 1:
		return "[" + n() + ":" + n() + ":" + w.pick("1", "2", "-1", "-2", "", "0") + "]"
	default:
		return "[" + n() + ":" + n() + "]"
	}
}

func (w *writer) function() string {
	return w.pick("str", "len", "bool", "lambda v: v", "lambda v: (v, 1)", "lambda v, n=2: n", "lambda v: "+w.any(), "repr", "abs", "lambda *v: v",
		"str.upper", "lambda v: -v", "type", "None", "int", "float", "list", "lambda v: str(v)")
}

func (w *writer) dict() string {
	switch w.random.IntN(6) {
	case 0:
		return "{}"
	case 1:
		return "dict(zip(" + w.list() + ", " + w.list() + "))"
	case 2:
		return "{k: " + w.any() + " for k in " + w.list() + "}"
	case 3:
		return "dict(a=" + w.any() + ", b=" + w.any() + ")"
	case 4:
		return "{**" + w.dict() + ", " + w.text() + ": " + w.number() + "}"
	default:
		return "{" + w.text() + ": " + w.any() + ", " + w.number() + ": " + w.any() + "}"
	}
}

// flag is an expression that is mostly true or false.
func (w *writer) flag() string {
	switch w.random.IntN(8) {
	case 0:
		return w.text() + "." + w.pick("isdigit()", "isalpha()", "isalnum()", "isspace()", "isupper()", "islower()", "isnumeric()", "isdecimal()",
			"startswith('a')", "endswith(('b', '1'))", "startswith('b', 1)", "istitle()", "isidentifier()", "isprintable()", "isascii()")
	case 1:
		return "(" + w.number() + w.pick(" < ", " <= ", " > ", " >= ", " == ", " != ") + w.number() + w.pick("", " < "+w.number()) + ")"
	case 2:
		return "(" + w.text() + w.pick(" in ", " not in ") + w.pick(w.text(), w.list(), w.dict()) + ")"
	case 3:
		return "(not " + w.any() + ")"
	case 4:
		return "(" + w.any() + w.pick(" is None", " is not None") + ")"
	case 5:
		return w.pick("any", "all") + "(" + w.list() + ")"
	case 6:
		return "isinstance(" + w.any() + ", " + w.pick("int", "str", "float", "bool", "list", "dict", "tuple", "(int, str)", "object") + ")"
	default:
		return "(" + w.list() + w.pick(" < ", " == ", " >= ") + w.list() + ")"
	}
}

// callOf is a call of a function or method that gives anything.
func (w *writer) callOf() string {
	switch w.random.IntN(9) {
	case 0:
		return w.text() + "." + w.pick("find('b')", "rfind('a')", "count('a')", "index('a')", "rindex('b')", "find('', 2)", "count('')", "find('c', -2)")
	case 1:
		return w.dict() + "." + w.pick("get('a')", "get('b', 7)", "get(1)", "setdefault('a', 2)", "pop('a', None)", "items()", "keys()", "values()", "copy()")
	case 2:
		return w.list() + "." + w.pick("index(1)", "count('a')", "copy()", "pop()", "pop(0)", "append(1)", "sort()", "reverse()", "insert(1, 'i')")
	case 3:
		return w.pick("hex", "oct", "bin", "chr", "ord", "abs", "int", "float", "ascii", "repr", "type", "tuple", "bool") + "(" + w.any() + ")"
	case 4:
		return w.pick("min", "max") + "(" + w.any() + ", " + w.any() + w.pick("", ", key=str") + ")"
	case 5:
		return "round(" + w.number() + ", " + w.pick("0", "1", "2", "-1", "-2", "5") + ")"
	case 6:
		return w.pick("pow("+w.number()+", "+w.pick("2", "3", "0", "-1")+w.pick("", "", ", 7")+")", "round(abs("+w.number()+") ** 0.5, 6)")
	case 7:
		return "int(" + w.text() + ", " + w.pick("10", "16", "2", "0", "36") + ")"
	default:
		return "(" + w.function() + ")(" + w.any() + ")"
	}
}

// formatted is a text by a format.
func (w *writer) formatted() string {
	number := w.pick("", "d", "5d", "05d", "<6d|", "x", "#x", "08b", "o", ",", "_", "+d", " d", "=+7d", "^8d|", "n", "c", "s", "010,d", "*^9", "#b", "X")
	float := w.pick("", ".2f", "8.3f", "e", ".3e", "g", ".2g", "%", ".1%", ",.2f", "+.1f", "010.2f", "<9.1f|", ".0f", "#.3g", "G", "n", ".3", "012,.1f", "E", ">9")
	text := w.pick("", ">5", "<5|", "^7|", "*^7|", ".2", "10.3|", "s", "5s|", "=5", "05", "-<4")
	switch w.random.IntN(6) {
	case 0:
		return "f'{" + w.pick("InstID", "name", "bk_set_name", "1.5", "len(name)", "name[0]", "InstID + 1", "None", "[1, 2]", "(InstID, 'a')") + w.pick("", "!r", "!s", "!a") +
			w.pick("", ":"+text) + "} {{}}'"
	case 1:
		return "'{:" + number + "}'.format(" + w.number() + ")"
	case 2:
		return "'{:" + float + "}'.format(" + w.number() + ")"
	case 3:
		return "'{0:" + text + "}{x}{0!r:" + text + "}'.format(" + w.text() + ", x=" + w.any() + ")"
	case 4:
		return "format(" + w.any() + ", '" + w.pick(number, float, text) + "')"
	default:
		return "'" + w.pick("%s", "%r", "%a", "%5s|", "%-5s|", "%d", "%i", "%05d", "%+d", "% d", "%x", "%#x", "%o", "%#o", "%X", "%c", "%e", "%.1e", "%f", "%.2f",
			"%8.3f", "%-8.2f|", "%g", "%G", "%#g", "%08.2f", "%%%d", "%(a)s", "%*d", "%.*f", "%5%", "%.3d", "%+.2e", "%u", "%ld", "%q", "%") +
			"' % " + w.pick(w.any(), "("+w.any()+",)", w.number(), "("+w.number()+", "+w.number()+")", "{'a': "+w.any()+"}")
	}
}

// module is a call of a function of a module.
func (w *writer) module() string {
	pattern := w.pick("[a-z]+", "a", "[^a-z]", `\\d+`, `\\w`, `\\s+`, `(a)(b)?`, `[,.]`, "x|a", "^a", "b$", "(?i)A", `\\W+`, "(?P<n>[a-z])", ".", "a{1,2}", `[\\w.]+`, "[^,]+",
		`\\.`, "管", "a+?", "(b|c)+", `[\\d]`, `\\S+`, "", "a*", `^\\s*`, `\\s*$`)
	pattern = "r'" + strings.ReplaceAll(pattern, `\\`, `\`) + "'"
	number := func(f string) string { return "math." + f + "(" + w.number() + ")" }
	switch w.random.IntN(8) {
	case 0:
		return "re.findall(" + pattern + ", " + w.text() + ")"
	case 1:
		return "re.sub(" + pattern + ", " + w.pick("'-'", "''", `r'<\g<0>>'`, `r'\1'`, "lambda m: m.group().upper()", "lambda m: '%d' % m.start()") + ", " + w.text() + w.pick("", ", 1", ", flags=re.I") + ")"
	case 2:
		return "re.split(" + pattern + ", " + w.text() + w.pick("", ", 1") + ")"
	case 3:
		return "[m.groups() if m else m for m in [re." + w.pick("match", "search", "fullmatch") + "(" + pattern + ", " + w.text() + ")]]"
	case 4:
		return "[(m.span(), m[0], m.groupdict()) for m in re.finditer(" + pattern + ", " + w.text() + ")]"
	case 5:
		return "json.dumps(" + w.any() + w.pick("", ", indent=2", ", sort_keys=True", ", ensure_ascii=False", ", separators=(',', ':')", ", indent='-'") + ")"
	case 6:
		return "json.loads(json.dumps(" + w.any() + "))"
	default:
		return w.pick(number("floor"), number("ceil"), number("sqrt"), number("trunc"), number("fabs"), number("isnan"), "math.pi", "math.gcd(12, "+w.number()+")",
			"math.pow("+w.number()+", 2)", "math.fmod("+w.number()+", 3)", number("log10"), "re.escape("+w.text()+")")
	}
}

// code is a block of Python.
func (w *writer) code() string {
	switch w.random.IntN(10) {
	case 0:
		return "<%\nr = []\ndef g(n, *a, k=" + w.pick("1", "'a'", "None") + ", **d):\n    r.append((n, a, k, sorted(d)))\n    return a\ng(" + w.any() + w.pick("", ", 1, 2", ", *[3]", ", k=4", ", **{'z': 1}") + ")\n%>${r}"
	case 1:
		return "<%\nn = 0\nwhile n < 10:\n    n += " + w.pick("1", "3", "InstID") + "\n    if n == " + w.number() + ":\n        " + w.pick("break", "continue") + "\n" + w.pick("", "else:\n    n = -n\n") + "%>${n}"
	case 2:
		return "<%\nr = []\nfor i in " + w.list() + ":\n    try:\n        if i == 2: " + w.pick("continue", "break", "raise ValueError(i)", "pass") + "\n        r.append(" + w.any() + ")\n    except " +
			w.pick("TypeError", "(ValueError, TypeError)", "Exception") + " as e:\n        r.append('e')\n    " + w.pick("finally:\n        r.append('f')\n", "else:\n        r.append('o')\n", "") + "%>${r}"
	case 3:
		return "<%\nclass C:\n    n = " + w.pick("1", "'n'", "[1, 2]", "{}") + "\n    def __init__(self, a):\n        self.a = a\n    def both(self):\n        return [self.n, self.a]\nclass D(C):\n    def more(self): return self.both() + [1]\n%>${" + w.pick("C", "D") + "(" + w.any() + ")." + w.pick("both()", "more()", "a", "n") + "}"
	case 4:
		return "<%\na, b = " + w.pick(w.list(), "(1, 2)", w.text(), w.any()) + "\n%>${a}|${b}"
	case 5:
		return "<%\nfirst, *rest = " + w.list() + "\n%>${first} ${rest}"
	case 6:
		return "<%\nd = " + w.dict() + "\nd[" + w.text() + "] = " + w.any() + "\n" + w.pick("del d['a']\n", "d.update({'u': 1})\n", "d.pop('a', 0)\n", "") + "%>${d} ${len(d)}"
	case 7:
		return "<%\nl = " + w.list() + "\nm = l\n" + w.pick("l += [1]", "l.append(2)", "l = l + [3]", "l[0] = 'z'", "del l[0]", "l.extend('ab')", "l *= 2", "l.sort(key=str)", "l.remove(1)") + "\n%>${l} ${m}"
	case 8:
		return "<%\ndef outer(x):\n    n = [x]\n    c = 0\n    def inner(y):\n        " + w.pick("nonlocal c\n        c += 1", "n.append(y)", "return (n, c, y)") + "\n        return (n, c)\n    inner(1)\n    return inner(2), c\n%>${outer(" + w.any() + ")}"
	default:
		return "<%\nv = " + w.any() + "\nv " + w.pick("+=", "-=", "*=", "//=", "%=", "|=", "&=") + " " + w.any() + "\n%>${sorted(map(repr, v)) if isinstance(v, set) else v}"
	}
}

// lines are control lines.
func (w *writer) lines() string {
	switch w.random.IntN(5) {
	case 0:
		return "\n% for i in " + w.list() + ":\n% for j in " + w.list() + ":\n${i}-${j} ${loop.parent.index}${loop.index}${loop.even}${loop.first}\\\n% endfor\n% endfor\n"
	case 1:
		return "\n% for i in " + w.list() + ":\n% if i == " + w.number() + ":\n<% " + w.pick("continue", "break") + " %>\\\n% endif\n${i}\n% endfor\n"
	case 2:
		return "\n% for a, b in " + w.pick(w.dict()+".items()", "enumerate("+w.list()+")", "zip("+w.list()+", "+w.list()+")") + ":\n${a}=${b} ${loop.cycle('x', 'y')}\n% endfor\n"
	case 3:
		return "\n<% n = 0 %>\\\n% while n < 3:\n${n}<% n += 1 %>\n% endwhile\n"
	default:
		return "\n  % if " + w.flag() + w.pick("", " and \\\n"+w.flag()) + ": # why\n  " + w.piece() + "\n  % elif " + w.flag() + ":\nsecond\n  %else:\nthird\n  %endif\n"
	}
}
