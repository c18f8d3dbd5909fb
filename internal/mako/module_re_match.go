package mako

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.starlark.net/starlark"
)

// newMatch makes a match object.
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
		"groups": func(c *call) (Value, error) {
			out := make(starlark.Tuple, p.NumSubexp())
			for i := range out {
				if out[i] = group(i + 1); out[i] == starlark.None && c.arg(0, "default") != nil {
					out[i] = c.arg(0, "default")
				}
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
		"span": func(c *call) (Value, error) {
			begin, err := at(0)(c)
			if err != nil {
				return nil, err
			}
			end, err := at(1)(c)
			return starlark.Tuple{begin, end}, err
		},
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

// reSub is sub, and subn, which also says how many there were.
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
	if c.args[0] == starlark.String("") && !p.chooses && c.name == "sub" && most < 0 {
		other := *p // more empty matches would change nothing
		other.empty = false
		p = &other
	}

	if form, ok := c.args[0].(starlark.String); ok { // Python reads it even if nothing matches
		if _, err := c.expandGroups(p, string(form), "", make([]int, 2*(p.NumSubexp()+1))); err != nil {
			return nil, err
		}
	}
	all, err := c.matches(p, s, most)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	begin := 0
	for _, m := range all {
		text, err := c.replacement(p, s, m)
		if err != nil {
			return nil, err
		}
		b.WriteString(s[begin:m[0]])
		b.WriteString(text)
		begin = m[1]
	}
	out := starlark.String(b.String() + s[begin:])
	if c.name == "subn" {
		return starlark.Tuple{out, starlark.MakeInt(len(all))}, c.run.spend(len(s))
	}
	return out, c.run.spend(len(s))
}

// replacement is what a match is replaced by: a text with references to groups, or what a function returns.
func (c *call) replacement(p *pattern, s string, m []int) (string, error) {
	if form, ok := c.args[0].(starlark.String); ok {
		return c.expandGroups(p, string(form), s, m)
	}
	v, err := c.invoke(c.args[0], newMatch(p, s, m))
	if err != nil {
		return "", err
	}
	text, ok := v.(starlark.String)
	if !ok {
		return "", raise("TypeError", "expected str instance, %s found", typeName(v))
	}
	return string(text), c.run.spend(len(text))
}

var groupReference = regexp.MustCompile(`(?s)\\([1-9][0-9]?|g<[^>]*>|.|$)`)

// expandGroups replaces \1 and \g<name> in a replacement.
func (c *call) expandGroups(p *pattern, form, s string, m []int) (string, error) {
	if err := c.run.spend(len(form)); err != nil {
		return "", err
	}
	var b strings.Builder
	begin := 0
	for _, at := range groupReference.FindAllStringIndex(form, -1) {
		text, err := groupText(p, form, at, s, m)
		if err != nil {
			return "", err
		}
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

// groupText is what the reference at a place in a replacement stands for.
func groupText(p *pattern, form string, at []int, s string, m []int) (string, error) {
	reference := form[at[0]:at[1]]
	position := utf8.RuneCountInString(form[:at[0]])
	what := reference[1:]
	if at := strings.Index("abfnrtv\\", what); what != "" && at >= 0 {
		return "\a\b\f\n\r\t\v\\"[at : at+1], nil
	}
	name, named := strings.CutPrefix(what, "g<")
	if !named && (what == "" || what[0] < '1' || what[0] > '9') {
		if what == "" || what[0] == '0' || what[0] >= 'a' && what[0] <= 'z' || what[0] >= 'A' && what[0] <= 'Z' {
			return "", raise("re.error", "bad escape %s at position %d", reference, position)
		}
		return reference, nil // Python keeps a backslash before what is no letter
	}

	name = strings.TrimSuffix(name, ">")
	i, err := strconv.Atoi(name)
	if err != nil {
		if i = p.SubexpIndex(name); i < 0 {
			return "", raise("IndexError", "unknown group name %s", quote(name))
		}
	}
	if i < 0 || 2*i+1 >= len(m) {
		return "", raise("re.error", "invalid group reference %d at position %d", i, position+1)
	}
	if m[2*i] < 0 {
		return "", nil
	}
	return s[m[2*i]:m[2*i+1]], nil
}
