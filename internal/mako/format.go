package mako

import (
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.starlark.net/starlark"
)

// spec is what stands after the colon in a format.
type spec struct {
	fill             string
	align            byte // < > ^ = or 0
	sign             byte // + - blank or 0
	alternate, zero  bool
	width, precision int // precision -1: none
	grouping         string
	kind             byte // or 0
	of               string
}

var specForm = regexp.MustCompile(`(?s)^(?:(.)?([<>=^]))?([-+ ])?(#)?(0)?(\d+)?([,_])?(?:\.(\d+))?(.)?$`)

// maxWidth limits the width and precision of a format.
const maxWidth = 1 << 20

// parseSpec reads the format of a value whose type has a name.
func parseSpec(text, of string) (spec, error) {
	s := spec{fill: " ", precision: -1, of: of}
	m := specForm.FindStringSubmatch(text)
	if m == nil {
		return s, raise("ValueError", "Invalid format specifier '%s' for object of type '%s'", text, of)
	}
	if len(m[9]) > 1 {
		r, _ := utf8.DecodeRuneInString(m[9])
		return s, raise("ValueError", "Unknown format code '\\x%x' for object of type '%s'", r, of)
	}
	first := func(text string) byte {
		if text == "" {
			return 0
		}
		return text[0]
	}
	s.align, s.sign, s.kind = first(m[2]), first(m[3]), first(m[9])
	s.alternate, s.zero, s.grouping = m[4] != "", m[5] != "", m[7]
	if m[1] != "" {
		s.fill = m[1]
	}
	if s.zero && s.align == 0 {
		s.fill, s.align = "0", '='
	}

	for _, n := range []struct {
		text string
		to   *int
	}{{m[6], &s.width}, {m[8], &s.precision}} {
		if n.text == "" {
			continue
		}
		v, err := strconv.Atoi(n.text)
		if err != nil || v > maxWidth {
			return s, &limitError{"a width in a format of the template is too large"}
		}
		*n.to = v
	}
	return s, nil
}

// format is format(value, text).
func format(v Value, text string) (string, error) {
	if o, ok := v.(*object); ok && o.data != nil && text != "" {
		if formatted, ok := formatDate(o, text); ok {
			return formatted, nil
		}
	}
	if text == "" {
		return str(v), nil
	}
	switch v.(type) {
	case starlark.String, starlark.Bool, starlark.Int, starlark.Float:
	default:
		return "", raise("TypeError", "unsupported format string passed to %s.__format__", typeName(v))
	}
	s, err := parseSpec(text, typeName(v))
	if err != nil {
		return "", err
	}

	if b, ok := v.(starlark.Bool); ok {
		v, _ = asNumber(b)
	}
	switch x := v.(type) {
	case starlark.String:
		return s.text(string(x))
	case starlark.Int:
		if s.kind != 0 && strings.IndexByte("eEfFgG%", s.kind) >= 0 {
			f, err := asFloat(x)
			if err != nil {
				return "", err
			}
			return s.float(f)
		}
		return s.integer(x)
	}
	f, err := asFloat(v)
	if err != nil {
		return "", err
	}
	return s.float(f)
}

func (s spec) text(v string) (string, error) {
	if s.kind != 0 && s.kind != 's' {
		return "", raise("ValueError", "Unknown format code '%c' for object of type 'str'", s.kind)
	}
	if s.grouping != "" {
		return "", raise("ValueError", "Cannot specify '%s' with 's'.", s.grouping)
	}
	if s.align == '=' && !s.zero {
		return "", raise("ValueError", "'=' alignment not allowed in string format specifier")
	}
	if s.align == '=' {
		s.align = '<'
	}
	if s.precision >= 0 {
		v = firstRunes(v, s.precision)
	}
	if s.align == 0 {
		s.align = '<'
	}
	return s.pad("", v), nil
}

func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// pad fills a text up to the width; sign comes before the filling of '='.
func (s spec) pad(sign, digits string) string {
	n := s.width - utf8.RuneCountInString(sign) - utf8.RuneCountInString(digits)
	if n <= 0 {
		return sign + digits
	}
	switch s.align {
	case '<':
		return sign + digits + strings.Repeat(s.fill, n)
	case '^':
		return strings.Repeat(s.fill, n/2) + sign + digits + strings.Repeat(s.fill, n-n/2)
	case '=':
		return sign + strings.Repeat(s.fill, n) + digits
	}
	return strings.Repeat(s.fill, n) + sign + digits
}

func (s spec) signOf(negative bool) string {
	switch {
	case negative:
		return "-"
	case s.sign == '+' || s.sign == ' ':
		return string(s.sign)
	}
	return ""
}

func (s spec) integer(i starlark.Int) (string, error) {
	n := new(big.Int).Abs(i.BigInt())
	bases := map[byte]int{0: 10, 'd': 10, 'n': 10, 'x': 16, 'X': 16, 'o': 8, 'b': 2}
	if s.kind == 'c' {
		code, ok := i.Int64()
		if !ok {
			return "", raise("OverflowError", "Python int too large to convert to C long")
		}
		if code < 0 || code > utf8.MaxRune {
			return "", raise("OverflowError", "%%c arg not in range(0x110000)")
		}
		return s.pad("", string(rune(code))), nil
	}
	base, ok := bases[s.kind]
	if !ok {
		return "", raise("ValueError", "Unknown format code '%c' for object of type '%s'", s.kind, s.of)
	}
	if s.precision >= 0 {
		return "", raise("ValueError", "Precision not allowed in integer format specifier")
	}

	digits := n.Text(base)
	if s.kind == 'X' {
		digits = strings.ToUpper(digits)
	}
	sign := s.signOf(i.Sign() < 0)
	if s.alternate && base != 10 {
		sign += "0" + string(s.kind)
	}
	step := 3
	if base != 10 {
		step = 4
	}
	return s.grouped(sign, digits, "", step), nil
}

// grouped pads digits with separators in groups; zeros that fill are in groups too.
func (s spec) grouped(sign, digits, fraction string, step int) string {
	if s.grouping != "" {
		if s.fill == "0" && s.align == '=' {
			for groupedLength(len(digits), step)+len(sign)+len(fraction) < s.width {
				digits = "0" + digits
			}
		}
		digits = group(digits, s.grouping, step)
	}
	return s.pad(sign, digits+fraction)
}

func groupedLength(n, step int) int { return n + (n-1)/step }

func group(digits, separator string, step int) string {
	var b strings.Builder
	for i := range len(digits) {
		if i > 0 && (len(digits)-i)%step == 0 {
			b.WriteString(separator)
		}
		b.WriteByte(digits[i])
	}
	return b.String()
}

func (s spec) float(f float64) (string, error) {
	text, err := floatFormat(f, s.kind, s.precision, s.alternate)
	if err != nil {
		return "", err
	}
	if s.alternate && !math.IsInf(f, 0) && !math.IsNaN(f) {
		text = withPoint(text)
	}
	negative := strings.HasPrefix(text, "-")
	text = strings.TrimPrefix(text, "-")
	whole, fraction := text, ""
	if i := strings.IndexAny(text, ".e%E"); i >= 0 && !strings.Contains(text, "inf") {
		whole, fraction = text[:i], text[i:]
	}
	if s.align == 0 {
		s.align = '>'
	}
	return s.grouped(s.signOf(negative), whole, fraction, 3), nil
}

// withPoint gives a number a point after its digits if it has none: the flag # asks for it.
func withPoint(text string) string {
	if strings.Contains(text, ".") {
		return text
	}
	end := strings.IndexAny(text, "eE%")
	if end < 0 {
		end = len(text)
	}
	return text[:end] + "." + text[end:]
}

// floatFormat is a float by a format code and a precision.
func floatFormat(f float64, kind byte, precision int, alternate bool) (string, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		text := floatText(f)
		if kind >= 'A' && kind <= 'Z' {
			text = strings.ToUpper(text)
		}
		if kind == '%' {
			text += "%"
		}
		return text, nil
	}

	digits := precision
	if digits < 0 {
		digits = 6
	}
	switch kind {
	case 0:
		if precision < 0 {
			return floatText(f), nil
		}
		text := general(f, max(precision, 1), alternate, 1)
		if !strings.ContainsAny(text, ".e") {
			text += ".0"
		}
		return text, nil
	case 'f', 'F':
		return strconv.FormatFloat(f, 'f', digits, 64), nil
	case 'e', 'E':
		return strconv.FormatFloat(f, kind, digits, 64), nil
	case 'g', 'n':
		return general(f, max(digits, 1), alternate, 0), nil
	case 'G':
		return strings.ToUpper(general(f, max(digits, 1), alternate, 0)), nil
	case '%':
		return strconv.FormatFloat(f*100, 'f', digits, 64) + "%", nil
	}
	return "", raise("ValueError", "Unknown format code '%c' for object of type 'float'", kind)
}

// general is the format g. With less, the exponent form begins one digit earlier.
func general(f float64, precision int, keepZeros bool, less int) string {
	text := strconv.FormatFloat(f, 'e', precision-1, 64)
	mantissa, after, _ := strings.Cut(text, "e")
	exponent, _ := strconv.Atoi(after)
	if exponent < -4 || exponent >= precision-less {
		if !keepZeros && strings.Contains(mantissa, ".") {
			mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
		}
		return mantissa + "e" + after
	}
	text = strconv.FormatFloat(f, 'f', max(precision-1-exponent, 0), 64)
	if !keepZeros && strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// convert applies !r, !s or !a before a format.
func convert(v Value, conversion string) (Value, error) {
	switch conversion {
	case "":
		return v, nil
	case "s":
		return starlark.String(str(v)), nil
	case "r":
		return starlark.String(repr(v)), nil
	case "a":
		return starlark.String(ascii(repr(v))), nil
	}
	return nil, raise("ValueError", "Unknown conversion specifier '%s'", conversion)
}

// ascii escapes what is not ASCII.
func ascii(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r < 0x80:
			b.WriteRune(r)
		case r <= 0xff:
			b.WriteString(`\x` + hex(r, 2))
		case r <= 0xffff:
			b.WriteString(`\u` + hex(r, 4))
		default:
			b.WriteString(`\U` + hex(r, 8))
		}
	}
	return b.String()
}
