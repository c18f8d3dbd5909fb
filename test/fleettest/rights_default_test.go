//go:build linux

package fleettest_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/procfs"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// unnamed is a host of root that two teams share, and whose policy the test changes.
type unnamed struct {
	t     *testing.T
	s     *ft.Server
	agent *ft.AgentHome
	admin *tenant
	loot  *loot
}

// rules are the policy of the host: root is allowed, so nothing but the rules about default accounts protects root.
func (u *unnamed) rules(more string) string {
	return "{allow_root: true, users: [\"*\"], deny_uids: \"\", path_prefixes: [/tmp], trusted_paths: false" + more + "}\n"
}

// choose writes a default account into the policy and waits until the server knows it.
func (u *unnamed) choose(account string) {
	u.t.Helper()
	u.agent.WriteRules(u.t, u.rules(", default_user: "+account))
	ft.Until(u.t, time.Minute, func() string { return "the server does not know the default account " + account }, func() bool {
		_, hosts := u.admin.native(http.MethodGet, "/api/v1/hosts", nil, nil)
		return strings.Contains(hosts, `"default_account":"`+account+`"`)
	})
}

// cmdb registers as bk-cmdb 3.2 does: without an account. It returns the text of the entry.
func (u *unnamed) cmdb(c *tenant, name string) string {
	u.t.Helper()
	spec := u.loot.spec(name, "")
	delete(spec["identity"].(ft.J), "user")
	ans := c.Call("register_proc_info", ft.J{"meta": ft.J{"namespace": "JOB_BIZ_2", "name": name}, "op_type": 3,
		"hosts": []ft.J{ft.Host(1)}, "spec": spec})
	return string(ans.Raw)
}

// start starts a registered process by GSE's first form, without a definition.
func (u *unnamed) start(c *tenant, name string) ft.Entry {
	u.t.Helper()
	task := c.Operate("operate_proc", ft.J{"meta": ft.J{"namespace": "JOB_BIZ_2", "name": name}, "op_type": 0,
		"hosts": []ft.J{ft.Host(1)}})
	for _, e := range c.Await(task) {
		return e
	}
	return ft.Entry{}
}

// TestTE18NoAccountIsNeverRoot: a definition without an account is recorded, and runs as the default account of the host
// or not at all, by every door. Leaving the account out gives a caller no account that its grant does not name: neither
// root nor the default account of a shared host.
func TestTE18NoAccountIsNeverRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root")
	}
	t.Parallel()
	u := &unnamed{t: t, s: ft.StartServer(t, ""), loot: newLoot(t)}
	u.agent = u.s.StartAgentAs(t, 1, "root", nil, u.rules(""))
	u.admin = &tenant{API: u.s.API, t: t}
	if status, text := u.admin.native(http.MethodPut, "/api/v1/topology/2", u.loot.business(2, 1, "nobody", "x"),
		nil); status != http.StatusOK {
		t.Fatal(text)
	}
	grant := func(accounts ...string) ft.J {
		return ft.J{"role": "operator", "businesses": []int{2}, "accounts": accounts}
	}
	shop, web := newTenant(t, u.s, "shop", grant("nobody")), newTenant(t, u.s, "web", grant("daemon"))
	rooted := newTenant(t, u.s, "rooted", grant("root"))

	// Without a default account: registering is accepted, running is not, and the entry says what to do.
	if text := u.cmdb(u.admin, "old"); !strings.Contains(text, `"error_code":0`) {
		t.Errorf("cmdb cannot register: %s", text)
	}
	hostname, _ := os.Hostname()
	for _, words := range []string{"on host " + hostname + " is not allowed by local policy (default_user in " + u.agent.Rules,
		"it names no account (user), and this host has no default account", "writes into this file: default_user: ACCOUNT"} {
		if e := u.start(u.admin, "old"); e.Code == 0 || !strings.Contains(e.Msg, words) {
			t.Errorf("start without an account: %+v, want %s", e, words)
		}
	}
	for door, text := range u.admin.byDoors(u.loot, 2, 1, "", "unnamed") {
		if door != "job" && door != "put" && !strings.Contains(text, "default_user in") { // Job's default is root, by its contract
			t.Errorf("%s without a default account: %s", door, text)
		}
	}
	if got := u.loot.taken("old") + strings.ReplaceAll(u.loot.taken("unnamed"), "root", ""); got != "" {
		t.Errorf("commands without an account ran as %q", got)
	}
	if n := strings.Count(u.loot.taken("unnamed"), "root"); n > 1 { // only Job's
		t.Errorf("%d commands without an account ran as root", n)
	}

	// A caller without a right to root cannot even register there.
	if text := u.cmdb(shop, "shop1"); !strings.Contains(text, "not permitted") || !strings.Contains(text, "name one") {
		t.Errorf("shop registered without an account: %s", text)
	}

	// With one: what was registered before runs as that account.
	u.choose("daemon")
	if e := u.start(u.admin, "old"); u.loot.taken("old") != "daemon" {
		t.Errorf("ran as %q: %+v", u.loot.taken("old"), e)
	}

	// The grant counts: of the default account, not of another one and not of root.
	for door, text := range web.byDoors(u.loot, 2, 1, "", "web") {
		if door != "job" && strings.Contains(text, "permitted") {
			t.Errorf("%s with the right to the default account: %s", door, text)
		}
	}
	if got := u.loot.taken("web"); got == "" || strings.Trim(strings.ReplaceAll(got, "daemon", ""), " ") != "" {
		t.Errorf("the processes of web ran as %q", got)
	}
	for _, c := range []*tenant{shop, rooted} {
		for door, text := range c.byDoors(u.loot, 2, 1, "", "foreign") {
			if door == "job" && c == rooted {
				continue
			}
			if !strings.Contains(text, "not permitted") {
				t.Errorf("%s of %s without an account: %s", door, c.Cred.AppCode, text)
			}
		}
		if e := u.start(c, "old"); !strings.Contains(e.Msg, "not permitted") {
			t.Errorf("%s started what runs as the default account: %+v", c.Cred.AppCode, e)
		}
	}
	if got := u.loot.taken("foreign"); strings.Contains(got, "daemon") || strings.Count(got, "root") > 1 {
		t.Errorf("foreign commands ran as %q", got)
	}

	u.changed(web, shop)
}

// changed is the second half: the owner of the host changes the default account.
func (u *unnamed) changed(web, shop *tenant) {
	t := u.t
	d := ft.NewDaemon(t, u.agent.Dir, "gzdefault")
	ft.Chown(t, d.Dir, "daemon")
	d.User = ""
	if text := web.operate(http.MethodPost, "/api/v1/operations", ft.J{"action": "start", "namespace": "JOB_BIZ_2",
		"names": []string{d.Name}, "hosts": []ft.J{{"cloud": 0, "ip": "127.0.0.1"}}, "spec": d.Spec(nil)}); d.PID() < 0 {
		t.Fatalf("cannot start: %s", text)
	}
	owner := func() string {
		has, err := procfs.New("/proc").Credentials(d.PID())
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(has.UIDs[0])
	}
	if got, want := owner(), fmt.Sprint(ft.Credential(t, "daemon").Uid); got != want {
		t.Fatalf("runs as %s, not %s", got, want)
	}

	// At once, the caller of the former default account does not get the new one, whether the server knows it or not.
	u.agent.WriteRules(t, u.rules(", default_user: nobody"))
	if text := web.operate(http.MethodPost, "/api/v1/operations", ft.J{"action": "start", "namespace": "JOB_BIZ_2",
		"names": []string{"late"}, "hosts": []ft.J{{"cloud": 0, "ip": "127.0.0.1"}},
		"spec": u.loot.spec("late", "")}); u.loot.taken("late") != "" {
		t.Errorf("web ran as %s: %s", u.loot.taken("late"), text)
	}
	u.choose("nobody")

	// What is defined keeps its account: when it dies it comes back as before, also with another agent.
	for _, again := range []bool{false, true} {
		before := d.PID()
		if again {
			u.agent.Kill(9)
			ft.KillPID(t, before)
			u.s.AgainOnline(t, u.agent.Program)
		} else {
			ft.KillPID(t, before)
		}
		ft.Until(t, time.Minute, u.agent.Output, func() bool { return d.PID() > 0 && d.PID() != before })
		if got, want := owner(), fmt.Sprint(ft.Credential(t, "daemon").Uid); got != want {
			t.Errorf("came back as %s, not %s", got, want)
		}
	}

	// Root as the default account must be allowed like any root.
	u.agent.WriteRules(t, strings.Replace(u.rules(", default_user: root"), "allow_root: true", "allow_root: false", 1))
	u.s.AwaitOnline(t, 1)
	text := u.admin.operate(http.MethodPost, "/api/v1/operations", ft.J{"action": "start", "namespace": "JOB_BIZ_2",
		"names": []string{"rooted"}, "hosts": []ft.J{{"cloud": 0, "ip": "127.0.0.1"}}, "spec": u.loot.spec("rooted", "")})
	if !strings.Contains(text, "account root is not allowed by local policy (allow_root in") || u.loot.taken("rooted") != "" {
		t.Errorf("ran as %q: %s", u.loot.taken("rooted"), text)
	}
}
