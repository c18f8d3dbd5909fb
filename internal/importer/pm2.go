package importer

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard/internal/yamldoc"
)

// PM2 imports apps of pm2: the output of pm2 jlist, a dump.pm2, or an ecosystem file in JSON or YAML.
func PM2(files []File, w World) (*Result, error) {
	res := &Result{}
	for _, f := range files {
		apps, err := pm2Apps(f)
		if err != nil {
			return nil, err
		}
		same := map[string]int{}
		for i := range apps {
			same[apps[i].name()]++
		}
		for i := range apps {
			apps[i].res, apps[i].w, apps[i].twins = res, &w, same[apps[i].name()]
			if err := apps[i].imports(); err != nil {
				return nil, err
			}
		}
	}
	return res, nil
}

// pm2App is an app that is being imported.
type pm2App struct {
	res   *Result
	w     *World
	file  string
	top   *yamldoc.Node // with name and pid
	set   *yamldoc.Node // the settings: the same, or pm2_env of a running app
	live  bool          // pm2 wrote it: it has settings that no person gave
	twins int           // how many apps have this name
}

// pm2Apps finds the apps in a file.
func pm2Apps(f File) ([]pm2App, error) {
	switch strings.ToLower(path.Ext(f.Name)) {
	case ".js", ".cjs", ".mjs", ".ts":
		return nil, fault(f.Name, 0, "this is a program, and an import runs none. Write it as JSON first: node -p "+
			"'JSON.stringify(require(%q))' >ecosystem.json, then: gozzard import pm2 ecosystem.json", f.Name)
	}
	root, err := yamldoc.Parse(f.Text)
	if err != nil {
		e := err.(*yamldoc.Error)
		return nil, fault(f.Name, e.Line, "%s. Use the output of pm2 jlist, dump.pm2, or an ecosystem file in JSON or YAML", e.Text)
	}
	list := root
	if apps := root.Get("apps"); apps != nil {
		list = apps
	}
	nodes := list.Kids
	if list.Kind == yamldoc.Mapping {
		nodes = []yamldoc.Node{*list}
	} else if list.Kind != yamldoc.List {
		return nil, fault(f.Name, int(max(list.Line, 1)), "must be a list of apps, is %s", list.Kind)
	}

	apps := make([]pm2App, 0, len(nodes))
	for i := range nodes {
		n := &nodes[i]
		if n.Kind != yamldoc.Mapping {
			return nil, fault(f.Name, int(n.Line), "an app must be a mapping, is %s", n.Kind)
		}
		a := pm2App{file: f.Name, top: n, set: n}
		if env := n.Get("pm2_env"); env != nil && env.Kind == yamldoc.Mapping {
			a.set, a.live = env, true
		} else if n.Get("pm_exec_path") != nil {
			a.live = true
		}
		apps = append(apps, a)
	}
	return apps, nil
}

// text is the value of a setting, "" if it is not given.
func (a *pm2App) text(keys ...string) (string, entry) {
	for _, key := range keys {
		n := a.set.Get(key)
		if n == nil {
			n = a.top.Get(key)
		}
		if n != nil && (n.Kind == yamldoc.Plain || n.Kind == yamldoc.Quoted) && !(n.Kind == yamldoc.Plain && n.Text == "undefined") {
			return n.Text, entry{a.file, int(n.Line), key, n.Text}
		}
	}
	return "", entry{file: a.file, line: int(a.top.Line), key: keys[0]}
}

// words are the values of a setting that is a line or a list.
func (a *pm2App) words(keys ...string) ([]string, entry, error) {
	for _, key := range keys {
		n := a.set.Get(key)
		if n == nil {
			continue
		}
		e := entry{a.file, int(n.Line), key, n.Text}
		switch n.Kind {
		case yamldoc.List:
			var words []string
			for i := range n.Kids {
				if k := &n.Kids[i]; k.Kind == yamldoc.Plain || k.Kind == yamldoc.Quoted {
					words = append(words, k.Text)
				}
			}
			return words, e, nil
		case yamldoc.Plain, yamldoc.Quoted:
			words, err := posixWords(n.Text)
			if err != nil {
				return nil, e, fault(a.file, int(n.Line), "%s %v", key, err)
			}
			return words, e, nil
		}
	}
	return nil, entry{}, nil
}

func (a *pm2App) is(key string) bool {
	text, _ := a.text(key)
	return text == "true"
}

func (a *pm2App) name() string {
	if name, _ := a.text("name"); name != "" {
		return name
	}
	script, _ := a.text("script", "pm_exec_path")
	base := path.Base(script)
	return strings.TrimSuffix(base, path.Ext(base))
}

// imports adds the processes of the app to the result.
func (a *pm2App) imports() error {
	n, cluster, err := a.instances()
	if err != nil {
		return err
	}
	if cluster && n != 1 || cluster && a.live && a.twins > 1 {
		_, e := a.text("exec_mode")
		d := newDraft(a.res, a.file, int(a.top.Line), a.name())
		d.note(LeftOut, e, "the processes of cluster mode share one port, which pm2 opens for them; Gozzard does not do that",
			"run it as one process, or run several with a port each behind a proxy: exec_mode fork")
		return nil
	}

	if a.live { // each process of the list is one instance
		number := -1
		if text, _ := a.text("NODE_APP_INSTANCE"); a.twins > 1 {
			number, err = strconv.Atoi(text)
			if err != nil {
				text, _ = a.text("pm_id")
				number, _ = strconv.Atoi(text)
			}
		}
		return a.one(number)
	}
	if n == 1 {
		return a.one(-1)
	}
	for i := range n {
		if err := a.one(i); err != nil {
			return err
		}
	}
	return nil
}

// instances is how many processes the app has, and whether they are in cluster mode.
func (a *pm2App) instances() (n int, cluster bool, err error) {
	mode, _ := a.text("exec_mode")
	text, e := a.text("instances")
	cluster = strings.HasPrefix(mode, "cluster") || mode == "" && text != "" && !a.live
	switch text {
	case "":
		return 1, cluster, nil
	case "max", "0", "-1":
		return 0, true, nil
	}
	n, err = strconv.Atoi(text)
	if err != nil || n < 1 || n > 1000 {
		return 0, cluster, fault(e.file, e.line, "instances must be a number from 1 to 1000, or max, is %q", clip(text))
	}
	return n, cluster, nil
}

// one imports one process. number is that of its instance, -1 if there is one only.
func (a *pm2App) one(number int) error {
	d := newDraft(a.res, a.file, int(a.top.Line), a.name())
	if number >= 0 {
		d.proc.Name += "-" + strconv.Itoa(number)
		d.env["NODE_APP_INSTANCE"] = strconv.Itoa(number)
	}
	d.proc.Comment = "app " + a.name() + " of " + a.file
	if ns, _ := a.text("namespace"); ns != "" {
		d.proc.Namespace = ns
	}
	if id, _ := a.text("pm_id"); id != "" {
		d.proc.Source = id
	}
	if pid, _ := a.text("pid"); isDigits(pid) && len(pid) < 10 {
		d.proc.PID, _ = strconv.Atoi(pid)
	}

	if err := a.command(d); err != nil {
		return err
	}
	a.environment(d)
	a.account(d)
	for _, read := range []func(*draft) error{a.restarts, a.stops, a.limits} {
		if err := read(d); err != nil {
			return err
		}
	}
	a.report(d)
	d.finish(a.w)
	return nil
}

// byExtension are the interpreters that pm2 takes for scripts.
var byExtension = map[string]string{".js": "node", ".mjs": "node", ".cjs": "node", ".py": "python3", ".sh": "bash", ".rb": "ruby",
	".php": "php", ".pl": "perl"}

// command gives the command of a process and its folder.
func (a *pm2App) command(d *draft) error {
	folder, _ := a.text("pm_cwd", "cwd")
	base := path.Dir(a.file)
	if folder == "" {
		folder = base
	} else if !path.IsAbs(folder) {
		folder = path.Join(base, folder)
	}
	if !path.IsAbs(folder) {
		_, e := a.text("cwd")
		d.note(LeftOut, e, "the folder is not known: the configuration comes from standard input", "give cwd as an absolute path")
	}
	d.set("folder", path.Clean(folder))

	script, e := a.text("pm_exec_path", "script")
	if script == "" {
		return fault(a.file, int(a.top.Line), "the app %q has no script", clip(d.proc.Name))
	}
	args, _, err := a.words("args")
	if err != nil {
		return err
	}
	flags, _, err := a.words("node_args", "interpreter_args", "nodeArgs")
	if err != nil {
		return err
	}
	interpreter, ie := a.text("exec_interpreter", "interpreter")
	if !a.live && strings.Contains(script, " ") && !a.w.exists(path.Join(folder, script)) {
		d.program(e, append([]string{"bash", "-c", script}, args...))
		return nil
	}

	if interpreter == "" {
		interpreter = byExtension[path.Ext(script)]
	}
	if strings.ContainsAny(script, "/") || path.Ext(script) != "" {
		if !path.IsAbs(script) {
			script = path.Join(folder, script)
		}
	}
	words := append([]string{script}, args...)
	if interpreter != "" && interpreter != "none" {
		if strings.Contains(interpreter, "@") {
			d.note(LeftOut, ie, "pm2 finds this version of node by nvm", "give the absolute path of node as interpreter")
			return nil
		}
		words = slices.Concat([]string{interpreter}, flags, words)
	}
	d.program(e, words)
	return nil
}
