package importer

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

var (
	isProcfileLine = regexp.MustCompile(`^([A-Za-z0-9_-]+):\s*(\S.*)$`)
	isAssignment   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)
)

// The ports that foreman gives: the first one, and the distance between two lines.
const (
	firstPort    = 5000
	portDistance = 100
)

// Procfile imports the lines of a Procfile. The variables of the file .env beside it count, too.
func Procfile(files []File, w World) (*Result, error) {
	res := &Result{}
	for _, f := range files {
		if !utf8.Valid(f.Text) || bytes.ContainsRune(f.Text, 0) {
			return nil, fault(f.Name, 0, "this is not a text in UTF-8")
		}
		if err := procfile(res, f, &w); err != nil {
			return nil, err
		}
	}
	return res, nil
}

func procfile(res *Result, f File, w *World) error {
	folder := path.Dir(f.Name)
	port, envFile := firstPort, path.Join(folder, ".env")
	text, err := w.read(envFile)
	if err != nil {
		envFile = ""
	}
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "PORT="); ok {
			if n, err := strconv.Atoi(strings.Trim(v, `"'`)); err == nil && n > 0 && n < 65536 {
				port = n
			}
		}
	}

	number := 0
	for line := range strings.Lines(string(f.Text)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		m := isProcfileLine.FindStringSubmatch(line)
		if m == nil {
			return fault(f.Name, number, "this is no comment and no NAME: COMMAND: %q", clip(line))
		}

		d := newDraft(res, f.Name, number, m[1])
		d.proc.Comment = m[1] + " of " + f.Name
		e := entry{f.Name, number, m[1], m[2]}
		if m[1] == "release" {
			d.note(LeftOut, e, "it runs once for each release, not all the time", "run it when you deploy: gozzard run")
			continue
		}
		d.set("folder", path.Clean(folder))
		if envFile != "" {
			d.set("env_file", envFile)
		}
		d.env["PORT"] = strconv.Itoa(port)
		port += portDistance
		procfileCommand(d, e)
		procfileUser(d, w)
		d.finish(w)
	}
	return nil
}

func procfileUser(d *draft, w *World) {
	if w.User != "" {
		d.account(entry{key: "--user", value: w.User}, w.User)
		return
	}
	d.note(Check, entry{key: "user"}, "a Procfile names no account",
		"import with --user NAME, or add user: NAME; without it the host decides (default_user of its policy)")
}

// procfileCommand gives the command. A line that is one program becomes that program. Another one needs a shell around it.
func procfileCommand(d *draft, e entry) {
	words, err := posixWords(e.value)
	simple := err == nil && !strings.ContainsAny(e.value, ";&|<>()`\n*?[]~#{}")
	first := slices.IndexFunc(words, func(w string) bool { return !isAssignment.MatchString(w) })
	if simple && first >= 0 && !strings.Contains(words[first], "$") {
		name := runsAs(words[first:])
		switch {
		case words[first] == "exec":
			d.set("command", e.value)
		case first == 0:
			d.set("command", "exec "+e.value)
		case strings.Contains(e.value, "$"): // quotes matter, so the line stays as it is
			name = ""
		default:
			d.set("command", strings.Join(assignments(words[:first]), " ")+" exec "+shellLine(words[first:]))
		}
		if name != "" && name != "cd" {
			d.set("proc_name", name)
			return
		}
	}
	d.set("command", "exec sh -c "+shellWord(e.value))
	d.set("proc_name", "sh")
	d.note(Harmless, e, "the line needs a shell, so the shell is the process; a stop ends it and what it started",
		"begin the last command of the line with exec, if the program must get the signal itself")
}

// assignments writes variables before a command so that the shell reads them.
func assignments(words []string) []string {
	list := make([]string, len(words))
	for i, w := range words {
		name, value, _ := strings.Cut(w, "=")
		list[i] = name + "=" + shellWord(value)
	}
	return list
}
