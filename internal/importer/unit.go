package importer

import (
	"bytes"
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// unit is a unit of systemd with its drop-ins.
type unit struct {
	name     string // such as web@1.service
	file     string
	dropIns  []string
	sections map[string][]entry
}

// prefix is the name before the instance and the type.
func (u *unit) prefix() string {
	p, _, _ := strings.Cut(u.plain(), "@")
	return p
}

// instance is the part of the name between @ and the type.
func (u *unit) instance() string {
	_, i, _ := strings.Cut(u.plain(), "@")
	return i
}

// plain is the name without its type.
func (u *unit) plain() string { return strings.TrimSuffix(u.name, path.Ext(u.name)) }

// last is the value of a key that has one. An empty value takes back those before it.
func (u *unit) last(section, key string) (entry, bool) {
	list := u.sections[section]
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].key == key {
			return list[i], list[i].value != ""
		}
	}
	return entry{key: key, file: u.file}, false
}

// list are the values of a key that may have several. An empty value takes back those before it.
func (u *unit) list(section, key string) (all []entry) {
	for _, e := range u.sections[section] {
		switch {
		case e.key != key:
		case e.value == "":
			all = nil
		default:
			all = append(all, e)
		}
	}
	return all
}

func (u *unit) is(section, key string) bool {
	e, _ := u.last(section, key)
	return slices.Contains([]string{"1", "yes", "true", "on", "y", "t"}, strings.ToLower(e.value))
}

// systemFolders are the folders of system units, those that count more first.
var systemFolders = []string{"/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system",
	"/lib/systemd/system"}

// SystemFolders lists the folders in which units are found by their name.
func SystemFolders() []string { return slices.Clone(systemFolders) }

// loadUnit reads a unit and its drop-ins.
func loadUnit(f File, w *World) (*unit, error) {
	u := &unit{name: path.Base(f.Name), file: f.Name, sections: map[string][]entry{}}
	if err := u.add(f); err != nil {
		return nil, err
	}

	folders := []string{path.Dir(f.Name)}
	if slices.Contains(systemFolders, folders[0]) {
		folders = systemFolders
	}
	kind := path.Ext(u.name)
	names := []string{u.name + ".d"}
	if u.instance() != "" {
		names = append([]string{u.prefix() + "@" + kind + ".d"}, names...)
	}
	if len(folders) > 1 {
		names = append([]string{kind[1:] + ".d"}, names...)
	}
	byName := map[string]string{}
	for _, folder := range folders {
		for _, name := range names {
			for _, found := range w.glob(path.Join(folder, globQuote(name), "*.conf")) {
				if base := path.Base(found); byName[base] == "" {
					byName[base] = found
				}
			}
		}
	}
	u.dropIns = slices.SortedFunc(maps.Values(byName), func(a, b string) int { return cmp.Compare(path.Base(a), path.Base(b)) })
	for _, name := range u.dropIns {
		text, err := w.read(name)
		if err != nil {
			return nil, fault(name, 0, "cannot read the drop-in: %v", err)
		}
		if err := u.add(File{Name: name, Text: text}); err != nil {
			return nil, err
		}
	}
	return u, nil
}

// globQuote writes a name so that a pattern means exactly it.
func globQuote(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(s)
}

// add reads a file into the unit.
func (u *unit) add(f File) error {
	if !utf8.Valid(f.Text) || bytes.ContainsRune(f.Text, 0) {
		return fault(f.Name, 0, "this is not a text in UTF-8")
	}
	section, number := "", 0
	var pending *entry // a value that goes on in the next line
	for raw := range strings.Lines(strings.TrimPrefix(string(f.Text), "\ufeff")) {
		number++
		line := strings.TrimSpace(raw)
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";") || line == "" && pending == nil {
			continue
		}
		more := strings.HasSuffix(line, `\`)
		line = strings.TrimSpace(strings.TrimSuffix(line, `\`))

		switch {
		case pending != nil:
			pending.value = strings.TrimSpace(pending.value + " " + line)
		case strings.HasPrefix(line, "["):
			if !strings.HasSuffix(line, "]") {
				return fault(f.Name, number, "the name of a section ends with ]: %q", clip(line))
			}
			section = line[1 : len(line)-1]
			continue
		case section == "":
			return fault(f.Name, number, "there is no [section] above this line: %q", clip(line))
		default:
			key, value, ok := strings.Cut(line, "=")
			if key = strings.TrimSpace(key); !ok || key == "" {
				return fault(f.Name, number, "this is no section, no comment and no KEY=VALUE: %q", clip(line))
			}
			pending = &entry{file: f.Name, line: number, key: key, value: strings.TrimSpace(value)}
		}
		if !more {
			u.sections[section] = append(u.sections[section], *pending)
			pending = nil
		}
	}
	if pending != nil {
		u.sections[section] = append(u.sections[section], *pending)
	}
	return nil
}
