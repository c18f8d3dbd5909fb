//go:build linux

package fleettest_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// TestTI3SharedHostTwoAccounts: two tenants share a host, each with an account and a real process. They send random
// requests by all doors, for both businesses and accounts. No command of one runs as the account of the other or as
// root, and the process of each keeps running untouched by the other.
func TestTI3SharedHostTwoAccounts(t *testing.T) {
	s := ft.StartServer(t, "")
	s.StartAgent(t, 1, "")
	l := newLoot(t)
	admin := &tenant{API: s.API, t: t}
	accounts := map[string]string{"shop": "nobody", "pay": "daemon"}
	bizOf := map[string]int{"shop": 2, "pay": 3}
	tenants, daemons := map[string]*tenant{}, map[string]*ft.Daemon{}
	for name, account := range accounts {
		biz := bizOf[name]
		if status, text := admin.native(http.MethodPut, fmt.Sprint("/api/v1/topology/", biz),
			l.business(biz, 1, account, name+"-job"), nil); status != http.StatusOK {
			t.Fatal(text)
		}
		tenants[name] = newTenant(t, s, name, ft.J{"role": "operator", "businesses": []int{biz},
			"accounts": []string{account}})

		// A real process of each.
		d := ft.NewDaemon(t, l.dir, "gz"+name)
		ft.Chown(t, d.Dir, account)
		d.User, daemons[name] = account, d
		task := tenants[name].Operate("operate_proc_multi", ft.J{"proc_operate_req": []ft.J{{
			"meta":    ft.J{"namespace": fmt.Sprintf("JOB_BIZ_%d", biz), "name": "real", "labels": ft.J{"proc_name": "x"}},
			"op_type": 0, "hosts": []ft.J{ft.Host(1)}, "spec": d.Spec(nil)}}})
		if res := tenants[name].Await(task); d.PID() < 2 {
			t.Fatalf("%s cannot run its process: %v", name, res)
		}
	}
	pids := map[string]int{"shop": daemons["shop"].PID(), "pay": daemons["pay"].PID()}

	rng := rand.New(rand.NewPCG(11, 1))
	pick := func(list ...string) string { return list[rng.IntN(len(list))] }
	done := 0
	var wait []func() // for verdicts
	send := func(c *tenant, method, path string, body ft.J) {
		t.Helper()
		var made struct {
			Task string `json:"task_id"`
		}
		if status, _ := c.native(method, path, body, &made); status == http.StatusAccepted {
			wait = append(wait, func() { c.settled(made.Task) })
		}
	}
	for range 150 {
		name := pick("shop", "pay")
		c, other := tenants[name], map[string]string{"shop": "pay", "pay": "shop"}[name]
		target := pick(name, other)
		biz, account := bizOf[target], pick(accounts[name], accounts[name], accounts[other], "root", "0")
		space := pick(fmt.Sprintf("JOB_BIZ_%d", biz), fmt.Sprintf("GSEKIT_BIZ_%d", biz))
		file := name + "-" + account
		switch rng.IntN(5) {
		case 0:
			send(c, http.MethodPost, "/api/v1/operations", ft.J{"action": pick("reload", "reload", "stop", "kill", "unhost"),
				"namespace": space, "names": []string{pick("p", "q")}, "hosts": []ft.J{{"cloud": 0, "ip": "127.0.0.1"}},
				"spec": l.spec(file, account)})
		case 1:
			ans, err := c.TryWith("/api/c/compapi/v2/gse/operate_proc_multi/", ft.J{"proc_operate_req": []ft.J{
				{"meta": ft.J{"namespace": space, "name": pick("p", "q"), "labels": ft.J{"proc_name": "x"}},
					"op_type": []int{1, 8, 8, 9}[rng.IntN(4)], "hosts": []ft.J{ft.Host(1)}, "spec": l.spec(file, account)},
				{"meta": ft.J{"namespace": space, "name": "r", "labels": ft.J{"proc_name": "x"}},
					"op_type": 8, "hosts": []ft.J{ft.Host(1)}, "spec": l.spec(file, account)}}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if task := taskOf(ans); task != "" { // a request of which nothing is permitted makes no task
				wait = append(wait, func() { c.Await(task) })
			}
		case 2: // the process of the other tenant, without a definition
			send(c, http.MethodPost, "/api/v1/operations", ft.J{"action": pick("stop", "kill", "restart", "unhost"),
				"namespace": fmt.Sprintf("JOB_BIZ_%d", bizOf[other]), "names": []string{"real"},
				"hosts": []ft.J{{"cloud": 0, "ip": "127.0.0.1"}}})
			send(c, http.MethodDelete, "/api/v1/processes", ft.J{"namespace": fmt.Sprintf("JOB_BIZ_%d", bizOf[other]),
				"names": []string{"real"}, "hosts": []ft.J{{"cloud": 0, "ip": "127.0.0.1"}}})
		case 3:
			ans, err := c.TryWith("/api/c/compapi/v2/job/operate_process/", ft.J{"bk_biz_id": biz, "op_type": 8,
				"process_infos": []ft.J{{"setup_path": l.dir, "proc_name": "gzloot", "pid_path": l.dir + "/pid",
					"account": account, "start_cmd": l.command(file), "stop_cmd": l.command(file),
					"restart_cmd": l.command(file), "reload_cmd": l.command(file), "kill_cmd": l.command(file), "type": 1,
					"ip_list": []ft.J{{"bk_cloud_id": 0, "ip": "127.0.0.1"}}}}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if made := taskOf(ans); made != "" {
				wait = append(wait, func() { c.Await(made) })
			}
		case 4:
			_, _ = c.TryWith(kit+"job/create_job/", ft.J{"bk_biz_id": biz, "job_object": "process", "job_action": "stop",
				"expression_scope": ft.J{"bk_set_env": "3", "bk_set_name": "*", "bk_module_name": "*",
					"service_instance_name": "*", "bk_process_name": "*", "bk_process_id": "*"}}, nil)
		}
		done++
	}

	for _, await := range wait {
		await()
	}

	// Whatever ran, ran as the account of its tenant.
	ran := 0
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name, _, ok := strings.Cut(e.Name(), "-")
		if !ok || e.IsDir() {
			continue
		}
		for _, who := range strings.Fields(l.taken(e.Name())) {
			if ran++; who != accounts[name] {
				t.Errorf("a command of %s ran as %s (%s)", name, who, e.Name())
			}
		}
	}
	for name, d := range daemons {
		if d.PID() != pids[name] || d.Count("start") != 1 || d.Count("stop")+d.Count("kill")+d.Count("restart") > 0 {
			t.Errorf("the process of %s was touched: %v", name, d.Calls())
		}
	}
	if ran < 10 {
		t.Errorf("only %d commands ran in %d requests: nothing is proven", ran, done)
	}
	t.Logf("%d requests, %d commands", done, ran)
}

// keepSecret gives the files of a copied data folder the modes that a server wants.
func keepSecret(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return os.Chmod(path, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// taskOf is the id of a task of the Job door, "" when there is none.
func taskOf(ans ft.Answer) string {
	_, rest, ok := strings.Cut(string(ans.Data), `"bk_gse_taskid":"`)
	if !ok {
		return ""
	}
	id, _, _ := strings.Cut(rest, `"`)
	return id
}

// TestTE12AgentComparesTheAccount: the account that a caller has a right to goes with the signed command. Here the server
// has an older copy of its record, so it takes a process for one of the caller's account. The agent knows better and
// rejects the command.
func TestTE12AgentComparesTheAccount(t *testing.T) {
	s := ft.StartServer(t, "")
	s.StartAgent(t, 1, "")
	l := newLoot(t)
	admin := &tenant{API: s.API, t: t}
	if status, text := admin.native(http.MethodPut, "/api/v1/topology/2", l.business(2, 1, "nobody", "x"),
		nil); status != http.StatusOK {
		t.Fatal(text)
	}
	shop := newTenant(t, s, "shop", ft.J{"role": "operator", "businesses": []int{2}, "accounts": []string{"nobody"}})
	define := func(c *tenant, user string) {
		t.Helper()
		if text := c.operate(http.MethodPut, "/api/v1/processes", ft.J{"namespace": "JOB_BIZ_2", "name": "p",
			"hosts": []ft.J{{"cloud": 0, "ip": "127.0.0.1"}}, "spec": l.spec("x", user)}); strings.Contains(text, "refused") {
			t.Fatal(text)
		}
	}

	// Record the process for one account, copy the record, and give the process to another account.
	define(shop, "nobody")
	s.Kill(syscall.SIGTERM)
	older := t.TempDir()
	if err := os.CopyFS(older, os.DirFS(s.Data)); err != nil {
		t.Fatal(err)
	}
	keepSecret(t, older)
	s.Again()
	s.AwaitReady()
	s.AwaitOnline(t, 1)
	define(admin, "daemon")
	s.Kill(syscall.SIGTERM)

	// The older record says nobody, the host daemon.
	if err := os.Rename(s.Data, filepath.Join(t.TempDir(), "newer")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(older, s.Data); err != nil {
		t.Fatal(err)
	}
	s.Again()
	s.AwaitReady()
	s.AwaitOnline(t, 1)
	unregister := ft.J{"namespace": "JOB_BIZ_2", "names": []string{"p"},
		"hosts": []ft.J{{"cloud": 0, "ip": "127.0.0.1"}}}
	text := shop.operate(http.MethodDelete, "/api/v1/processes", unregister)
	if !strings.Contains(text, "has the account daemon, and the command is for the account nobody") {
		t.Errorf("the agent carried out a command for another account: %s", text)
	}
	if text := admin.operate(http.MethodDelete, "/api/v1/processes", unregister); strings.Contains(text, "refused") {
		t.Errorf("an admin of the whole fleet is held to an account: %s", text)
	}
}
