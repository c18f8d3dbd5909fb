package importer

import (
	"path"
	"slices"
	"strings"
)

// Systemd imports service units, with their drop-ins and their timers.
func Systemd(files []File, w World) (*Result, error) {
	res := &Result{}
	var services []*service
	timers := map[string]*unit{}
	for _, f := range files {
		kind := path.Ext(f.Name)
		if len(kind) < 2 {
			return nil, fault(f.Name, 0, "the name of a unit ends with its type, such as .service")
		}
		u, err := loadUnit(f, &w)
		if err != nil {
			return nil, err
		}
		switch {
		case kind == ".timer":
			name := u.plain() + ".service"
			if e, ok := u.last("Timer", "Unit"); ok {
				name = e.value
			}
			timers[name] = u
		case kind == ".service":
			services = append(services, &service{unit: u, w: &w})
		default:
			res.note(Note{Level: LeftOut, File: f.Name, Process: u.name, Reason: "this is no service: Gozzard has processes only",
				Advice: "leave it with systemd"})
		}
	}

	names := map[string]string{}
	for _, s := range services {
		names[s.unit.name] = s.unit.plain()
	}
	for _, s := range services {
		s.names, s.timer = names, timers[s.unit.name]
		delete(timers, s.unit.name)
		s.imports(res)
	}
	for _, f := range files {
		for name, t := range timers {
			if t.file == f.Name {
				res.note(Note{Level: LeftOut, File: t.file, Process: t.name, Reason: "its service is not among the files", Advice: "import " + name + ", too"})
			}
		}
	}
	afterBefore(res, services)
	return res, nil
}

// service is a unit that is being imported.
type service struct {
	unit  *unit
	w     *World
	timer *unit             // that starts it
	names map[string]string // the processes of the imported units
	d     *draft

	user string
	kind string // Type=
	setF bool   // a command has a variable that becomes several words
}

// imports adds the process of a unit to the result.
func (s *service) imports(res *Result) {
	s.d = newDraft(res, s.unit.file, 1, s.unit.plain())
	d := s.d
	d.proc.Source, d.proc.DropIns = s.unit.name, s.unit.dropIns
	d.proc.Comment = s.unit.name
	if e, ok := s.unit.last("Unit", "Description"); ok {
		if text, err := s.specifiers(e.value); err == nil {
			d.proc.Comment = s.unit.name + ": " + text
		}
	}

	switch {
	case len(s.unit.sections["Service"]) == 0:
		d.note(LeftOut, entry{}, "there is nothing in [Service]: the unit is masked, an alias, or a generated one", "leave it with systemd")
		return
	case strings.HasSuffix(s.unit.plain(), "@"):
		d.note(LeftOut, entry{}, "this is a template, and only its instances are processes", "name the instance: gozzard import systemd "+s.unit.prefix()+"@NAME.service")
		return
	}

	s.account()
	s.place()
	s.commands()
	s.ends()
	s.limits()
	s.order()
	s.schedule()
	s.report()
	d.finish(s.w)
}

// value is the value of a key with its specifiers replaced.
func (s *service) value(section, key string) (entry, bool) {
	e, ok := s.unit.last(section, key)
	if !ok {
		return e, false
	}
	text, err := s.specifiers(e.value)
	if err != nil {
		s.d.note(LeftOut, e, err.Error(), "write the value out in a drop-in")
		return e, false
	}
	e.value = text
	return e, true
}

func (s *service) account() {
	s.user = "root"
	if e, ok := s.value("Service", "User"); ok {
		s.user = e.value
		s.d.account(e, e.value)
	} else {
		s.d.set("user", "root")
	}
	if e, ok := s.value("Service", "Group"); ok {
		if isDigits(e.value) && e.value != "0" {
			s.d.note(LeftOut, e, "the group is a number, and a definition has a name", "give the name of the group")
		} else if e.value != s.user {
			s.d.set("group", e.value)
		}
	}
}

// place gives the folder, the variables and what else is set up before the command.
func (s *service) place() {
	if e, ok := s.value("Service", "WorkingDirectory"); ok {
		folder := strings.TrimPrefix(e.value, "-")
		switch {
		case folder == "~" && s.user == "root":
			s.d.set("folder", "/root")
		case folder == "~" || !path.IsAbs(folder):
			s.d.note(LeftOut, e, "the home folder of the account is not in the unit", "write the absolute path")
		default:
			s.d.set("folder", path.Clean(folder))
		}
	} else {
		s.dataFolders()
	}
	s.environment()
	if e, ok := s.value("Service", "UMask"); ok {
		s.d.set("umask", e.value)
	}
	if e, ok := s.value("Service", "Nice"); ok {
		n, err := parseInt(e, -20, 19)
		if err != nil {
			s.d.note(LeftOut, e, err.Error(), "")
			return
		}
		s.d.set("nice", n)
	}
}

// dataFolders notes the folders in which the service keeps its data.
func (s *service) dataFolders() {
	e, ok := s.unit.last("Service", "StateDirectory")
	if !ok {
		return
	}
	for name := range strings.FieldsSeq(e.value) {
		if text, err := s.specifiers(name); err == nil {
			text, _, _ = strings.Cut(text, ":")
			s.d.proc.Folders = append(s.d.proc.Folders, path.Join("/var/lib", text))
		}
	}
}

func (s *service) environment() {
	for _, e := range s.unit.list("Service", "Environment") {
		words, err := unitWords(e.value)
		if err != nil {
			s.d.note(LeftOut, e, "the value "+err.Error(), "")
			continue
		}
		for _, word := range words {
			text, err := s.specifiers(word)
			name, value, ok := strings.Cut(text, "=")
			if err != nil || !ok {
				s.d.note(LeftOut, e, "a variable is not NAME=VALUE, or has a specifier that is not known", "write it out in a drop-in")
				continue
			}
			s.d.env[name] = value
		}
	}

	var used []entry
	for _, e := range s.unit.list("Service", "EnvironmentFile") {
		text, err := s.specifiers(e.value)
		if err != nil {
			s.d.note(LeftOut, e, err.Error(), "write the value out in a drop-in")
			continue
		}
		name, optional := strings.CutPrefix(text, "-")
		switch {
		case strings.ContainsAny(name, "*?["):
			s.d.note(LeftOut, e, "a definition has one file of variables, and this is a pattern", "put the variables into one file")
		case optional && !s.w.exists(name):
			s.d.note(Harmless, e, "the file does not exist, and it need not", "add env_file when it exists")
		default:
			e.value = path.Clean(name)
			used = append(used, e)
		}
	}
	if len(used) > 1 {
		s.d.note(LeftOut, used[1], "a definition has one file of variables, and this is the second one", "put the variables into one file")
	}
	if len(used) > 0 {
		s.d.set("env_file", used[0].value)
		s.fileWins(used[0])
	}
}

// fileWins removes the variables that the file has, too: with systemd those of the file count.
func (s *service) fileWins(e entry) {
	text, err := s.w.read(e.value)
	if err != nil && len(s.d.env) > 0 {
		s.d.note(Check, e, "variables of env replace those of env_file; with systemd the file replaces the others",
			"remove from env what the file has, too")
		return
	}
	for line := range strings.Lines(string(text)) {
		name, _, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
		if _, both := s.d.env[name]; ok && both {
			delete(s.d.env, name)
			s.d.note(Harmless, entry{e.file, e.line, e.key, name}, "the file has this variable, too, and its value counts", "")
		}
	}
}

// order gives the processes that must run before. Only imported ones count.
func (s *service) order() {
	for _, key := range []string{"After", "Requires", "BindsTo", "Requisite", "Wants", "PartOf", "Upholds"} {
		for _, e := range s.unit.list("Unit", key) {
			for word := range strings.FieldsSeq(e.value) {
				name, err := s.specifiers(word)
				switch {
				case err != nil:
				case key == "After" && s.names[name] != "" && name != s.unit.name:
					s.comesAfter(s.names[name])
				case strings.HasSuffix(name, ".socket") && (key == "Requires" || key == "BindsTo"):
					s.d.note(LeftOut, e, "the process gets its socket from systemd, and Gozzard opens none for a process",
						"make the process open the socket itself, and remove the requirement by a drop-in")
				case key != "After" && key != "Wants" && strings.HasSuffix(name, ".service") && s.names[name] == "":
					s.d.note(Check, e, "it needs "+name+", which is not among the files", "import it, too, or make sure that it runs")
				}
			}
		}
	}
}

func (s *service) comesAfter(name string) {
	list, _ := s.d.values["after"].([]string)
	if !slices.Contains(list, name) && len(list) < 32 {
		s.d.set("after", append(list, name))
	}
}

// afterBefore gives the order of units that say Before.
func afterBefore(res *Result, services []*service) {
	for _, s := range services {
		for _, e := range s.unit.list("Unit", "Before") {
			for word := range strings.FieldsSeq(e.value) {
				name := s.names[word]
				i := slices.IndexFunc(res.Processes, func(p Process) bool { return name != "" && p.Name == name })
				if i < 0 || !slices.ContainsFunc(res.Processes, func(p Process) bool { return p.Name == s.unit.plain() }) {
					continue
				}
				for _, other := range services {
					if other.unit.plain() == name {
						other.comesAfter(s.unit.plain())
						res.Processes[i].Fields = other.d.fields()
					}
				}
			}
		}
	}
	dropMissing(res)
}

// dropMissing removes names from after that were left out of the import.
func dropMissing(res *Result) {
	for i := range res.Processes {
		p := &res.Processes[i]
		for k := range p.Fields {
			if p.Fields[k].Key != "after" {
				continue
			}
			list := slices.DeleteFunc(slices.Clone(p.Fields[k].Value.([]string)), func(name string) bool {
				return !slices.ContainsFunc(res.Processes, func(o Process) bool { return o.Name == name })
			})
			p.Fields[k].Value = list
			if len(list) == 0 {
				p.Fields = slices.Delete(p.Fields, k, k+1)
			}
			break
		}
	}
}
