package mako

import (
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxNesting limits how deep brackets, blocks and expressions may be inside of each other.
const maxNesting = 100

// literal is a number of Python as Starlark writes it.
func literal(text string) (string, bool) {
	if strings.HasPrefix(text, "_") || strings.HasSuffix(text, "_") || strings.Contains(text, "__") {
		return "", false
	}
	text = strings.ReplaceAll(text, "_", "")

	if len(text) > 1 && text[0] == '0' && strings.IndexByte("xXoObB", text[1]) >= 0 ||
		strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' }) < 0 {
		if len(text) > 4300 {
			return "", false
		}
		if len(text) > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9' { // 00 is 0, 01 is a fault
			return "0", strings.Trim(text, "0") == ""
		}
		i, ok := new(big.Int).SetString(text, 0)
		if !ok {
			return "", false
		}
		return i.String(), true
	}

	if strings.ContainsAny(text, "xXpP") {
		return "", false
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && !strings.Contains(err.Error(), "range") {
		return "", false
	}
	out := strconv.FormatFloat(f, 'e', -1, 64)
	if strings.Contains(out, "Inf") {
		return "1e999", false
	}
	return out, true
}

// unescape gives the value of the content of a string, or false if an escape is wrong.
func unescape(text, prefix string) (string, bool) {
	if strings.Contains(prefix, "r") || !strings.Contains(text, `\`) {
		return text, true
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		i++
		if simple := strings.IndexByte("\\'\"abfnrtv", text[i]); simple >= 0 {
			b.WriteByte("\\'\"\a\b\f\n\r\t\v"[simple])
			continue
		}

		switch c := text[i]; {
		case c == '\n':
		case c >= '0' && c <= '7':
			n := i
			for n < len(text) && n < i+3 && text[n] >= '0' && text[n] <= '7' {
				n++
			}
			v, _ := strconv.ParseUint(text[i:n], 8, 32)
			b.WriteRune(rune(v))
			i = n - 1
		case c == 'x' || c == 'u' || c == 'U':
			n := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
			if i+1+n > len(text) {
				return "", false
			}
			v, err := strconv.ParseUint(text[i+1:i+1+n], 16, 32)
			if err != nil || v > utf8.MaxRune {
				return "", false
			}
			b.WriteRune(rune(v))
			i += n
		default: // Python keeps what it does not know
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	return b.String(), true
}
