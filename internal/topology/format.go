package topology

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
)

// Format writes a business as a YAML document. Parse reads the same business from it. Format rejects a business with
// faults, which Parse would reject.
func Format(b *Business) ([]byte, error) {
	if faults := b.Check(); len(faults) > 0 {
		return nil, &gozzard.Error{Kind: gozzard.ErrInvalid, Message: "cannot write business " + strconv.Itoa(b.ID),
			Faults: faults}
	}

	w := &writer{}
	w.number("biz", b.ID)
	w.text("name", b.Name)

	w.list("clouds", len(b.Clouds), func(i int) {
		w.number("id", b.Clouds[i].ID)
		w.text("name", b.Clouds[i].Name)
	})

	w.list("sets", len(b.Sets), func(i int) { w.set(&b.Sets[i]) })
	w.list("config_templates", len(b.Templates), func(i int) { w.template(&b.Templates[i]) })
	return w.Bytes(), nil
}

// writer writes YAML in block style, one value on a line, so that a line diff shows the difference between two
// documents.
type writer struct {
	bytes.Buffer
	indent int
	item   bool // the next line begins an item of a list
}

// key writes the start of a line: the indentation, the dash of a list item and the key.
func (w *writer) key(key string) {
	for range w.indent - 1 {
		w.WriteString("  ")
	}

	if w.indent > 0 {
		if w.item {
			w.WriteString("- ")
		} else {
			w.WriteString("  ")
		}
	}

	w.item = false
	w.WriteString(key)
	w.WriteByte(':')
}

func (w *writer) number(key string, n int) {
	w.key(key)
	w.WriteByte(' ')
	w.WriteString(strconv.Itoa(n))
	w.WriteByte('\n')
}

// text writes a text, unless it is empty.
func (w *writer) text(key, s string) {
	if s == "" {
		return
	}
	w.key(key)
	w.WriteByte(' ')
	w.scalar(s)
	w.WriteByte('\n')
}

func (w *writer) list(key string, n int, item func(i int)) {
	if n == 0 {
		return
	}
	w.key(key)
	w.WriteByte('\n')
	w.indent++
	for i := range n {
		w.item = true
		item(i)
	}
	w.indent--
}

func (w *writer) set(s *Set) {
	w.number("id", s.ID)
	w.text("name", s.Name)
	w.number("env", int(s.Env))
	w.extra(s.Attributes)
	w.list("modules", len(s.Modules), func(i int) { w.module(&s.Modules[i]) })
}

func (w *writer) module(m *Module) {
	w.number("id", m.ID)
	w.text("name", m.Name)
	if m.ServiceTemplate != 0 {
		w.number("service_template_id", m.ServiceTemplate)
	}
	w.extra(m.Attributes)
	w.list("instances", len(m.Instances), func(i int) {
		s := &m.Instances[i]
		w.number("id", s.ID)
		w.text("name", s.Name)
		w.host(s.Host, s.HostAttributes)
		w.list("processes", len(s.Processes), func(i int) { w.process(&s.Processes[i]) })
	})
}

func (w *writer) host(h Host, e Extra) {
	w.key("host")
	w.WriteString(" {cloud: ")
	w.WriteString(strconv.Itoa(h.Cloud))
	for _, part := range []struct{ key, text string }{
		{"ip", addrText(h.IP)}, {"ipv6", addrText(h.IPv6)}, {"agent_id", string(h.Agent)},
	} {
		if part.text != "" {
			w.WriteString(", " + part.key + ": ")
			w.scalar(part.text)
		}
	}
	if h.ID != 0 {
		const key = "id"
		w.WriteString(", " + key + ": " + strconv.Itoa(h.ID))
	}
	if e != "" {
		const key = "attributes"
		w.WriteString(", " + key + ": " + string(e))
	}
	w.WriteString("}\n")
}

func (w *writer) process(p *Process) {
	native := p.native()
	for _, a := range p.attributes() {
		switch {
		case a.key == "proc_num" && native[instancesKey] != nil:
		case a.text != nil:
			w.text(a.key, *a.text)
		case *a.number != 0:
			w.number(a.key, *a.number)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(native)) { // JSON is YAML
		w.key(key)
		w.WriteByte(' ')
		w.Write(native[key])
		w.WriteByte('\n')
	}
}

func (w *writer) template(t *ConfigTemplate) {
	w.number("id", t.ID)
	w.text("name", t.Name)
	w.text("file_name", t.FileName)
	w.text("abs_path", t.Path)
	w.text("owner", t.Owner)
	w.text("group", t.Group)
	w.text("mode", t.Mode)

	if len(t.Templates)+len(t.Processes) == 0 {
		return
	}

	w.key("bind")
	between := " {"
	for _, list := range []struct {
		key string
		ids []int
	}{{"templates", t.Templates}, {"processes", t.Processes}} {
		if len(list.ids) > 0 {
			w.WriteString(between + list.key + ": ")
			w.ids(list.ids)
			between = ", "
		}
	}

	w.WriteString("}\n")
}

func (w *writer) ids(list []int) {
	w.WriteByte('[')
	for i, id := range list {
		if i > 0 {
			w.WriteString(", ")
		}
		w.WriteString(strconv.Itoa(id))
	}
	w.WriteByte(']')
}

// scalar writes a text. It leaves out the quotes only where every YAML reader reads the same text without them.
func (w *writer) scalar(s string) {
	if needsNoQuotes(s) {
		w.WriteString(s)
		return
	}

	const hex = "0123456789abcdef"
	w.WriteByte('"')

	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			w.WriteByte('\\')
			w.WriteRune(r)
		case r == '\n':
			w.WriteString(`\n`)
		case r == '\t':
			w.WriteString(`\t`)
		case r == '\ufeff' || !gozzard.IsPlainLine(string(r)): // all of these have at most 16 bits
			w.WriteString(`\u`)
			for shift := 12; shift >= 0; shift -= 4 {
				w.WriteByte(hex[r>>shift&0xf])
			}
		default:
			w.WriteRune(r)
		}
	}

	w.WriteByte('"')
}

// needsNoQuotes reports whether every YAML reader reads a text without quotes as the same text: it begins like a word
// or a path, has only characters without a meaning in YAML, and is not a word with a meaning.
func needsNoQuotes(s string) bool {
	if s == "" || s[len(s)-1] == ' ' {
		return false
	}

	letters := false
	for i, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r == '_', r >= 0x4e00 && r <= 0x9fff:
			letters = true
		case r >= '0' && r <= '9':
		case r == '/', r == '.', r == '$' && i > 0:
		case i > 0 && (r == '-' || r == ' ' || r == '@' || r == '+'):
		default:
			return false
		}
	}

	if number := strings.TrimPrefix(s, "."); !letters || number[0] >= '0' && number[0] <= '9' {
		return beginsLikeIPv4(s)
	}

	switch strings.ToLower(s) {
	case "null", "true", "false", "yes", "no", "on", "off", "y", "n", ".inf", ".nan":
		return false
	}

	return true
}

// beginsLikeIPv4 recognizes texts that begin like an IPv4 address: no reader takes those for a number.
func beginsLikeIPv4(s string) bool {
	dots := 0
	for i := 0; i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] == '.'); i++ {
		if s[i] == '.' {
			dots++
		}
	}
	return dots >= 3
}
