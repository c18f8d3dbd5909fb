package mako

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"go.starlark.net/starlark"
)

// The flags of re.
var reFlags = map[string]int{"I": 2, "IGNORECASE": 2, "M": 8, "MULTILINE": 8, "S": 16, "DOTALL": 16, "U": 32, "UNICODE": 32}

// reModule is the module re on Go's patterns: they take linear time, and have no look-around and no back references.
func reModule() map[string]Value {
	all := functions(map[string]fn{
		"compile": func(c *call) (Value, error) {
			p, err := c.pattern(1, "flags")
			if err != nil {
				return nil, err
			}
			return newPattern(p), nil
		},
		"escape": func(c *call) (Value, error) {
			s, err := c.text(0, "pattern", "")
			return starlark.String(reEscape(s)), err
		},
	})
	for name := range patternMethods {
		all[name] = builtin(name, func(c *call) (Value, error) {
			flags := map[string]int{"sub": 4, "subn": 4, "split": 3}[name]
			if flags == 0 {
				flags = 2
			}
			p, err := c.pattern(flags, "flags")
			if err != nil {
				return nil, err
			}
			c.args = c.args[1:]
			return patternMethods[name](c, p)
		})
	}
	for name, n := range reFlags {
		all[name] = starlark.MakeInt(n)
	}
	all["error"] = exceptions["re.error"]
	return all
}

// pattern compiles the first argument, with flags at a position.
func (c *call) pattern(at int, name string) (*pattern, error) {
	if len(c.args) == 0 {
		return nil, raise("TypeError", "%s() missing 1 required positional argument: 'pattern'", c.name)
	}
	if o, ok := c.args[0].(*object); ok {
		if p, ok := o.data.(*pattern); ok {
			return p, nil
		}
	}
	text, err := c.text(0, "pattern", "")
	if err != nil {
		return nil, err
	}
	flags, err := c.number(at, name, 0)
	if err != nil {
		return nil, err
	}

	if err := c.run.spendEach(len(text), 1000); err != nil {
		return nil, err
	}
	t, err := translatePattern(text, flags)
	if err != nil {
		return nil, err
	}
	p, err := compilePattern(t.b.String())
	if err != nil {
		return nil, err
	}
	p.text, p.boundary, p.dollar = text, t.boundary, t.dollar
	return p, nil
}

// pattern is a compiled pattern.
type pattern struct {
	*regexp.Regexp
	text             string // as the template has it
	size             int    // instructions
	empty            bool   // it may match nothing
	again            bool   // it may match nothing at the end of a match, and can be searched again from there
	emptyLast        bool
	chooses          bool
	boundary, dollar bool // see reTranslator
}

// The time that a pattern takes is at most its size times the length of the text, for one match. Nothing can interrupt it, so
// both limits together are for less than a second or two.
const (
	maxPattern = 10_000
	maxMatch   = 32 << 20
)

func compilePattern(source string) (*pattern, error) {
	p, err := regexp.Compile(source)
	if err != nil {
		return nil, raise("re.error", "the pattern %s is not supported: %v", quote(source), err)
	}
	tree, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return nil, raise("re.error", "the pattern %s is not supported: %v", quote(source), err)
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, raise("re.error", "the pattern %s is not supported: %v", quote(source), err)
	}
	if len(program.Inst) > maxPattern {
		return nil, &limitError{"a pattern of the template is too large"}
	}
	empty := shortest(tree) == 0 && !onlyAtStart(tree)
	last := emptyLast(tree)
	return &pattern{Regexp: p, size: len(program.Inst), empty: empty, again: empty && last && !looksBack(tree), emptyLast: last,
		chooses: chooses(tree)}, nil
}

// matches are the first matches in a text, all if most is negative. It looks for twice as many each time, because the time is
// only known between two calls, and a text may have many matches that each take the time of the whole text.
func (c *call) matches(p *pattern, s string, most int) ([][]int, error) {
	if p.again {
		return c.withEmpty(p, s, most)
	}
	for n := 1; ; n *= 2 {
		if most >= 0 {
			n = min(n, most)
		}
		if err := c.run.spendEach(n, 16*(p.NumSubexp()+1)); err != nil {
			return nil, err
		}
		found := p.FindAllStringSubmatchIndex(s, n)
		if c.run.ctx.Err() != nil {
			return nil, &limitError{errTime}
		}
		if len(found) < n || n == most {
			return found, p.sameInPython(found)
		}
	}
}

// sameInPython rejects matches that would be others in Python.
func (p *pattern) sameInPython(found [][]int) error {
	if p.empty && slices.ContainsFunc(found, func(m []int) bool { return m[1] > m[0] || !p.emptyLast }) {
		return raise("NotImplementedError", "the pattern %s may match nothing, beside other matches: this is not supported", quote(p.text))
	}
	return nil
}

func reEscape(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r < 0x80 && strings.ContainsRune("()[]{}?*+-|^$\\.&~# \t\n\r\v\f", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

func newPattern(p *pattern) Value {
	return &object{class: "re.Pattern", text: "re.compile(" + quote(p.text) + ")", data: p, attr: func(name string) (Value, bool) {
		if name == "pattern" {
			return starlark.String(p.text), true
		}
		f := patternMethods[name]
		if f == nil {
			return nil, false
		}
		return builtin(name, func(c *call) (Value, error) { return f(c, p) }), true
	}}
}

// patternMethods are the functions of a pattern; the functions of the module have the pattern before their arguments.
var patternMethods = map[string]func(c *call, p *pattern) (Value, error){
	"match": func(c *call, p *pattern) (Value, error) {
		return c.find(p, func(s string, m []int) bool { return m[0] == 0 }, `\A(?:`, `)`)
	},
	"fullmatch": func(c *call, p *pattern) (Value, error) {
		return c.find(p, func(s string, m []int) bool { return m[0] == 0 && m[1] == len(s) }, `\A(?:`, `)\z`)
	},
	"search": func(c *call, p *pattern) (Value, error) {
		return c.find(p, func(string, []int) bool { return true }, "", "")
	},
	"findall":  reFindall,
	"finditer": reFinditer,
	"sub":      reSub,
	"subn":     reSub,
	"split":    reSplit,
}

// subject is the text that a pattern is applied to. The work counts as memory.
func (c *call) subject(p *pattern, i int) (string, error) {
	s, ok := c.arg(i, "string").(starlark.String)
	if !ok {
		return "", raise("TypeError", "expected string or bytes-like object")
	}
	if len(s) > maxMatch/p.size {
		return "", &limitError{fmt.Sprintf("a text of %d bytes is too long for a pattern of the template", len(s))}
	}
	if p.boundary && strings.ContainsFunc(string(s), func(r rune) bool { return r >= utf8.RuneSelf }) {
		return "", raise("NotImplementedError", "\\b in a pattern is not supported for a text with characters beyond ASCII")
	}
	if p.dollar && strings.HasSuffix(string(s), "\n") {
		return "", raise("NotImplementedError", "$ in a pattern is not supported for a text that ends with a newline: use \\Z")
	}
	return string(s), c.run.spendEach(len(s), 4)
}

// find is match, fullmatch and search. A pattern that must be at the begin is compiled again with an anchor.
func (c *call) find(p *pattern, good func(s string, m []int) bool, before, after string) (Value, error) {
	s, err := c.subject(p, 0)
	if err != nil {
		return nil, err
	}
	if before != "" {
		if p, err = compilePattern(before + p.String() + after); err != nil {
			return nil, err
		}
	}
	m := p.FindStringSubmatchIndex(s)
	if m == nil || !good(s, m) {
		return starlark.None, nil
	}
	return newMatch(p, s, m), nil
}
