package strictjson

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Appender is data of an answer that writes its own JSON. For thousands of rows this is several times as fast as the
// reflection of encoding/json. It writes the same bytes as encoding/json without HTML escapes.
type Appender interface {
	AppendJSON(b []byte) []byte
}

// AppendString appends a JSON string. encoding/json writes the texts that need escapes.
func AppendString(b []byte, s string) []byte {
	begin := len(b)
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 || r == '\u2028' || r == '\u2029' {
				return appendAny(b[:begin], s)
			}
			i += n - 1
			continue
		case c < ' ' && c != '\n' && c != '\r' && c != '\t':
			return appendAny(b[:begin], s)
		case c == '"' || c == '\\':
			b = append(append(b, s[from:i]...), '\\', c)
		case c < ' ':
			b = append(append(b, s[from:i]...), '\\', shortEscape(c))
		default:
			continue
		}
		from = i + 1
	}

	return append(append(b, s[from:]...), '"')
}

// AppendFloat appends a finite number.
func AppendFloat(b []byte, x float64) []byte {
	if abs := math.Abs(x); abs != 0 && (abs < 1e-6 || abs >= 1e21) { // has an exponent
		return appendAny(b, x)
	}
	return strconv.AppendFloat(b, x, 'f', -1, 64)
}

// AppendStrings appends a JSON object of strings, sorted by name.
func AppendStrings(b []byte, m map[string]string) []byte {
	if m == nil {
		return append(b, "null"...)
	}

	var room [16]string
	names := room[:0]
	for name := range m {
		names = append(names, name)
	}

	slices.Sort(names)
	b = append(b, '{')
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendString(b, name)
		b = append(b, ':')
		b = AppendString(b, m[name])
	}

	return append(b, '}')
}

func appendAny(b []byte, v any) []byte {
	w := bytes.NewBuffer(b)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil { // strings and finite numbers only
		panic(err)
	}
	return bytes.TrimSuffix(w.Bytes(), []byte("\n"))
}

func shortEscape(c byte) byte {
	switch c {
	case '\n':
		return 'n'
	case '\r':
		return 'r'
	}
	return 't'
}
