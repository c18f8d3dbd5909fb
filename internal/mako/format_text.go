package mako

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"go.starlark.net/starlark"
)

// percent is format % values.
func (r *run) percent(text string, values Value) (Value, error) {
	p := &percents{run: r, values: starlark.Tuple{values}}
	if t, ok := values.(starlark.Tuple); ok {
		p.values, p.tuple = t, true
	}
	p.mapping, _ = values.(*starlark.Dict)
	_, p.list = values.(*starlark.List)

	var b strings.Builder
	for i := 0; i < len(text); {
		if text[i] != '%' {
			n := strings.IndexByte(text[i:], '%')
			if n < 0 {
				n = len(text) - i
			}
			b.WriteString(text[i : i+n])
			i += n
			continue
		}
		p.before = text[:i]
		one, n, err := p.field(text[i:])
		if err != nil {
			return nil, err
		}
		if err := r.spend(len(one)); err != nil {
			return nil, err
		}
		b.WriteString(one)
		i += n
	}

	if p.at < len(p.values) && (p.tuple || !hasKeys(values)) {
		return nil, raise("TypeError", "not all arguments converted during string formatting")
	}
	if err := r.spend(b.Len()); err != nil {
		return nil, err
	}
	return starlark.String(b.String()), nil
}

// percents has the values of a format with % and how many are used.
type percents struct {
	run     *run
	values  starlark.Tuple
	tuple   bool
	list    bool
	mapping *starlark.Dict
	at      int
	before  string // the text before the field
}

func (p *percents) next() (Value, error) {
	if p.at >= len(p.values) {
		return nil, raise("TypeError", "not enough arguments for format string")
	}
	p.at++
	return p.values[p.at-1], nil
}

// field formats one % field at the begin of a text, and says how long the field is.
func (p *percents) field(text string) (string, int, error) {
	i := 1
	var value Value
	if strings.HasPrefix(text[i:], "(") {
		end := strings.IndexByte(text, ')')
		if end < 0 {
			return "", 0, raise("ValueError", "incomplete format key")
		}
		if p.list {
			return "", 0, raise("TypeError", "list indices must be integers or slices, not str")
		}
		if p.mapping == nil {
			return "", 0, raise("TypeError", "format requires a mapping")
		}
		key := starlark.String(text[i+1 : end])
		v, found, _ := p.mapping.Get(key)
		if !found {
			return "", 0, keyError(key)
		}
		value = v
		i = end + 1
	}

	s := spec{fill: " ", precision: -1, align: '>'}
	for ; i < len(text) && strings.IndexByte("#0- +", text[i]) >= 0; i++ {
		s.mark(text[i])
	}
	var err error
	if i, err = p.size(text, i, &s.width); err != nil {
		return "", 0, err
	}
	if s.width < 0 {
		s.width, s.align = -s.width, '<'
	}
	if i < len(text) && text[i] == '.' {
		s.precision = 0
		if i, err = p.size(text, i+1, &s.precision); err != nil {
			return "", 0, err
		}
		s.precision = max(s.precision, 0)
	}
	for i < len(text) && strings.IndexByte("hlL", text[i]) >= 0 {
		i++
	}
	if i >= len(text) {
		return "", 0, raise("ValueError", "incomplete format")
	}

	s.kind = text[i]
	if s.kind == '%' && i == 1 {
		return "%", i + 1, nil
	}
	if value == nil {
		if value, err = p.next(); err != nil {
			return "", 0, err
		}
	}
	one, err := s.percent(value, text[i:], utf8.RuneCountInString(p.before)+utf8.RuneCountInString(text[:i]))
	_, size := utf8.DecodeRuneInString(text[i:])
	return one, i + size, err
}

// mark takes a flag of a % field.
func (s *spec) mark(flag byte) {
	switch flag {
	case '#':
		s.alternate = true
	case '0':
		s.zero = true
	case '-':
		s.align = '<'
	case '+':
		s.sign = '+'
	case ' ':
		if s.sign == 0 {
			s.sign = ' '
		}
	}
}

// size reads a width or a precision: digits, or * for the next value.
func (p *percents) size(text string, i int, to *int) (int, error) {
	if i < len(text) && text[i] == '*' {
		v, err := p.next()
		if err != nil {
			return i, err
		}
		n, err := asInt(v)
		if err != nil {
			return i, raise("TypeError", "* wants int")
		}
		if n > maxWidth || n < -maxWidth {
			return i, &limitError{"a width in a format of the template is too large"}
		}
		*to = n
		return i + 1, nil
	}
	begin := i
	for i < len(text) && text[i] >= '0' && text[i] <= '9' {
		i++
	}
	if i > begin {
		n, err := strconv.Atoi(text[begin:i])
		if err != nil || n > maxWidth {
			return i, &limitError{"a width in a format of the template is too large"}
		}
		*to = n
	}
	return i, nil
}

// percent formats a value by a % field.
func (s spec) percent(v Value, rest string, at int) (string, error) {
	switch s.kind {
	case 's', 'r', 'a':
		if _, unknown := v.(undefined); unknown && s.kind == 's' {
			return "", raise("NameError", "Undefined")
		}
		text := str(v)
		if s.kind != 's' {
			text = repr(v)
		}
		if s.kind == 'a' {
			text = ascii(text)
		}
		if _, plain := v.(starlark.String); !plain && len(text) > maxText {
			return "", tooLong()
		}
		if s.precision >= 0 {
			text = firstRunes(text, s.precision)
		}
		return s.pad("", text), nil
	case 'c':
		if t, ok := v.(starlark.String); ok && utf8.RuneCountInString(string(t)) == 1 {
			return s.pad("", string(t)), nil
		}
		n, _ := asNumber(v)
		i, ok := n.(starlark.Int)
		if !ok {
			return "", raise("TypeError", "%%c requires int or char")
		}
		if !fits(i) {
			return "", raise("OverflowError", "%%c arg not in range(0x110000)")
		}
		return s.integer(i)
	}

	if s.zero && s.align != '<' {
		s.fill, s.align = "0", '='
	}
	n, ok := asNumber(v)
	switch {
	case strings.IndexByte("diu", s.kind) >= 0:
		if !ok {
			return "", raise("TypeError", "%%%c format: a real number is required, not %s", s.kind, typeName(v))
		}
		if f, is := n.(starlark.Float); is {
			i, err := floatToInt(float64(f))
			if err != nil {
				return "", err
			}
			n = i
		}
		return s.percentInt(n.(starlark.Int), 10)
	case strings.IndexByte("xXo", s.kind) >= 0:
		i, is := n.(starlark.Int)
		if !is {
			return "", raise("TypeError", "%%%c format: an integer is required, not %s", s.kind, typeName(v))
		}
		return s.percentInt(i, map[byte]int{'x': 16, 'X': 16, 'o': 8}[s.kind])
	case strings.IndexByte("eEfFgG", s.kind) >= 0:
		if !ok {
			return "", raise("TypeError", "must be real number, not %s", typeName(v))
		}
		f, err := asFloat(n)
		if err != nil {
			return "", err
		}
		return s.float(f)
	}
	r, _ := utf8.DecodeRuneInString(rest)
	return "", raise("ValueError", "unsupported format character '%c' (0x%x) at index %d", r, r, at)
}

// percentInt formats an int with as many digits as the precision asks for.
func (s spec) percentInt(i starlark.Int, base int) (string, error) {
	digits := strings.TrimPrefix(i.BigInt().Text(base), "-")
	if s.kind == 'X' {
		digits = strings.ToUpper(digits)
	}
	if n := s.precision - len(digits); n > 0 {
		digits = strings.Repeat("0", n) + digits
	}
	sign := s.signOf(i.Sign() < 0)
	if s.alternate && base != 10 {
		sign += "0" + string(s.kind)
	}
	return s.pad(sign, digits), nil
}

// hasKeys reports whether Python takes a value for a mapping of fields: lists too.
func hasKeys(v Value) bool {
	switch v.(type) {
	case *starlark.Dict, *starlark.List, *attributes:
		return true
	}
	return false
}
