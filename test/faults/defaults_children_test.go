//go:build linux

package faults_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gozzard/gozzard/internal/procfs"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// dumpSelf writes what a start command inherits to a file in its folder.
const dumpSelf = `(env | sort
for fd in /proc/$$/fd/*; do echo "fd ${fd##*/} $(readlink $fd)"; done
echo "umask $(umask)"
cut -d' ' -f6 /proc/$$/stat | grep -qx $$ && echo "a session of its own"
grep -E '^(Uid|Gid|Groups|CapInh|CapPrm|CapEff|CapAmb|NoNewPrivs|SigIgn|SigBlk):' /proc/$$/status
cat /proc/$$/cgroup) >dump; exec ./start.sh`

// childrenGetNoMore: a command that a real agent runs has what is meant for it, and nothing that belongs to the agent.
func childrenGetNoMore(t *testing.T, _ *plainFleet) {
	needs(t)
	s := ft.StartServer(t, "")
	agent := s.StartAgent(t, 1, "", "SECRET_OF_THE_AGENT=x", "LD_LIBRARY_PATH=/tmp", "BASH_ENV=/tmp/x",
		"TZ=Asia/Shanghai")
	agent.Kill(syscall.SIGKILL)
	agent.Through("sh", "-c",
		`umask 0; exec 7</etc/passwd 8</etc/hostname; exec env --ignore-signal=HUP --ignore-signal=INT --ignore-signal=RTMIN+3 "$@"`, "sh")
	s.AgainOnline(t, agent)
	d := ft.NewDaemon(t, openDir(t), "gzchild")
	d.User = "nobody"
	ft.Chown(t, d.Dir, d.User)
	endFirst(t, agent)
	spec := d.Spec(nil)
	spec["control"].(ft.J)["start_cmd"] = dumpSelf
	must(t, operate(t, s.API, d, 0, spec), 0)
	b, err := os.ReadFile(filepath.Join(d.Dir, "dump"))
	if err != nil {
		t.Fatal(err)
	}

	var got, groups []string
	for line := range strings.Lines(string(b)) {
		switch line = strings.TrimRight(line, " \n"); {
		case regexp.MustCompile(`^[0-9]+:`).MatchString(line):
			groups = append(groups, line)
		case strings.HasPrefix(line, "GOZZARD_OP_ID="), strings.HasPrefix(line, "GOZZARD_AGENT="):
			got = append(got, regexp.MustCompile(`[0-9a-f]{32}$`).ReplaceAllString(line, "ID"))
		case strings.HasPrefix(line, "GOZZARD_RUN="):
			got = append(got, regexp.MustCompile(`-[0-9a-f]{32}-[0-9a-f]{16}$`).ReplaceAllString(line, "-ID-RUN"))
		case strings.HasPrefix(line, "fd 1 "), strings.HasPrefix(line, "fd 2 "):
			got = append(got, strings.Replace(line, agent.Flag("--data")+"/logs", "LOGS", 1))
		case !strings.HasPrefix(line, "_=") && !strings.HasPrefix(line, "SHLVL="): // set by the shell
			got = append(got, line)
		}
	}

	log := "LOGS/" + folderOf(t, agent) + "/current.log"
	uid := fmt.Sprint(ft.Credential(t, d.User).Uid)
	gid := fmt.Sprint(ft.Credential(t, d.User).Gid)
	four := func(id string) string { return strings.Join([]string{id, id, id, id}, "\t") }
	want := []string{
		"GOZZARD_AGENT=ID", "GOZZARD_NAME=" + d.Name, "GOZZARD_NAMESPACE=faults", "GOZZARD_OP_ID=ID",
		"GOZZARD_RUN=keep-ID-RUN", "HOME=/nonexistent", "LANG=C.UTF-8", "LOGNAME=nobody",
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "PWD=" + d.Dir, "SHELL=/bin/sh",
		"TZ=Asia/Shanghai", "USER=nobody",
		"fd 0 /dev/null", "fd 1 " + log, "fd 2 " + log, "umask 0022", "a session of its own", "Uid:\t" + four(uid),
		"Gid:\t" + four(gid), "Groups:\t" + gid,
		"SigBlk:\t0000000000000000", "SigIgn:\t0000000000000000", "CapInh:\t0000000000000000",
		"CapPrm:\t0000000000000000", "CapEff:\t0000000000000000",
		"CapAmb:\t0000000000000000", "NoNewPrivs:\t1",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}

	boundTasks(t, agent, groups)
}

// folderOf is the name that the only process of an agent has in the agent's folders.
func folderOf(t *testing.T, agent *ft.Program) string {
	t.Helper()
	all, err := os.ReadDir(filepath.Join(agent.Flag("--data"), "logs"))
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	return all[0].Name()
}

// boundTasks: a command is in its own cgroup, and the kernel limits the tasks there, if the machine allows it.
func boundTasks(t *testing.T, agent *ft.Program, groups []string) {
	t.Helper()
	id, err := os.ReadFile(filepath.Join(agent.Flag("--data"), "agent-id"))
	if err != nil {
		t.Fatal(err)
	}

	own := "/gozzard/" + strings.TrimSpace(string(id)) + "/" + folderOf(t, agent)
	fs := procfs.New("/proc")
	two, err := fs.Cgroup2Mount()
	if err != nil || two == "" {
		t.Logf("no cgroup v2 here: %v", err)
		return
	}

	if !slices.ContainsFunc(groups, func(l string) bool { return strings.HasPrefix(l, "0::"+own+"/keep-") }) {
		t.Errorf("not in its own group: %q", groups)
	}

	one, err := fs.Cgroup1Mounts()
	if err != nil {
		t.Fatal(err)
	}

	file := filepath.Join(two, own, "pids.max")
	switch b, _ := os.ReadFile(filepath.Join(two, "cgroup.controllers")); {
	case slices.Contains(strings.Fields(string(b)), "pids"):
	case one["pids"] != "":
		file = filepath.Join(one["pids"], own, "pids.max")
		if !slices.ContainsFunc(groups, func(l string) bool { return strings.HasSuffix(l, ":pids:"+own) }) {
			t.Errorf("not in its group of pids: %q", groups)
		}
	default:
		t.Log("no controller for pids here")
		return
	}

	if b, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(b)) != strconv.Itoa(4096) {
		t.Errorf("%s is %q, %v", file, b, err)
	}
}
