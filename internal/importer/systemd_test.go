package importer_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gozzard/gozzard/internal/importer"
)

const webUnit = `[Unit]
Description=Web of %i
After=network.target db.service
Requires=db.service

[Service]
Type=notify
User=www-data
Environment="A=two words" B=%i
EnvironmentFile=/etc/default/web
ExecStartPre=-/usr/bin/test -d /srv
ExecStart=@/opt/web/web web-of-%i --name ${NAME} $OPTS --price 5$$ \
    # a comment between
    --last
ExecReload=/bin/kill -HUP $MAINPID
WorkingDirectory=/opt/web
KillSignal=SIGQUIT
TimeoutStopSec=1min 30s
Restart=on-failure
RestartSec=500ms
StartLimitBurst=3
LimitNOFILE=1024:65536
LimitCORE=infinity
MemoryMax=512M
CPUQuota=150%
UMask=0027
Nice=5
ProtectSystem=strict
PrivateTmp=yes
RuntimeDirectory=web
NewKey=1
`

const dbUnit = `[Service]
ExecStart=/usr/bin/db
PIDFile=/var/run/db.pid
Type=forking
Restart=always
ExecStartPost=/usr/bin/db-ready
`

func TestSystemd(t *testing.T) {
	w := disk(map[string]string{"/etc/default/web": "B=1\n", "/etc/systemd/system/web@.service.d/10.conf": "[Service]\nWorkingDirectory=/srv\n",
		"/usr/lib/systemd/system/web@.service.d/10.conf": "[Service]\nWorkingDirectory=/wrong\n"})
	r, err := importer.Systemd([]importer.File{{Name: "/usr/lib/systemd/system/web@one.service", Text: []byte(webUnit)},
		{Name: "/usr/lib/systemd/system/db.service", Text: []byte(dbUnit)}}, w)
	if err != nil {
		t.Fatal(err)
	}
	const want = `# web@one.service: Web of one
name: web@one
command: "set -f; { /usr/bin/test -d /srv || :; } && exec /opt/web/web --name \"${NAME}\" $OPTS --price 5'$' --last"
reload: "/bin/kill -HUP $GOZZARD_PID"
folder: /srv
proc_name: web
user: www-data
env: {A: "two words"}
env_file: /etc/default/web
umask: "0027"
nice: 5
rlimits: {core: unlimited, nofile: [1024, 65536]}
after: [db]
stop_signal: QUIT
stop_timeout: 90s
restart: {policy: on-failure, max: 3, delay: 1s}
memory: 512M
cpu: 1.5
limits: {act: alert, enforce: true}
---
# db.service
name: db
command: "/usr/bin/db && /usr/bin/db-ready"
timeout: 90s
proc_name: db
pid_file: /run/db.pid
user: root
stop_timeout: 90s
`
	if diff := cmp.Diff(want, string(importer.WriteYAML(r.Processes))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"check web@one StartLimitBurst", "security web@one ProtectSystem", "security web@one PrivateTmp",
		"check web@one RuntimeDirectory", "check web@one NewKey"}, notes(r, importer.LeftOut, importer.Security, importer.Check)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"/etc/systemd/system/web@.service.d/10.conf"}, r.Processes[0].DropIns); diff != "" {
		t.Error(diff)
	}
}

// TestSystemdLeftOut: a service that would not run as before is left out, and the report names the key.
func TestSystemdLeftOut(t *testing.T) {
	for _, text := range []string{"DynamicUser=yes", "KillMode=process", "SendSIGKILL=no", "AmbientCapabilities=CAP_NET_RAW", "RootDirectory=/x", "StandardInput=socket",
		"ExecStartPost=/bin/x", "ExecStopPost=/bin/x", "User=1000", "WorkingDirectory=~\nUser=x", "EnvironmentFile=/a\nEnvironmentFile=/b", "EnvironmentFile=/a*",
		"Restart=on-success", "Type=strange", "ExecStartPre=+/bin/x\nUser=x", "ExecStart=", "Environment=\"A=1", "LoadCredential=a:b", "Environment=A=%q",
		"BindPaths=/a", "LimitNOFILE=many"} {
		r, err := importer.Systemd([]importer.File{{Name: "/x/a.service", Text: []byte("[Service]\nExecStart=/bin/a\n" + text)}}, disk(nil))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		key, _, _ := strings.Cut(text[strings.LastIndexByte(text, '\n')+1:], "=")
		if first, _, _ := strings.Cut(text, "="); !slices.Contains(notes(r, importer.LeftOut), "left out a "+first) || len(r.Processes) != 0 {
			t.Errorf("%s: %d processes, %q, want %s", text, len(r.Processes), notes(r, importer.LeftOut), key)
		}
	}

	files := []importer.File{{Name: "/x/a@.service", Text: []byte("[Service]\nExecStart=/bin/a\n")}, {Name: "/x/a.socket", Text: []byte("[Socket]\n")},
		{Name: "/x/masked.service"}, {Name: "/x/b.timer", Text: []byte("[Timer]\nOnCalendar=daily\n")}}
	r, err := importer.Systemd(files, disk(nil))
	if err != nil || len(r.Processes) != 0 || r.LeftOutProcesses() != 4 {
		t.Errorf("%v, %+v", err, r)
	}
}

func TestSystemdUnreadable(t *testing.T) {
	for text, want := range map[string]string{"A=1": ":1: there is no [section]", "[Service\n": ":1: the name of a section", "[Service]\nnonsense": ":2: this is no section",
		"\xff": "not a text in UTF-8"} {
		r, err := importer.Systemd([]importer.File{{Name: "/x/a.service", Text: []byte(text)}}, disk(nil))
		if err == nil || !strings.Contains(err.Error(), want) || r != nil {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestTimers(t *testing.T) {
	for calendar, want := range map[string]string{
		"daily":                     "0 0 * * *",
		"weekly":                    "0 0 * * 1",
		"*-*-* 03:15:00":            "15 3 * * *",
		"*-*-* *:0/5":               "*/5 * * * *",
		"*:7/10":                    "7-59/10 * * * *",
		"Mon..Fri 09:00":            "0 9 * * 1-5",
		"Sat,Sun *-*-1..7 08:30:00": "30 8 1-7 * 6,0",
		"*-1,7-1 00:00":             "0 0 1 1,7 *",
		"*-*-* 06,18:00":            "0 6,18 * * *",
		"2030-1-1":                  "",
		"*-*-* 00:00:30":            "",
		"*-*~1":                     "",
		"*:61":                      "",
		"*-*-* 03:00 Europe/Vienna": "0 3 * * *",
		"Thursday 10:00":            "0 10 * * 4",
	} {
		r, err := importer.Systemd([]importer.File{{Name: "/x/a.service", Text: []byte("[Service]\nType=oneshot\nExecStart=/bin/a\n")},
			{Name: "/x/a.timer", Text: []byte("[Timer]\nOnCalendar=" + calendar + "\n")}}, disk(nil))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, p := range r.Processes {
			for _, f := range p.Fields {
				if f.Key == "schedule" {
					got = f.Value.(string)
				}
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q; %+v", calendar, got, want, r.Notes)
		}
	}
}

// TestUnitsOfPackages imports every unit of this machine: each is imported or left out with a reason, and the usual daemons
// are imported.
func TestUnitsOfPackages(t *testing.T) {
	w := disk(nil)
	w.Read = os.ReadFile
	w.Glob = func(pattern string) []string {
		found, _ := filepath.Glob(pattern)
		slices.Sort(found)
		return found
	}
	var files []importer.File
	for _, name := range w.Glob("/usr/lib/systemd/system/*.service") {
		text, err := os.ReadFile(name)
		if err != nil { // a link to a file that is not there
			continue
		}
		files = append(files, importer.File{Name: name, Text: text})
	}
	r, err := importer.Systemd(files, w)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(r.Processes) + r.LeftOutProcesses(); got != len(files) {
		t.Errorf("%d of %d units were imported or left out", got, len(files))
	}
	for _, name := range []string{"nginx", "redis-server", "haproxy", "memcached"} {
		if !slices.ContainsFunc(r.Processes, func(p importer.Process) bool { return p.Name == name }) {
			t.Errorf("%s was not imported", name)
		}
	}
}

// TestSystemdProtection: the report has every protection that is lost, also an empty list of capabilities, which takes all of
// them away, and each line of a key that is repeated.
func TestSystemdProtection(t *testing.T) {
	const text = `[Service]
ExecStart=/usr/bin/redis
User=redis
Restart=always
CapabilityBoundingSet=
AmbientCapabilities=
ReadWritePaths=-/var/lib/redis
ReadWritePaths=-/var/log/redis
SystemCallFilter=@system-service
SystemCallFilter=~@privileged
ReadOnlyPaths=/lost
ReadOnlyPaths=
ReadOnlyPaths=/kept
PrivateTmp=no
PrivateTmp=yes
ProtectHome=yes
ProtectHome=no
RuntimeDirectory=redis
RuntimeDirectory=redis-more
`
	report := func(adopts bool, levels ...importer.Level) (all []string) {
		w := disk(nil)
		w.Adopts = adopts
		r, err := importer.Systemd([]importer.File{{Name: "/usr/lib/systemd/system/redis.service", Text: []byte(text)}}, w)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range r.Notes {
			if slices.Contains(levels, n.Level) {
				all = append(all, fmt.Sprintf("%d %s=%s %s", n.Line, n.Key, n.Value, n.Advice))
			}
		}
		return all
	}

	const keep = "keep it with systemd if it needs the protection, or protect it in another way (AppArmor, bwrap in the command)"
	if diff := cmp.Diff([]string{"5 CapabilityBoundingSet= " + keep, "7 ReadWritePaths=-/var/lib/redis " + keep,
		"8 ReadWritePaths=-/var/log/redis " + keep, "9 SystemCallFilter=@system-service " + keep,
		"10 SystemCallFilter=~@privileged " + keep, "13 ReadOnlyPaths=/kept " + keep, "15 PrivateTmp=yes " + keep},
		report(false, importer.Security)); diff != "" {
		t.Error(diff)
	}

	// What --adopt does itself is nothing to do.
	if diff := cmp.Diff([]string{"18 RuntimeDirectory=redis put into /etc/tmpfiles.d/redis.conf: d /run/redis 0755 redis redis -",
		"19 RuntimeDirectory=redis-more put into /etc/tmpfiles.d/redis.conf: d /run/redis-more 0755 redis redis -"},
		report(false, importer.Check)); diff != "" {
		t.Error(diff)
	}
	if got := report(true, importer.Check); len(got) > 0 {
		t.Errorf("with --adopt: %q", got)
	}
}
