package importer

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Supervisord imports the programs of a configuration of supervisord, with the files that it includes.
func Supervisord(files []File, w World) (*Result, error) {
	s := &supervisord{w: &w, res: &Result{}, groups: map[string]string{}}
	for _, f := range files {
		if err := s.load(f, true); err != nil {
			return nil, err
		}
	}
	if err := s.readGroups(); err != nil {
		return nil, err
	}
	if err := s.common(); err != nil {
		return nil, err
	}

	for _, sec := range s.sections {
		kind, name, _ := strings.Cut(sec.name, ":")
		name = strings.TrimSpace(name)
		switch kind {
		case "program":
			if err := s.program(sec, name); err != nil {
				return nil, err
			}
		case "fcgi-program":
			s.leaveOut(sec, name, "a FastCGI program gets its socket from supervisord, and Gozzard opens none for a process",
				"use the process manager of the FastCGI server, such as php-fpm or spawn-fcgi, as the command")
		case "eventlistener":
			s.leaveOut(sec, name, "an event listener talks with supervisord, which is gone after the move",
				"use gozzard events or the events of the API")
		}
	}
	return s.res, nil
}

// supervisord is a configuration that is being imported.
type supervisord struct {
	w        *World
	res      *Result
	sections []*section
	groups   map[string]string // the group of a program, if a section names it
	daemon   section           // [supervisord]
	env      map[string]string // of all programs
}

// load reads a file and what it includes. Sections of the same name are one.
func (s *supervisord) load(f File, includes bool) error {
	list, err := readINI(f)
	if err != nil {
		return err
	}
	for _, sec := range list {
		if i := slices.IndexFunc(s.sections, func(o *section) bool { return o.name == sec.name }); i >= 0 {
			s.sections[i].keys = append(s.sections[i].keys, sec.keys...)
		} else {
			s.sections = append(s.sections, sec)
		}
		if sec.name != "include" || !includes {
			continue
		}
		if err := s.include(sec); err != nil {
			return err
		}
	}
	return nil
}

// include reads the files that a section names.
func (s *supervisord) include(sec *section) error {
	e, ok := sec.get("files")
	if !ok {
		return fault(sec.file, sec.line, "[include] has no files")
	}
	text, err := s.expand(e, map[string]string{})
	if err != nil {
		return err
	}
	for pattern := range strings.FieldsSeq(text) {
		if !path.IsAbs(pattern) {
			pattern = path.Join(path.Dir(e.file), pattern)
		}
		for _, name := range s.w.glob(pattern) {
			content, err := s.w.read(name)
			if err != nil {
				return fault(e.file, e.line, "cannot read the included file %s: %v", name, err)
			}
			if err := s.load(File{Name: name, Text: content}, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// readGroups finds out which programs belong to which group.
func (s *supervisord) readGroups() error {
	for _, sec := range s.sections {
		name, isGroup := strings.CutPrefix(sec.name, "group:")
		if !isGroup {
			continue
		}
		e, ok := sec.get("programs")
		if !ok {
			return fault(sec.file, sec.line, "[%s] has no programs", clip(sec.name))
		}
		for p := range strings.SplitSeq(e.value, ",") {
			p = strings.TrimSpace(p)
			if !slices.ContainsFunc(s.sections, func(o *section) bool {
				return o.name == "program:"+p || o.name == "fcgi-program:"+p
			}) {
				return fault(e.file, e.line, "[%s] names the program %q, which does not exist", clip(sec.name), clip(p))
			}
			s.groups[p] = strings.TrimSpace(name)
		}
	}
	return nil
}

// common reads what [supervisord] says for all programs.
func (s *supervisord) common() error {
	for _, sec := range s.sections {
		if sec.name == "supervisord" {
			s.daemon = *sec
		}
	}
	e, ok := s.daemon.get("environment")
	if !ok {
		return nil
	}
	text, err := s.expand(e, map[string]string{})
	if err != nil {
		return err
	}
	if s.env, err = pairs(text); err != nil {
		return fault(e.file, e.line, "environment: %v", err)
	}
	return nil
}

func (s *supervisord) leaveOut(sec *section, name, reason, advice string) {
	s.res.note(Note{Level: LeftOut, File: sec.file, Line: sec.line, Process: name, Key: "[" + sec.name + "]", Reason: reason,
		Advice: advice})
}

// program imports a program, once for each of its processes.
func (s *supervisord) program(sec *section, name string) error {
	group := name
	if g := s.groups[name]; g != "" {
		group = g
	}
	p := &program{s: s, sec: sec, name: name, group: group}

	first, err := p.number("numprocs_start", 0)
	if err != nil {
		return err
	}
	n, err := p.number("numprocs", 1)
	if err != nil {
		return err
	}
	pattern := "%(program_name)s"
	e, ok := sec.get("process_name")
	if ok {
		pattern = e.value
	}
	if n > 1 && !strings.Contains(pattern, "%(process_num)") {
		return fault(sec.file, sec.line, "[%s] has numprocs above 1, so process_name must have %%(process_num)", clip(sec.name))
	}
	if n < 1 || n > 1000 {
		return fault(sec.file, sec.line, "[%s]: numprocs is %d, from 1 to 1000 are allowed", clip(sec.name), n)
	}
	if _, ok := sec.get("command"); !ok {
		return fault(sec.file, sec.line, "[%s] has no command", clip(sec.name))
	}

	for i := range n {
		e.file, e.line, e.key, e.value = sec.file, sec.line, "process_name", pattern
		vars := p.variables(first+i, n)
		own, err := s.expand(e, vars)
		if err != nil {
			return err
		}
		d := newDraft(s.res, sec.file, sec.line, own)
		d.proc.Comment = "[" + sec.name + "] of " + sec.file
		d.proc.Source = group + ":" + own
		if group != name {
			d.proc.Namespace = group
		}
		if err := p.fill(d, vars); err != nil {
			return err
		}
		d.finish(s.w)
	}
	return nil
}

// program is a section that is being imported.
type program struct {
	s     *supervisord
	sec   *section
	name  string
	group string
}

func (p *program) variables(num, all int) map[string]string {
	return map[string]string{"program_name": p.name, "group_name": p.group, "process_num": strconv.Itoa(num),
		"numprocs": strconv.Itoa(all)}
}

func (p *program) number(key string, def int) (int, error) {
	e, ok := p.sec.get(key)
	if !ok {
		return def, nil
	}
	n, err := strconv.Atoi(e.value)
	if err != nil {
		return 0, fault(e.file, e.line, "%s must be a whole number, is %q", key, clip(e.value))
	}
	return n, nil
}

// fill fills in the definition of one process.
func (p *program) fill(d *draft, vars map[string]string) error {
	// Variables first: other keys may use them.
	maps.Copy(d.env, p.s.env)
	if e, ok := p.sec.get("environment"); ok {
		text, err := p.s.expand(e, vars)
		if unset := missingVariable(err); unset != "" {
			p.unset(d, e, unset)
		} else if err != nil {
			return err
		}
		own, err := pairs(text)
		if err != nil {
			return fault(e.file, e.line, "environment: %v", err)
		}
		for name, value := range own {
			d.env[name] = value
			vars["ENV_"+name] = value
		}
	}

	// The defaults of supervisord.
	d.set("restart.policy", "on-failure")
	d.seconds("start_check", 1)
	if e, ok := p.s.daemon.get("umask"); ok {
		d.set("umask", e.value)
	}
	p.defaultUser(d)

	for _, e := range p.sec.keys {
		if last, _ := p.sec.get(e.key); last.line != e.line || last.file != e.file {
			continue // a later line replaces it
		}
		read, known := supervisordKeys[e.key]
		if !known {
			d.note(Harmless, e, "supervisord does not know this key either", "")
			continue
		}
		if read == nil {
			continue
		}
		value, err := p.s.expand(e, vars)
		if unset := missingVariable(err); unset != "" {
			p.unset(d, e, unset)
			continue
		} else if err != nil {
			return err
		}
		raw := e
		raw.value = value
		if err := read(p, d, raw); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) unset(d *draft, e entry, name string) {
	d.note(LeftOut, e, "the variable "+name+" of supervisord's environment is not set here",
		"run the import with the environment of supervisord")
}

// defaultUser gives the account of programs that name none.
func (p *program) defaultUser(d *draft) {
	if _, own := p.sec.get("user"); own {
		return
	}
	e, ok := p.s.daemon.get("user")
	switch {
	case p.s.w.User != "":
		d.account(entry{key: "--user", value: p.s.w.User}, p.s.w.User)
	case ok:
		d.account(e, e.value)
	default:
		d.note(Check, entry{key: "user"}, "the program names no account, so it runs with that of supervisord, often root",
			"import with --user NAME, or add user: NAME; without it the host decides (default_user of its policy)")
	}
}
