package mako

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.starlark.net/starlark"
)

// The flags of re.
var reFlags = map[string]int{"I": 2, "IGNORECASE": 2, "M": 8, "MULTILINE": 8, "S": 16, "DOTALL": 16}

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
			flags := map[string]int{"sub": 4, "split": 3}[name]
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

	prefix := ""
	for letter, bit := range map[string]int{"i": 2, "m": 8, "s": 16} {
		if flags&bit != 0 {
			prefix += letter
		}
	}
	source := strings.ReplaceAll(text, `\Z`, `\z`)
	if prefix != "" {
		source = "(?" + prefix + ")" + source
	}
	if err := c.run.spendEach(len(source), 1000); err != nil {
		return nil, err
	}
	return compilePattern(source)
}

// pattern is a compiled pattern and how many instructions it has.
type pattern struct {
	*regexp.Regexp
	size int
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
		return nil, raise("ValueError", "the pattern %s is not supported: %v", quote(source), err)
	}
	tree, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return nil, raise("ValueError", "the pattern %s is not supported: %v", quote(source), err)
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, raise("ValueError", "the pattern %s is not supported: %v", quote(source), err)
	}
	if len(program.Inst) > maxPattern {
		return nil, &limitError{"a pattern of the template is too large"}
	}
	return &pattern{p, len(program.Inst)}, nil
}

// matches are the first matches in a text, all if most is negative. It looks for twice as many each time, because the time is
// only known between two calls, and a text may have many matches that each take the time of the whole text.
func (c *call) matches(p *pattern, s string, most int) ([][]int, error) {
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
			return found, nil
		}
	}
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
	return &object{class: "re.Pattern", text: "re.compile(" + quote(p.String()) + ")", data: p, attr: func(name string) (Value, bool) {
		if name == "pattern" {
			return starlark.String(p.String()), true
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

func newMatch(p *pattern, s string, m []int) Value {
	group := func(i int) Value {
		if i*2+1 >= len(m) || m[2*i] < 0 {
			return starlark.None
		}
		return starlark.String(s[m[2*i]:m[2*i+1]])
	}
	number := func(v Value) (int, error) {
		i, isInt := v.(starlark.Int)
		if name, ok := v.(starlark.String); ok {
			if n := p.SubexpIndex(string(name)); n >= 0 {
				return n, nil
			}
		} else if n, ok := i.Int64(); isInt && ok && n >= 0 && n <= int64(p.NumSubexp()) {
			return int(n), nil
		}
		return 0, raise("IndexError", "no such group")
	}
	at := func(end int) fn {
		return func(c *call) (Value, error) {
			i := 0
			if len(c.args) > 0 {
				var err error
				if i, err = number(c.args[0]); err != nil {
					return nil, err
				}
			}
			if m[2*i+end] < 0 {
				return starlark.MakeInt(-1), nil
			}
			return starlark.MakeInt(utf8.RuneCountInString(s[:m[2*i+end]])), nil
		}
	}

	methods := map[string]fn{
		"group": func(c *call) (Value, error) {
			if len(c.args) == 0 {
				return group(0), nil
			}
			out := make(starlark.Tuple, len(c.args))
			for i, a := range c.args {
				n, err := number(a)
				if err != nil {
					return nil, err
				}
				out[i] = group(n)
			}
			if len(out) == 1 {
				return out[0], nil
			}
			return out, nil
		},
		"groups": func(*call) (Value, error) {
			out := make(starlark.Tuple, p.NumSubexp())
			for i := range out {
				out[i] = group(i + 1)
			}
			return out, nil
		},
		"groupdict": func(*call) (Value, error) {
			d := starlark.NewDict(0)
			for i, name := range p.SubexpNames() {
				if name != "" {
					_ = d.SetKey(starlark.String(name), group(i)) // a string can be a key
				}
			}
			return d, nil
		},
		"start": at(0), "end": at(1),
	}
	methods["__getitem__"] = methods["group"]
	all := functions(methods)
	return &object{class: "re.Match", text: "<re.Match object>", attr: func(name string) (Value, bool) {
		v, ok := all[name]
		return v, ok
	}}
}

// found is what findall and split give for a match: the group, the groups, or the whole.
func found(s string, m []int) Value {
	if len(m) == 2 {
		return starlark.String(s[m[0]:m[1]])
	}
	out := make(starlark.Tuple, 0, len(m)/2-1)
	for i := 2; i < len(m); i += 2 {
		text := ""
		if m[i] >= 0 {
			text = s[m[i]:m[i+1]]
		}
		out = append(out, starlark.String(text))
	}
	if len(out) == 1 {
		return out[0]
	}
	return out
}

func reFindall(c *call, p *pattern) (Value, error) {
	s, err := c.subject(p, 0)
	if err != nil {
		return nil, err
	}
	all, err := c.matches(p, s, -1)
	if err != nil {
		return nil, err
	}
	var out []Value
	for _, m := range all {
		out = append(out, found(s, m))
	}
	return c.run.list(out)
}

func reFinditer(c *call, p *pattern) (Value, error) {
	s, err := c.subject(p, 0)
	if err != nil {
		return nil, err
	}
	all, err := c.matches(p, s, -1)
	if err != nil {
		return nil, err
	}
	var out []Value
	for _, m := range all {
		out = append(out, newMatch(p, s, m))
	}
	return c.run.list(out)
}

func reSplit(c *call, p *pattern) (Value, error) {
	s, err := c.subject(p, 0)
	if err != nil {
		return nil, err
	}
	most, err := c.number(1, "maxsplit", 0)
	if err != nil {
		return nil, err
	}
	if most <= 0 {
		most = -1
	}
	all, err := c.matches(p, s, most)
	if err != nil {
		return nil, err
	}
	var out []Value
	begin := 0
	for _, m := range all {
		out = append(out, starlark.String(s[begin:m[0]]))
		for i := 2; i < len(m); i += 2 {
			if m[i] < 0 {
				out = append(out, starlark.None)
			} else {
				out = append(out, starlark.String(s[m[i]:m[i+1]]))
			}
		}
		begin = m[1]
	}
	return c.run.list(append(out, starlark.String(s[begin:])))
}

func reSub(c *call, p *pattern) (Value, error) {
	if len(c.args) < 2 {
		return nil, raise("TypeError", "sub() missing required arguments")
	}
	s, err := c.subject(p, 1)
	if err != nil {
		return nil, err
	}
	most, err := c.number(2, "count", 0)
	if err != nil {
		return nil, err
	}
	if most <= 0 {
		most = -1
	}

	all, err := c.matches(p, s, most)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	begin := 0
	for _, m := range all {
		b.WriteString(s[begin:m[0]])
		begin = m[1]
		text := ""
		if form, ok := c.args[0].(starlark.String); ok {
			if text, err = c.expandGroups(p, string(form), s, m); err != nil {
				return nil, err
			}
		} else {
			v, err := c.invoke(c.args[0], newMatch(p, s, m))
			if err != nil {
				return nil, err
			}
			text = str(v)
		}
		if err := c.run.spend(len(text)); err != nil {
			return nil, err
		}
		b.WriteString(text)
	}
	return starlark.String(b.String() + s[begin:]), c.run.spend(len(s))
}

var groupReference = regexp.MustCompile(`\\(\d{1,2}|g<[^>]*>|.)`)

// expandGroups replaces \1 and \g<name> in a replacement.
func (c *call) expandGroups(p *pattern, form, s string, m []int) (string, error) {
	var b strings.Builder
	begin := 0
	for _, at := range groupReference.FindAllStringIndex(form, -1) {
		text := groupText(p, form[at[0]:at[1]], s, m)
		if err := c.run.spend(len(text)); err != nil { // a group may be long, and named many times
			return "", err
		}
		b.WriteString(form[begin:at[0]])
		b.WriteString(text)
		begin = at[1]
	}
	b.WriteString(form[begin:])
	return b.String(), nil
}

// groupText is what a reference in a replacement stands for.
func groupText(p *pattern, reference, s string, m []int) string {
	name := strings.TrimSuffix(strings.TrimPrefix(reference[1:], "g<"), ">")
	i, err := strconv.Atoi(name)
	if err != nil {
		i = p.SubexpIndex(name)
	}
	switch {
	case i >= 0 && 2*i+1 < len(m):
		if m[2*i] < 0 {
			return ""
		}
		return s[m[2*i]:m[2*i+1]]
	case reference == `\n`:
		return "\n"
	case reference == `\t`:
		return "\t"
	case reference == `\\`:
		return `\`
	}
	return reference
}
