package importer

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard/internal/yamldoc"
)

// environment gives the variables of an app. A running app has the whole environment of the shell that started it.
func (a *pm2App) environment(d *draft) {
	var dropped []string
	for _, key := range []string{"env", "env_" + cmp.Or(a.w.Profile, " ")} {
		n := a.set.Get(key)
		if n == nil || n.Kind != yamldoc.Mapping {
			continue
		}
		for i := range n.Kids {
			k := &n.Kids[i]
			if k.Kind == yamldoc.List || k.Kind == yamldoc.Mapping || k.Key == "NODE_APP_INSTANCE" {
				continue
			}
			if a.live && (ofShell(k.Key, k.Text) || k.Key == a.name()) {
				dropped = append(dropped, k.Key)
				continue
			}
			d.env[k.Key] = k.Text
		}
	}
	if len(dropped) > 0 {
		slices.Sort(dropped)
		d.note(Harmless, entry{key: "env", value: strings.Join(dropped, ", ")},
			"these variables are those of pm2 and of the shell that started the app", "add the ones that the app needs to env")
	}
	if a.w.Profile == "" {
		for i := range a.set.Kids {
			if k := &a.set.Kids[i]; !a.live && strings.HasPrefix(k.Key, "env_") {
				d.note(Check, entry{a.file, int(k.Line), k.Key, ""}, "these variables are not imported",
					"import with --env "+strings.TrimPrefix(k.Key, "env_")+" if the app runs with them")
			}
		}
	}
}

// usualPath are the folders of PATH that commands of Gozzard have, and those that the login of an account adds.
var usualPath = regexp.MustCompile(`^(/usr/local/sbin|/usr/local/bin|/usr/sbin|/usr/bin|/sbin|/bin|/usr/local/games|/usr/games|/snap/bin|:)*$`)

// shellVariables belong to a login, a terminal or pm2, not to an app.
var shellVariables = regexp.MustCompile(`^(HOME|USER|LOGNAME|SHELL|PWD|OLDPWD|SHLVL|_|TERM|TERM_PROGRAM.*|COLORTERM|LANG|LANGUAGE|LC_.*|LS_COLORS|` +
	`LESS.*|MAIL|MANPATH|HOSTNAME|DISPLAY|EDITOR|PAGER|HIST.*|PS1|SSH_.*|XDG_.*|DBUS_.*|SUDO_.*|TMUX.*|STY|WINDOW|INVOCATION_ID|` +
	`JOURNAL_STREAM|LISTEN_.*|NOTIFY_SOCKET|PM2_.*|pm_.*|pm2_.*|NODE_CHANNEL_.*|npm_.*|NVM_.*|unique_id|SYSTEMD_.*|DEBIAN_FRONTEND|BASH_.*|GOPATH|windowsHide)$`)

func ofShell(name, value string) bool {
	if name == "PATH" {
		return usualPath.MatchString(value)
	}
	return shellVariables.MatchString(name)
}

func (a *pm2App) account(d *draft) {
	uid, e := a.text("uid", "user")
	if uid == "" {
		uid, e = a.text("username")
	}
	switch {
	case uid != "":
		d.account(e, uid)
	case a.w.User != "":
		d.account(entry{key: "--user", value: a.w.User}, a.w.User)
	default:
		d.note(Check, entry{key: "user"}, "the file does not say as which account pm2 runs",
			"import with --user NAME, or add user: NAME; without it the host decides (default_user of its policy)")
	}
	if gid, e := a.text("gid"); isDigits(gid) && gid != "0" {
		d.note(LeftOut, e, "the group is a number, and a definition has a name", "give the name of the group")
	} else if gid != "" && gid != "0" {
		d.set("group", gid)
	}
}

// milliseconds reads a time of pm2 in seconds: a number of milliseconds, or a text such as 3s.
func milliseconds(e entry) (float64, error) {
	text, unit := e.value, 0.001
	for suffix, u := range map[string]float64{"s": 1, "m": 60, "h": 3600} {
		if rest, ok := strings.CutSuffix(text, suffix); ok && !strings.HasSuffix(text, "ms") {
			text, unit = rest, u
			break
		}
	}
	n, err := strconv.ParseFloat(strings.TrimSuffix(text, "ms"), 64)
	if err != nil || !(n >= 0 && n < 1e12) {
		return 0, fault(e.file, e.line, "%s must be a time in milliseconds, is %q", e.key, clip(e.value))
	}
	return n * unit, nil
}

func (a *pm2App) restarts(d *draft) error {
	if text, _ := a.text("autorestart"); text == "false" {
		d.set("restart.policy", "never")
		return nil
	}
	a.exitCodes(d)
	if text, e := a.text("restart_delay"); text != "" && text != "0" {
		n, err := milliseconds(e)
		if err != nil {
			return err
		}
		d.seconds("restart.delay", max(n, 1))
		if n != float64(int(n)) {
			d.note(Harmless, e, "pauses are whole seconds", "")
		}
	}
	if text, e := a.text("exp_backoff_restart_delay"); text != "" && text != "0" {
		d.note(Harmless, e, "the pauses between restarts always grow: at once, then 10 seconds, then longer", "see restart.delay and restart.quick")
	}
	if text, e := a.text("max_restarts"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return fault(e.file, e.line, "max_restarts must be a number, is %q", clip(text))
		}
		if a.live && n == 16 { // pm2 writes its default
			return nil
		}
		d.set("restart.max", min(n, 100000))
		d.note(Check, e, "Gozzard counts restarts in a row, and a run of a minute begins a new count; pm2 counts runs below min_uptime",
			"look at restart.max; 0 means that Gozzard never gives up")
	}
	return nil
}

// exitCodes compares the codes after which pm2 leaves an app down with those of Gozzard: 0, or none.
func (a *pm2App) exitCodes(d *draft) {
	n := a.set.Get("stop_exit_codes")
	if n == nil {
		return
	}
	var codes []string
	for i := range n.Kids {
		codes = append(codes, n.Kids[i].Text)
	}
	if len(codes) == 0 && n.Text != "" {
		codes = []string{n.Text}
	}
	if slices.Contains(codes, "0") {
		d.set("restart.policy", "on-failure")
	}
	if len(codes) > 0 && !slices.Equal(codes, []string{"0"}) {
		d.note(Check, entry{a.file, int(n.Line), n.Key, strings.Join(codes, ",")},
			"Gozzard knows 0 as the only exit code of an expected end: after the others the app is started again",
			"make the app exit with 0, or use restart: never")
	}
}

// stops gives how the app is stopped. pm2 sends SIGINT, and SIGKILL after 1.6 seconds.
func (a *pm2App) stops(d *draft) error {
	d.set("stop_signal", "INT")
	if text, e := a.text("kill_timeout"); text != "" {
		n, err := milliseconds(e)
		if err != nil {
			return err
		}
		if !(a.live && n == 1.6) {
			d.seconds("stop_timeout", n)
		}
	}
	if a.is("shutdown_with_message") {
		_, e := a.text("shutdown_with_message")
		d.note(Check, e, "Gozzard stops a process by a signal, not by a message", "handle SIGINT in the app, or give another stop_signal")
	}
	return nil
}

var isMemory = regexp.MustCompile(`(?i)^([0-9]{1,15})\s*(K|M|G|)B?$`)

func (a *pm2App) limits(d *draft) error {
	text, e := a.text("max_memory_restart")
	if text == "" || text == "0" {
		return nil
	}
	m := isMemory.FindStringSubmatch(text)
	if m == nil {
		return fault(e.file, e.line, "max_memory_restart must be a size such as 300M, is %q", clip(text))
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil || n > 1<<30 && m[2] != "" {
		return fault(e.file, e.line, "max_memory_restart must be a size such as 300M, is %q", clip(text))
	}
	d.size("memory", n<<map[string]uint{"": 0, "K": 10, "M": 20, "G": 30}[strings.ToUpper(m[2])])
	d.set("limits.act", "restart")
	return nil
}

// pm2Known are the keys that are read elsewhere, or that change nothing.
var pm2Known = regexp.MustCompile(`^(name|script|args|cwd|env|env_.*|interpreter|exec_interpreter|node_args|interpreter_args|nodeArgs|exec_mode|instances|uid|gid|user|username|` +
	`namespace|autorestart|restart_delay|exp_backoff_restart_delay|max_restarts|stop_exit_codes|kill_timeout|shutdown_with_message|max_memory_restart|` +
	`apps|deploy|vizion|pmx|automation|treekill|merge_logs|combine_logs|source_map_support|disable_source_map_support|windowsHide|time|ignore_watch|watch_delay|watch_options|` +
	`log_date_format|log_type|listen_timeout|append_env_to_name|force|version|filter_env|description|pid|pm_id|instance_var|increment_var|min_uptime|pid_file|disable_logs)$`)

// pm2Notes are keys without a counterpart.
var pm2Notes = []struct {
	key            string
	level          Level
	reason, advice string
}{
	{"cron_restart", Check, "a running process is not restarted by a schedule",
		"add a definition with schedule whose command is gozzard restart NAME"},
	{"watch", Check, "Gozzard does not restart a process because files changed", "restart it when you deploy: gozzard restart NAME"},
	{"wait_ready", Harmless, "a start succeeds if the process is up after start_check, not by a message", "give a health check"},
	{"out_file", Harmless, "the output goes into the log that the agent keeps", "read it with gozzard logs NAME"},
	{"error_file", Harmless, "the output goes into the log that the agent keeps", "read it with gozzard logs NAME"},
	{"log_file", Harmless, "the output goes into the log that the agent keeps", "read it with gozzard logs NAME"},
	{"min_uptime", Harmless, "a run of a minute begins a new count of restarts", ""},
	{"post_update", Check, "there are no commands after an update", "run them when you deploy"},
	{"instance_var", Check, "the number of the instance is in NODE_APP_INSTANCE", "add the variable to env"},
	{"increment_var", Check, "Gozzard counts no variable up", "give each instance its value in env"},
}

// report reports settings without a counterpart.
func (a *pm2App) report(d *draft) {
	if d.env["NODE_APP_INSTANCE"] == "" {
		if mode, e := a.text("exec_mode"); strings.HasPrefix(mode, "cluster") {
			d.note(Harmless, e, "cluster mode with one process is the same as a process without it", "")
		}
	}
	for _, n := range pm2Notes {
		k := a.set.Get(n.key)
		if k == nil || k.Kind == yamldoc.Null || k.Text == "false" || k.Text == "0" || k.Text == "" && len(k.Kids) == 0 {
			continue
		}
		if a.live && (n.key == "instance_var" && k.Text == "NODE_APP_INSTANCE" || n.key == "min_uptime") {
			continue
		}
		d.note(n.level, entry{a.file, int(k.Line), n.key, k.Text}, n.reason, n.advice)
	}
	if a.live {
		return
	}
	for i := range a.set.Kids {
		k := &a.set.Kids[i]
		known := pm2Known.MatchString(k.Key)
		for _, n := range pm2Notes {
			known = known || n.key == k.Key
		}
		if !known {
			d.note(Check, entry{a.file, int(k.Line), k.Key, k.Text}, "this key is not known", "look up what it does in the manual of pm2")
		}
	}
}
