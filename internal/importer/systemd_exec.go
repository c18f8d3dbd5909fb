package importer

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// execCommand is one command of ExecStart and the like.
type execCommand struct {
	e       entry
	words   []string // with variables
	raw     bool     // variables are not replaced
	ignores bool     // its failure does not matter
}

var (
	isWholeVariable = regexp.MustCompile(`^\$([A-Za-z_][A-Za-z0-9_]*)$`)
	isVariable      = regexp.MustCompile(`\$\$|\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)
)

// execs reads the commands of a key.
func (s *service) execs(key string) (all []execCommand) {
	for _, e := range s.unit.list("Service", key) {
		// Read the prefixes.
		c := execCommand{e: e}
		text, renamed := e.value, false
		for text != "" && strings.ContainsRune("-@+!:|", rune(text[0])) {
			switch text[0] {
			case '-':
				c.ignores = true
			case '@':
				renamed = true
			case ':':
				c.raw = true
			case '+', '!':
				if s.user != "root" {
					s.d.note(LeftOut, e, "the command runs with the rights of root, and the others as "+s.user,
						"do it in another way, such as by tmpfiles.d, and remove the command by a drop-in")
				}
			}
			text = text[1:]
		}

		// Read the words.
		words, err := unitWords(text)
		if err != nil {
			s.d.note(LeftOut, e, "the command "+err.Error(), "")
			continue
		}
		for i := range words {
			if words[i], err = s.specifiers(words[i]); err != nil {
				s.d.note(LeftOut, e, err.Error(), "write the value out in a drop-in")
			}
		}
		if renamed && len(words) > 1 {
			s.d.note(Harmless, e, "the program gets its path as its first argument, not "+words[1], "")
			words = slices.Delete(words, 1, 2)
		}
		for len(words) > 0 {
			end := slices.Index(words, ";")
			if end < 0 {
				end = len(words)
			}
			one := c
			if one.words = words[:end]; end > 0 {
				all = append(all, one)
			}
			words = words[min(end+1, len(words)):]
		}
	}
	return all
}

// plain are the words, if none has a variable.
func (c *execCommand) plain() ([]string, bool) {
	words := slices.Clone(c.words)
	for i, w := range words {
		if c.raw {
			continue
		}
		if isWholeVariable.MatchString(w) {
			return nil, false
		}
		for _, m := range isVariable.FindAllString(w, -1) {
			if m != "$$" {
				return nil, false
			}
		}
		words[i] = strings.ReplaceAll(w, "$$", "$")
	}
	return words, true
}

// line is the command for a shell.
func (s *service) line(c *execCommand) string {
	list := make([]string, len(c.words))
	for i, w := range c.words {
		switch m := isWholeVariable.FindStringSubmatch(w); {
		case c.raw:
			list[i] = shellWord(w)
		case m != nil && m[1] == "MAINPID":
			list[i] = "$GOZZARD_PID"
		case m != nil:
			list[i] = "$" + m[1]
			s.setF = true
		default:
			list[i] = shellVariablesOf(w)
		}
	}
	return strings.Join(list, " ")
}

// shellVariablesOf writes a word with ${NAME} inside for a shell.
func shellVariablesOf(w string) string {
	found := isVariable.FindAllStringSubmatchIndex(w, -1)
	if found == nil {
		return shellWord(w)
	}
	var b strings.Builder
	at := 0
	literal := func(text string) {
		if text != "" {
			b.WriteString(shellWord(text))
		}
	}
	for _, m := range found {
		literal(w[at:m[0]])
		switch name := w[m[0]:m[1]]; name {
		case "$$":
			literal("$")
		case "${MAINPID}":
			b.WriteString(`"$GOZZARD_PID"`)
		default:
			b.WriteString(`"` + name + `"`)
		}
		at = m[1]
	}
	literal(w[at:])
	return b.String()
}

// commands gives the commands of the process.
func (s *service) commands() {
	s.kind = "simple"
	if e, ok := s.value("Service", "Type"); ok {
		s.kind = e.value
	}
	s.typeNotes()

	starts, pre, post := s.execs("ExecStart"), s.execs("ExecStartPre"), s.execs("ExecStartPost")
	if len(starts) == 0 {
		s.d.note(LeftOut, entry{key: "ExecStart"}, "there is no command: the unit has no process", "leave it with systemd")
		return
	}
	main := starts[len(starts)-1]
	s.mainCommand(slices.Concat(pre, starts[:len(starts)-1]), main, post)

	s.d.setLine("reload", s.together(s.execs("ExecReload")))
	s.d.setLine("stop", s.together(s.execs("ExecStop")))
	for _, key := range []string{"ExecStopPost", "ExecCondition"} {
		if list := s.execs(key); len(list) > 0 {
			s.d.note(LeftOut, list[0].e, "a definition has no such command", "do it inside of the program, or remove it by a drop-in if it is not needed")
		}
	}
	if e, ok := s.value("Service", "PIDFile"); ok {
		file := e.value
		if !path.IsAbs(file) {
			file = path.Join("/run", file)
		}
		if file = path.Clean(file); strings.HasPrefix(file, "/var/run/") {
			file = strings.TrimPrefix(file, "/var")
		}
		s.d.set("pid_file", file)
	}
}

func (d *draft) setLine(key, line string) {
	if line != "" {
		d.set(key, line)
	}
}

// together is one line for commands that run one after the other.
func (s *service) together(list []execCommand) string {
	lines := make([]string, len(list))
	for i := range list {
		lines[i] = s.line(&list[i])
		if list[i].ignores {
			lines[i] = "{ " + lines[i] + " || :; }"
		}
	}
	return strings.Join(lines, " && ")
}

// mainCommand gives the command that starts the process, after those that come before it.
func (s *service) mainCommand(before []execCommand, main execCommand, post []execCommand) {
	background := s.kind == "forking"
	if len(post) > 0 && !background && s.kind != "oneshot" {
		s.d.note(LeftOut, post[0].e, "a definition has no command that runs after the start", "do it inside of the program, or remove it by a drop-in if it is not needed")
	}
	name := runsAs(main.words)
	if background && (strings.HasSuffix(name, "ctl") || strings.HasSuffix(name, "ctlcluster") || strings.HasSuffix(name, "sh") ||
		s.w.Script != nil && s.w.Script(main.words[0])) || strings.Contains(name, "$") {
		s.d.note(LeftOut, main.e, "the command starts another program, whose name is not in the unit",
			"use the program itself as ExecStart, or write the definition by hand with proc_name")
	}
	if main.ignores {
		s.d.note(Harmless, main.e, "the prefix - has no meaning: a failure of the process is shown", "")
	}

	// A program without a shell.
	words, plain := main.plain()
	if plain && len(before)+len(post) == 0 && !background {
		s.d.program(main.e, words)
		return
	}

	// A line for the shell.
	line := s.line(&main)
	if !background && s.kind != "oneshot" {
		line = "exec " + line
	}
	if len(before) > 0 {
		line = s.together(before) + " && " + line
	}
	if len(post) > 0 {
		line += " && " + s.together(post)
	}
	if s.setF {
		line = "set -f; " + line
	}
	s.d.set("command", line)
	if name == "" {
		s.d.note(LeftOut, main.e, "the name of the program cannot be read from the command", "write the definition by hand, with proc_name")
		return
	}
	s.d.set("proc_name", name)
	s.d.path, s.d.from = main.words[0], main.e
}

// typeNotes reports what is special about the type of the service.
func (s *service) typeNotes() {
	e, _ := s.unit.last("Service", "Type")
	switch s.kind {
	case "simple", "exec", "idle":
	case "forking":
		if _, ok := s.unit.last("Service", "PIDFile"); !ok {
			s.d.note(Check, e, "the unit names no pid file, so Gozzard finds the process by the command that started it",
				"make the program stay in the foreground, or give pid_file")
		}
	case "notify", "notify-reload":
		s.d.note(Harmless, e, "the process does not report that it is ready: a start succeeds if it is up after start_check", "give a health check")
		if s.kind == "notify-reload" {
			s.d.set("reload", "kill -HUP $GOZZARD_PID")
		}
	case "dbus":
		s.d.note(Check, e, "a start does not wait for the name on D-Bus, and a call does not start the process", "")
	case "oneshot":
		if s.unit.is("Service", "RemainAfterExit") {
			s.d.note(LeftOut, e, "the unit stays active without a process, and Gozzard has processes only", "leave it with systemd")
		}
	default:
		s.d.note(LeftOut, e, "this type is not known", "")
	}
}
