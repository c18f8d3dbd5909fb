//go:build linux

package fleettest_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// configRig is a fleet of agents with a folder for files each may write, and a business with a process on each.
type configRig struct {
	t    *testing.T
	s    *ft.Server
	conf string   // the folder on the hosts
	dir  string   // of the person
	ids  []string // of the processes, one on each host
}

func newConfigRig(t *testing.T, hosts int, process string) *configRig {
	t.Helper()
	c := &configRig{t: t, s: ft.StartServer(t, ""), conf: fileFolder(t, "nobody"), dir: t.TempDir()}
	var places []string
	for n := 1; n <= hosts; n++ {
		c.ids = append(c.ids, fmt.Sprintf("4%d", n))
		state := t.TempDir()
		c.write(state+"/policy.yaml", filesRules(c.conf)+fmt.Sprintf("path_prefixes: [%s]\n", c.conf))
		c.s.StartAgentIn(t, n, state, "")
		places = append(places, fmt.Sprintf("{id: %d, name: s%[1]d, host: {ip: 127.0.0.%[1]d, cloud: 0}, processes: [{id: 4%[1]d, name: nginx, user: nobody, %s}]}",
			n, strings.NewReplacer("HOST", fmt.Sprint(n), "CONF", c.conf).Replace(process)))
	}
	applyTopology(t, c.s.API, 2, "biz: 2\nname: b\nsets:\n  - {id: 5, name: s, env: 3, modules: [{id: 21, name: web, instances: ["+
		strings.Join(places, ", ")+"]}]}\n")
	return c
}

func (c *configRig) write(file, text string) {
	c.t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		c.t.Fatal(err)
	}
}

// run runs the program as a person does. It must end with a code and print what a pattern says.
func (c *configRig) run(code int, prints string, args ...string) string {
	c.t.Helper()
	return c.runAs(filepath.Join(c.s.Data, "credentials.json"), code, prints, args...)
}

func (c *configRig) runAs(credentials string, code int, prints string, args ...string) string {
	c.t.Helper()
	cmd := exec.Command(ft.Binary(c.t), append([]string{"config"}, args...)...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), "GOZZARD_CREDENTIALS="+credentials, "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		c.t.Fatal(err)
	}
	if got != code || !regexp.MustCompile("(?m)"+prints).Match(out) {
		c.t.Fatalf("gozzard config %s ends with %d, want %d and %q:\n%s", strings.Join(args, " "), got, code, prints, out)
	}
	return string(out)
}

// apply applies the template with a port.
func (c *configRig) apply(port int) {
	c.t.Helper()
	c.write(filepath.Join(c.dir, "nginx.tpl"), fmt.Sprintf("listen ${bk_host_innerip}:%d;\n", port))
	c.write(filepath.Join(c.dir, "nginx.yaml"), fmt.Sprintf("biz: 2\nname: nginx\nfile_name: ${bk_host_innerip}.conf\nfolder: %s\nowner: nobody\n"+
		"group: nogroup\nmode: \"0640\"\ncontent_file: nginx.tpl\nbind: {processes: [%s]}\n", c.conf, strings.Join(c.ids, ", ")))
	c.run(0, "^applied: ", "apply", "-f", "nginx.yaml")
}

func (c *configRig) file(n int) string { return fmt.Sprintf("%s/127.0.0.%d.conf", c.conf, n) }

// has checks the file of a host.
func (c *configRig) has(n int, want string) {
	c.t.Helper()
	if got, err := os.ReadFile(c.file(n)); err != nil || string(got) != want {
		c.t.Errorf("host %d has %q, %v, want %q", n, got, err, want)
	}
}

// read reads a file of the hosts, "" if there is none.
func (c *configRig) read(name string) string {
	c.t.Helper()
	b, err := os.ReadFile(filepath.Join(c.conf, name))
	if err != nil && !os.IsNotExist(err) {
		c.t.Fatal(err)
	}
	return string(b)
}

// credentials writes a file with which the program runs as somebody.
func (c *configRig) credentials(as *tenant) string {
	c.t.Helper()
	file := filepath.Join(c.t.TempDir(), as.Cred.AppCode+".json")
	c.write(file, fmt.Sprintf(`{"url": %q, "bk_app_code": %q, "bk_app_secret": %q, "bk_username": "x"}`, as.Cred.URL, as.Cred.AppCode, as.Cred.Secret))
	if err := os.Chmod(file, 0o600); err != nil {
		c.t.Fatal(err)
	}
	return file
}

// startAll starts the processes, and stops them at the end of the test.
func (c *configRig) startAll() {
	c.t.Helper()
	all := func(verb string) *exec.Cmd {
		return exec.Command(ft.Binary(c.t), verb, "--biz", "2", "-e", "*.*.*.*.*", "--credentials", filepath.Join(c.s.Data, "credentials.json"))
	}
	if out, err := all("start").CombinedOutput(); err != nil {
		c.t.Fatalf("start: %v\n%s", err, out)
	}
	c.t.Cleanup(func() { _ = all("stop").Run() })
}

// version finds the newest version of the template.
func (c *configRig) version() string {
	c.t.Helper()
	m := regexp.MustCompile(`(?m)^(\d+) +active `).FindStringSubmatch(c.run(0, "active", "show", "nginx"))
	return m[1]
}

const idleProcess = "work_path: /data, pid_file: /run/nginx.pid, start_cmd: ./start.sh, stop_cmd: ./stop.sh"

// TestConfigCommand drives the built program with agents of their own: from a template in a file to files on two hosts, a change by
// hand, and back.
func TestConfigCommand(t *testing.T) {
	t.Parallel() // it mostly waits
	c := newConfigRig(t, 2, idleProcess)
	c.apply(80)
	first := c.version()
	c.run(0, `^listen 127\.0\.0\.2:80;$`, "render", "nginx", "--process", "42")
	c.run(0, "^release: 2 done of 2$", "release", "nginx", "--confirm", "2")
	c.has(1, "listen 127.0.0.1:80;\n")
	c.has(2, "listen 127.0.0.2:80;\n")

	// A change by hand is shown and kept; the other host goes on.
	c.apply(8080)
	c.write(c.file(1), "by hand\n")
	c.run(1, `(?s)changed by hand since the last release.*- by hand.*\+ listen 127\.0\.0\.1:8080;`, "diff", "nginx")
	c.run(6, `(?s)127\.0\.0\.1 .* failed .*has changed on the host.*release: 1 done, 1 failed of 2`, "release", "nginx")
	c.has(1, "by hand\n")
	c.has(2, "listen 127.0.0.2:8080;\n")
	c.run(0, "^release: 2 done \\(1 unchanged\\) of 2$", "release", "nginx", "--force")
	c.has(1, "listen 127.0.0.1:8080;\n")

	// Back, to what was released before. A change by hand is kept then, too.
	c.write(c.file(2), "again by hand\n")
	c.run(6, "^rollback: 1 done, 1 failed of 2$", "rollback", "nginx", "--version", first)
	c.has(2, "again by hand\n")
	c.run(0, "^rollback: 1 done of 1$", "rollback", "nginx", "--version", first, "--force", "-e", "*.*.*.*.42")
	c.has(1, "listen 127.0.0.1:80;\n")
	c.has(2, "listen 127.0.0.2:80;\n")
	c.run(0, `(?s) rollback +nginx +`+first+` +succeeded .* rollback +nginx +`+first+` +failed .* release +nginx `, "history")

	// Somebody without the right sees it and changes nothing, with force either.
	viewer := newTenant(t, c.s, "viewer", ft.J{"role": "viewer", "businesses": []int{2}})
	own := filepath.Join(t.TempDir(), "viewer.json")
	c.write(own, fmt.Sprintf(`{"url": %q, "bk_app_code": %q, "bk_app_secret": %q, "bk_username": "viewer"}`, viewer.Cred.URL, viewer.Cred.AppCode,
		viewer.Cred.Secret))
	if err := os.Chmod(own, 0o600); err != nil {
		t.Fatal(err)
	}
	c.runAs(own, 0, " nginx ", "list")
	for _, args := range [][]string{{"apply", "-f", "nginx.yaml"}, {"release", "nginx", "--force"}, {"diff", "nginx"}, {"remove", "nginx"},
		{"rollback", "nginx", "--version", first, "--force"}} {
		c.runAs(own, 4, "may not", args...)
	}
	c.has(1, "listen 127.0.0.1:80;\n")

	// What the policy of the host does not allow fails there, and forcing does not change that.
	c.write(filepath.Join(c.dir, "out.yaml"), "biz: 2\nname: out\nfile_name: out.conf\nfolder: /etc\nowner: nobody\ngroup: nogroup\ncontent: x\n"+
		"bind: {processes: [41]}\n")
	c.run(0, "^applied: ", "apply", "-f", "out.yaml")
	c.run(1, "policy", "release", "out", "--force")
	if _, err := os.Stat("/etc/out.conf"); err == nil {
		t.Error("/etc/out.conf was written")
	}
}

// servingProcess runs, and notes each reload in a file.
const servingProcess = `func_name: sleep, work_path: CONF, pid_file: CONF/HOST.pid, start_cmd: "sleep 1000 & echo $! >HOST.pid", stop_cmd: "kill $(cat HOST.pid)",
  restart_cmd: "kill $(cat HOST.pid); sleep 1000 & echo $! >HOST.pid", reload_cmd: "test ! -e HOST.broken && echo r >>HOST.reloads", start_check_secs: 1`

// TestConfigThen releases files with what should follow: only instances whose file has really changed are reloaded or restarted, by
// callers that may do that.
func TestConfigThen(t *testing.T) {
	t.Parallel() // it mostly waits
	c := newConfigRig(t, 2, servingProcess)
	c.startAll()
	reloaded := func(what string, one, two int) {
		t.Helper()
		if a, b := strings.Count(c.read("1.reloads"), "r"), strings.Count(c.read("2.reloads"), "r"); a != one || b != two {
			t.Errorf("%s: %d and %d reloads, want %d and %d", what, a, b, one, two)
		}
	}

	// A changed file is followed by a reload, and one that is there already by nothing.
	c.apply(80)
	first := c.version()
	c.run(0, `, reload$`, "release", "nginx", "--then", "reload")
	reloaded("release", 1, 1)
	c.run(0, `, unchanged\n(?s:.*)^release: 2 done \(2 unchanged\) of 2$`, "release", "nginx", "--then", "reload")
	reloaded("release of the same files", 1, 1)

	// A file that was not written is not followed by anything.
	c.apply(8080)
	c.write(c.file(1), "by hand\n")
	c.run(6, "^release: 1 done, 1 failed of 2$", "release", "nginx", "--then", "reload")
	reloaded("release over a change", 1, 2)

	// Somebody that may configure and not restart writes nothing with --then.
	configurer := newTenant(t, c.s, "configurer", ft.J{"role": "operator", "businesses": []int{2}, "accounts": []string{"*"}, "actions": []string{"configure"}})
	own := c.credentials(configurer)
	c.runAs(own, 4, "may not restart", "release", "nginx", "--force", "--then", "restart")
	c.has(1, "by hand\n")
	c.runAs(own, 0, "^release: 2 done \\(1 unchanged\\) of 2$", "release", "nginx", "--force")
	c.has(1, "listen 127.0.0.1:8080;\n")
	reloaded("release without more", 1, 2)

	// A rollback restarts, and the verdict is that of the restart, too.
	before := c.read("1.pid")
	c.run(0, "^rollback: 1 done of 1$", "rollback", "nginx", "--version", first, "-e", "*.*.*.*.41", "--then", "restart")
	c.has(1, "listen 127.0.0.1:80;\n")
	if now := c.read("1.pid"); now == before || now == "" {
		t.Errorf("the process is %q, and was %q before the restart", now, before)
	}
	c.write(filepath.Join(c.conf, "2.broken"), "")
	c.apply(9090)
	c.run(6, "the file was released, but reload failed", "release", "nginx", "--then", "reload")
	c.has(2, "listen 127.0.0.2:9090;\n")
	reloaded("a reload that fails", 2, 2)
	c.run(2, "--then", "release", "nginx", "--then", "stop")
}
