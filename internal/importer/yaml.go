package importer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/gozzard/gozzard/internal/specjson"
)

// WriteYAML writes definitions as a person would, one document each.
func WriteYAML(all []Process) []byte {
	var b bytes.Buffer
	for i := range all {
		if i > 0 {
			b.WriteString("---\n")
		}
		if c := oneLine(all[i].Comment); c != "" {
			fmt.Fprintf(&b, "# %s\n", c)
		}
		for _, f := range all[i].Document() {
			writeField(&b, f)
		}
	}
	return b.Bytes()
}

// wide is how long a line may become before an object is written over several lines.
const wide = 100

// writeField writes a key of the document.
func writeField(b *bytes.Buffer, f specjson.Field) {
	line := f.Key + ": " + flow(f.Value)
	if len(line) <= wide {
		b.WriteString(line + "\n")
		return
	}

	switch v := f.Value.(type) {
	case map[string]string:
		b.WriteString(f.Key + ":\n")
		for _, name := range slices.Sorted(maps.Keys(v)) {
			fmt.Fprintf(b, "  %s: %s\n", scalar(name), scalar(v[name]))
		}
	case []any:
		b.WriteString(f.Key + ":\n")
		for _, e := range v {
			fmt.Fprintf(b, "  - %s\n", flow(e))
		}
	default:
		b.WriteString(line + "\n")
	}
}

// flow writes a value in one line.
func flow(v any) string {
	switch v := v.(type) {
	case string:
		return scalar(v)
	case []string:
		list := make([]string, len(v))
		for i, s := range v {
			list[i] = scalar(s)
		}
		return "[" + strings.Join(list, ", ") + "]"
	case []any:
		list := make([]string, len(v))
		for i, s := range v {
			list[i] = flow(s)
		}
		return "[" + strings.Join(list, ", ") + "]"
	case map[string]string:
		var list []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			list = append(list, scalar(name)+": "+scalar(v[name]))
		}
		return "{" + strings.Join(list, ", ") + "}"
	case map[string]any:
		var list []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			list = append(list, scalar(name)+": "+flow(v[name]))
		}
		return "{" + strings.Join(list, ", ") + "}"
	case []specjson.Field:
		var list []string
		for _, f := range v {
			list = append(list, f.Key+": "+flow(f.Value))
		}
		return "{" + strings.Join(list, ", ") + "}"
	}
	return fmt.Sprint(v)
}

// plain is a text that every reader of YAML takes as this text, also inside of brackets.
var plain = regexp.MustCompile(`^(--?|\.{0,2}/)?[A-Za-z0-9_./@+=-]*[A-Za-z][A-Za-z0-9_./@+=-]*$`)

// odd are plain words that are no texts.
var odd = regexp.MustCompile(`(?i)^(true|false|null|yes|no|on|off|y|n)$`)

// number finds texts that some reader takes for a number, a time or a special word.
var number = regexp.MustCompile(`(?i)^[-+.]*([0-9]|inf|nan|=|-$|\.$)|^---`)

// durations and sizes are plain, too.
var measure = regexp.MustCompile(`^[1-9][0-9]{0,8}[smhKMGT]$|^[1-9][0-9]?%$`)

func scalar(s string) string {
	if plain.MatchString(s) && !number.MatchString(s) && !odd.MatchString(s) || measure.MatchString(s) {
		return s
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a text is always encoded
	return strings.TrimSuffix(b.String(), "\n")
}

func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == '\u2028' || r == '\u2029' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
}
