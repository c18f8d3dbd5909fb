//go:build linux

package fleettest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// shop runs the definitions of the folder examples with the built program.
type shop struct {
	*testing.T
	server *ft.Server
	dir    string // in place of /srv/shop
	ports  map[string]string
}

// newShop starts a server and one agent of an account, and copies the examples.
func newShop(t *testing.T, account string) *shop {
	t.Helper()
	x := &shop{T: t, server: ft.StartServer(t, ""), ports: map[string]string{}}
	for _, port := range []string{"8081", "6379", "9000"} {
		x.ports[port] = strconv.Itoa(ft.FreePort(t))
	}
	if account == "root" {
		x.server.StartAgent(t, 1, "")
		x.dir = openFolder(t)
	} else {
		rules := "users: ['" + account + "']\ndeny_uids: ''\npath_prefixes: [/]\ntrusted_paths: false\n"
		x.dir = filepath.Join(x.server.StartAgentAs(t, 1, account, nil, rules).Dir, "shop")
		x.must(os.Mkdir(x.dir, 0o755))
		ft.Chown(t, x.dir, account)
	}
	t.Cleanup(func() { ft.KillIn(t, x.dir) })
	x.copyExamples(account)
	return x
}

func (x *shop) must(err error) {
	x.Helper()
	if err != nil {
		x.Fatal(err)
	}
}

// copyExamples copies the examples and replaces the folder, the ports and the account in them.
func (x *shop) copyExamples(account string) {
	x.Helper()
	root := filepath.Join("..", "..", "examples")
	// All at once: the name of the folder may have the digits of a port in it.
	words := []string{"/srv/shop", x.dir, "user: root", "user: " + account}
	for port, free := range x.ports {
		words = append(words, port, free)
	}

	x.must(filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil || rel == "." {
			return err
		}

		to := filepath.Join(x.dir, rel)
		defer ft.Chown(x, to, account)
		if d.IsDir() {
			return os.Mkdir(to, 0o755)
		}

		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text := strings.NewReplacer(words...).Replace(string(b))

		fi, err := d.Info()
		if err != nil {
			return err
		}
		return os.WriteFile(to, []byte(text), fi.Mode().Perm())
	}))
}

// gozzard runs the command line. It must succeed.
func (x *shop) gozzard(args ...string) string {
	x.Helper()
	out, err := x.try(args...)
	if err != nil {
		x.Fatalf("gozzard %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (x *shop) try(args ...string) (string, error) {
	cmd := exec.Command(ft.Binary(x), args...)
	cmd.Env = append(os.Environ(), "GOZZARD_CREDENTIALS="+filepath.Join(x.server.Data, "credentials.json"))
	b, err := cmd.CombinedOutput()
	return string(b), err
}

// register registers an example and starts its processes.
func (x *shop) register(example string, names ...string) {
	x.Helper()
	x.gozzard("register", "-f", filepath.Join(x.dir, example, "definition.yaml"))
	x.gozzard(append([]string{"start", "--all-hosts", "-n", "shop"}, names...)...)
}

func (x *shop) stop(names ...string) {
	x.Helper()
	x.gozzard(append([]string{"stop", "--all-hosts", "-n", "shop"}, names...)...)
	for _, name := range names {
		if pid := x.pid("shop", name); pid > 0 {
			x.Errorf("%s still runs: pid %d", name, pid)
		}
	}
}

// pid is the process of a definition, 0 if it does not run.
func (x *shop) pid(namespace, name string) int {
	x.Helper()
	status, body := x.server.Get(x, "/api/v1/processes?namespace="+namespace+"&name="+name)
	var page struct {
		Processes []struct {
			PID   int    `json:"pid"`
			State string `json:"state"`
		} `json:"processes"`
	}
	if err := json.Unmarshal([]byte(body), &page); err != nil || status != http.StatusOK {
		x.Fatalf("%d %s", status, body)
	}
	if len(page.Processes) != 1 || page.Processes[0].State != "running" {
		return 0
	}
	return page.Processes[0].PID
}

// comesBack kills a process and waits for the next one.
func (x *shop) comesBack(name string) {
	x.Helper()
	before := x.pid("shop", name)
	if before <= 0 {
		x.Fatalf("%s does not run", name)
	}
	x.must(syscall.Kill(before, syscall.SIGKILL))
	ft.Until(x, time.Minute, func() string { return name + " does not come back" }, func() bool {
		pid := x.pid("shop", name)
		return pid > 0 && pid != before
	})
}

// file waits until a file of an example has a text.
func (x *shop) file(name, want string) {
	x.Helper()
	var got []byte
	ft.Until(x, time.Minute, func() string { return fmt.Sprintf("%s has %q, want %q", name, got, want) }, func() bool {
		got, _ = os.ReadFile(filepath.Join(x.dir, name))
		return strings.Contains(string(got), want)
	})
}

// answers waits until a URL answers with a text.
func (x *shop) answers(url, want string) {
	x.Helper()
	var last string
	ft.Until(x, time.Minute, func() string { return url + ": " + last }, func() bool {
		res, err := http.Get(url)
		if err != nil {
			last = err.Error()
			return false
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		last = string(b)
		return strings.Contains(last, want)
	})
}

func (x *shop) proc(pid int, file string) string {
	x.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	x.must(err)
	return string(b)
}

// TestExamples runs every example as root, and as an ordinary account without a cgroup.
func TestExamples(t *testing.T) {
	t.Parallel() // it mostly waits
	accounts := []string{"root", "nobody"}
	if os.Geteuid() != 0 {
		own, err := user.Current()
		if err != nil {
			t.Fatal(err)
		}
		accounts = []string{own.Username}
	}
	for _, account := range accounts {
		t.Run(account, func(t *testing.T) {
			x := newShop(t, account)
			for name, run := range map[string]func(*shop){
				"nginx": (*shop).nginx, "redis": (*shop).redis, "daemon": (*shop).daemon, "python": (*shop).python,
				"periodic": (*shop).periodic, "one-shot": (*shop).oneShot, "instances": (*shop).instances,
				"business": (*shop).business,
			} {
				t.Run(name, func(t *testing.T) {
					t.Parallel() // most of the time is the start check
					y := *x
					y.T = t
					run(&y)
				})
			}
		})
	}

	folders, err := os.ReadDir(filepath.Join("..", "..", "examples"))
	if err != nil || len(folders) != 11 { // eight examples, the page, and two folders that TestPrometheusPages tries
		t.Errorf("%d files: is each example run here? %v", len(folders), err)
	}
}

func (x *shop) nginx() {
	x.register("nginx", "nginx")
	x.answers("http://127.0.0.1:"+x.ports["8081"]+"/", "shop")
	pid := x.pid("shop", "nginx")
	if limits := strings.Join(strings.Fields(x.proc(pid, "limits")), " "); !strings.Contains(limits, "Max open files 4096 8192") {
		x.Error(limits)
	}
	x.gozzard("reload", "nginx", "--all-hosts", "-n", "shop")
	x.comesBack("nginx")
	x.answers("http://127.0.0.1:"+x.ports["8081"]+"/", "shop")
	x.stop("nginx")
	x.file("nginx/error.log", "")
}

func (x *shop) redis() {
	x.register("redis", "redis")
	conn, err := net.Dial("tcp", "127.0.0.1:"+x.ports["6379"])
	x.must(err)
	defer conn.Close()
	_, err = io.WriteString(conn, "SET a 1\r\n")
	x.must(err)
	answer := make([]byte, 5)
	_, err = io.ReadFull(conn, answer)
	if x.must(err); string(answer) != "+OK\r\n" {
		x.Errorf("%q", answer)
	}
	fi, err := os.Stat(filepath.Join(x.dir, "redis", "appendonlydir"))
	x.must(err)
	if mode := fi.Mode().Perm(); mode&0o007 != 0 {
		x.Errorf("the umask does not hold: %v", mode)
	}
	x.comesBack("redis")
	x.stop("redis")
}

func (x *shop) daemon() {
	x.register("daemon", "orders")
	x.file("daemon/orders.settings", "production 64m 128m")
	x.comesBack("orders")
	x.stop("orders")
}

func (x *shop) python() {
	x.register("python", "files")
	x.answers("http://127.0.0.1:"+x.ports["9000"]+"/definition.yaml", "http.server")
	pid := x.pid("shop", "files")
	if env := x.proc(pid, "environ"); !strings.Contains(env, "PYTHONUNBUFFERED=1\x00") {
		x.Errorf("%q", env)
	}
	if stat := strings.Fields(x.proc(pid, "stat")); stat[18] != "5" {
		x.Errorf("nice %s", stat[18])
	}
	x.comesBack("files")
	x.answers("http://127.0.0.1:"+x.ports["9000"]+"/", "definition.yaml")
	x.stop("files")
}

func (x *shop) periodic() {
	x.register("periodic", "report")
	ft.Until(x, time.Minute, func() string { return "it does not run again and again" }, func() bool {
		b, _ := os.ReadFile(filepath.Join(x.dir, "periodic", "report.log"))
		return strings.Count(string(b), "\n") >= 3
	})
	x.stop("report")
}

func (x *shop) oneShot() {
	x.register("one-shot", "migrate")
	x.file("one-shot/migrated", "migrated by migrate")
}

func (x *shop) instances() {
	x.register("instances", "worker-1", "worker-2", "worker-3", "queue")
	queue := x.pid("shop", "queue")
	for i := 1; i <= 3; i++ {
		x.file(fmt.Sprintf("instances/worker-%d", i), "orders")
		name := fmt.Sprintf("worker-%d", i)
		worker := x.pid("shop", name)
		if before, after := startOf(x, queue), startOf(x, worker); before >= after {
			x.Errorf("%s started at %d, queue at %d", name, after, before)
		}
		if line := x.proc(worker, "cmdline"); !strings.HasSuffix(line, fmt.Sprintf("--number\x00%d\x00", i)) {
			x.Errorf("%q", line)
		}
	}
	x.stop("queue", "worker-1", "worker-2", "worker-3")

	// A circle is rejected by the host, and says why.
	doc := filepath.Join(x.dir, "instances", "circle.yaml")
	x.must(os.WriteFile(doc, []byte("namespace: shop\nname: queue\nafter: [worker-2]\ncommand: sleep 1\n"), 0o644))
	if out, err := x.try("register", "-f", doc); err == nil || !strings.Contains(out, "would be a circle") {
		x.Errorf("%v %s", err, out)
	}
}

// startOf is when a process started, in ticks.
func startOf(x *shop, pid int) int {
	x.Helper()
	_, rest, _ := strings.Cut(x.proc(pid, "stat"), ") ")
	n, err := strconv.Atoi(strings.Fields(rest)[19])
	x.must(err)
	return n
}

func (x *shop) business() {
	doc := filepath.Join(x.dir, "business", "business.yaml")
	x.gozzard("topology", "apply", "-f", doc)
	x.gozzard("start", "--biz", "12", "front")
	for i := 1; i <= 2; i++ {
		x.file(fmt.Sprintf("business/front-%d.settings", i), fmt.Sprintf("Shanghai front %d", i))
		if x.pid("GSEKIT_BIZ_12", fmt.Sprintf("front_%d", i)) <= 0 {
			x.Errorf("instance %d does not run", i)
		}
	}
	x.gozzard("stop", "--biz", "12", "front")
	if out := x.gozzard("topology", "export", "12"); !strings.Contains(out, `memory: "64M"`) {
		x.Error(out)
	}
}
