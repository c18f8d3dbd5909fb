package importer

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// section is a part of an INI file.
type section struct {
	name string
	file string
	line int
	keys []entry
}

// get is the last entry of a key.
func (s *section) get(key string) (entry, bool) {
	for i := len(s.keys) - 1; i >= 0; i-- {
		if s.keys[i].key == key {
			return s.keys[i], true
		}
	}
	return entry{}, false
}

// readINI reads the INI form that supervisord reads: keys in any case, values that continue in indented lines, comments that
// begin a line or follow a blank.
func readINI(f File) ([]*section, error) {
	if !utf8.Valid(f.Text) || bytes.ContainsRune(f.Text, 0) {
		return nil, fault(f.Name, 0, "this is not a text in UTF-8")
	}
	var all []*section
	var at *entry
	indent := 0
	number := 0
	for raw := range strings.Lines(strings.TrimPrefix(string(f.Text), "\ufeff")) {
		number++
		text := cutComment(strings.TrimRight(raw, "\r\n"))
		body := strings.TrimSpace(text)
		if body == "" {
			continue
		}

		// The value of the line above goes on.
		deep := len(text) - len(strings.TrimLeft(text, " \t"))
		if at != nil && deep > indent {
			at.value = strings.TrimPrefix(at.value+"\n"+body, "\n")
			continue
		}
		indent, at = deep, nil

		// A section begins.
		if strings.HasPrefix(body, "[") {
			name, _, ok := strings.Cut(body[1:], "]")
			if !ok || name == "" {
				return nil, fault(f.Name, number, "the name of a section ends with ]: %q", clip(body))
			}
			all = append(all, &section{name: name, file: f.Name, line: number})
			continue
		}

		// A key with its value.
		i := strings.IndexAny(body, "=:")
		switch {
		case len(all) == 0:
			return nil, fault(f.Name, number, "there is no [section] above this line: %q", clip(body))
		case i <= 0:
			return nil, fault(f.Name, number, "this is no section, no comment and no KEY=VALUE: %q", clip(body))
		}
		s := all[len(all)-1]
		s.keys = append(s.keys, entry{file: f.Name, line: number, key: strings.ToLower(strings.TrimSpace(body[:i])),
			value: strings.TrimSpace(body[i+1:])})
		at = &s.keys[len(s.keys)-1]
	}
	return all, nil
}

// cutComment removes a comment: a line that begins with # or ;, or the rest after a blank and one of them.
func cutComment(s string) string {
	for i := range len(s) {
		if s[i] != '#' && s[i] != ';' {
			continue
		}
		if i == 0 || s[i-1] == ' ' || s[i-1] == '\t' {
			return s[:i]
		}
	}
	return s
}

func clip(s string) string {
	if len(s) > 80 {
		return strings.ToValidUTF8(s[:80], "") + "…"
	}
	return s
}
