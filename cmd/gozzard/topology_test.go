package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/topology"
)

const twoSets = `biz: 2
name: 商店
sets:
  - id: 5
    name: front.end
    env: 3
    modules:
      - id: 21
        name: 网页
        instances:
          - id: 5
            name: 10.0.0.1_web
            host: {ip: 10.0.0.1, cloud: 0}
            processes: [{id: 46, name: nginx, proc_num: 2, user: root, work_path: /opt, pid_file: /run/nginx.pid,
                         start_cmd: ./start.sh, stop_cmd: ./stop.sh}]
          - id: 6
            name: 10.0.0.2_web
            host: {ip: 10.0.0.2, cloud: 0}
            processes: [{id: 48, name: nginx, user: root, work_path: /opt, pid_file: /run/nginx.pid,
                         start_cmd: ./start.sh}]
  - id: 7
    name: 测试
    env: 1
    modules:
      - {id: 23, name: db}
      - id: 24
        name: cache
        instances:
          - id: 8
            name: 10.0.0.1_cache
            host: {ip: 10.0.0.1, cloud: 0}
            processes: [{id: 49, name: redis, user: root, work_path: /opt, pid_file: /run/redis.pid,
                         start_cmd: ./start.sh, stop_cmd: ./stop.sh}]
`

// withShop applies the business, and has one of its processes run.
func withShop(t *testing.T) *cli {
	t.Helper()
	c := newCLI(t)
	c.want(0, "applied: business 2 is at version 1\n", "topology", "apply", "-f", c.file("shop.yaml", twoSets))
	c.report("a1", gozzard.Status{Key: topology.Key(2, "nginx", 1), State: gozzard.StateRunning, Hosted: true,
		PID: 5, CPU: 1.5, StartedAt: 1700000000 - 60, ReportedAt: 1700000000},
		gozzard.Status{Key: topology.Key(2, "redis", 1), State: gozzard.StateRunning, Hosted: true, PID: 6})
	return c
}

func TestTopologyApply(t *testing.T) {
	c := newCLI(t)
	shop := c.file("shop.yaml", twoSets)
	c.want(5, "", "topology", "tree")
	c.want(0, "+ business 2 商店\n+ set 5 front.end\n", "topology", "apply", "-f", shop, "--dry-run")
	c.want(0, "plan: 12 added, 0 changed, 0 removed\ndry run: nothing was changed\n", "topology", "apply", "-f", shop,
		"--dry-run")
	c.want(0, "plan: 12 added, 0 changed, 0 removed\napplied: business 2 is at version 1\n", "topology", "apply",
		"-f", shop)
	c.want(0, "nothing to change: business 2 is at version 1\n", "topology", "apply", "-f", shop)
	c.want(0, "nothing to change: business 2 is at version 1\n", "topology", "apply", "-f", shop, "--dry-run")

	out, _, _ := c.run(t.Context(), "topology", "export", "2")
	c.want(0, "nothing to change", "topology", "apply", "-f", c.file("again.yaml", out))
	out, _, _ = c.run(t.Context(), "topology", "export", "-o", "json")
	c.want(0, "nothing to change", "topology", "apply", "-f", c.file("again.json", out))

	changed := c.file("changed.yaml", strings.NewReplacer("proc_num: 2, ", "priority: 3, ", "- {id: 23, name: db}\n",
		"- {id: 25, name: db}\n").Replace(twoSets))
	want := `+ module 25 测试.db
~ process 46 front.end.网页.10.0.0.1_web.nginx
    proc_num: 2 -> 0
    priority: 0 -> 3
~ process 48 front.end.网页.10.0.0.2_web.nginx
    inst_id: 3 -> 2
- module 23 测试.db
plan: 1 added, 2 changed, 1 removed
applied: business 2 is at version 2
`
	c.want(0, want, "topology", "apply", "-f", changed)
	c.want(0, `"version": 2`, "topology", "apply", "-f", changed, "-o", "json")
	c.want(0, "BIZ  NAME  VERSION  SOURCE  SINCE                 LEFT\n2    商店  2        file    ", "topology", "list")
	c.want(0, "source: file", "topology", "list", "-o", "yaml")
	c.want(5, "", "topology", "export", "9")
	c.want(2, "", "topology", "export", "x")
	c.want(2, "", "topology", "nonsense")
	c.want(2, "", "topology", "apply")
	c.want(2, "", "topology", "apply", "-f", filepath.Join(c.dir, "none.yaml"))
}

func TestTopologyApplyRefuses(t *testing.T) {
	c := withShop(t)
	none := c.file("none.yaml", "biz: 2\nname: 商店\n")
	out, errs, code := c.run(t.Context(), "topology", "apply", "-f", none)
	if code != 1 || !strings.Contains(out, "- process 46 front.end.网页.10.0.0.1_web.nginx\n") ||
		!strings.Contains(errs, "gozzard: 2 of the instances to be removed are managed") ||
		!strings.Contains(errs,
			"\n  front.end.网页.10.0.0.1_web.nginx.46: GSEKIT_BIZ_2:nginx_1 is managed on 0:10.0.0.1\n") {
		t.Errorf("exit %d\n%s\n%s", code, out, errs)
	}

	if _, errs, code = c.run(t.Context(), "topology", "apply", "-f", none, "--dry-run"); code != 1 ||
		!strings.Contains(errs, "rejected without --prune: 2 instances") {
		t.Errorf("exit %d %s", code, errs)
	}

	if _, errs, code = c.run(t.Context(), "topology", "apply", "-f", none, "--prune"); code != 0 ||
		!strings.Contains(errs, "gozzard task 20") {
		t.Errorf("exit %d %s", code, errs)
	}

	bad := strings.NewReplacer("env: 1", "env: 7", "{id: 48, name: nginx", "{id: 46, nam: nginx").Replace(twoSets)
	_, errs, code = c.run(t.Context(), "topology", "apply", "-f", c.file("bad.yaml", bad))
	if lines := strings.Split(strings.TrimSpace(errs), "\n"); code != 2 || len(lines) < 4 ||
		!strings.HasPrefix(lines[1], "  line ") {
		t.Errorf("exit %d\n%s", code, errs)
	}
}

func TestTopologyTree(t *testing.T) {
	c := withShop(t)
	want := `BUSINESS         ID  ENV     SERVICES  PROCESSES  RUNNING  STOPPED  UNREGISTERED  MANAGED
商店             2   -       3         3          1        1        1             1
├─ front.end     5   formal  2         2          0        1        1             0
│  └─ 网页       21  -       2         2          0        1        1             0
└─ 测试          7   test    1         1          1        0        0             1
   ├─ db         23  -       0         0          0        0        0             0
   └─ cache      24  -       1         1          1        0        0             1
`
	out, _, code := c.run(t.Context(), "topology", "tree", "2")
	if squeeze(out) != squeeze(want) || code != 0 {
		t.Errorf("exit %d\n%s\nwant\n%s", code, out, want)
	}
	if out, _, _ := c.run(t.Context(), "topology", "tree", "--env", "formal"); strings.Contains(out, "测试") ||
		!strings.Contains(out, "└─ front.end") {
		t.Error(out)
	}

	c.want(0, `"unregistered": 1`, "topology", "tree", "-o", "json")
	c.want(2, "", "topology", "tree", "--env", "9")
	c.want(5, "", "topology", "tree", "9")
}

// squeeze removes the alignment of columns, except at the beginning of lines.
func squeeze(s string) string {
	var lines []string
	for line := range strings.Lines(s) {
		rest := strings.TrimLeft(line, " ")
		lines = append(lines, line[:len(line)-len(rest)]+strings.Join(strings.Fields(rest), " "))
	}
	return strings.Join(lines, "\n")
}

func TestPsOfABusiness(t *testing.T) {
	c := withShop(t)
	// The agents have not sent a complete report, so it is not known what else they have.
	want := `SET        MODULE  PROCESS  ID  HOST        STATE    PID  RESTARTS  CPU(HOST)  MEM  UPTIME
front.end  网页    nginx_1  46  0:10.0.0.1  running  5    0         1.5%       -    1m0s
front.end  网页    nginx_2  46  0:10.0.0.1  unknown  -    0         -          -    -
front.end  网页    nginx_1  48  0:10.0.0.2  unknown  -    0         -          -    -
`
	for _, args := range [][]string{
		{"ps", "-e", `front\.end.*.*.nginx.*`}, {"ps", "--set", "5"}, {"ps", "nginx", "--biz", "2"},
		{"ps", "--module", "网页", "--env", "3", "ng*"}, {"ps", "--env", "formal"},
	} {
		if out, errs, code := c.run(t.Context(), args...); out != want || code != 0 {
			t.Errorf("%v: exit %d\n%s%s", args, code, out, errs)
		}
	}

	c.want(0, "redis_1", "ps", "--biz", "2", "--state", "running", "--hosted")
	c.want(0, "10.0.0.1_cache", "ps", "-e", "*.*.*.redis.*", "-o", "wide")
	c.want(0, `"set_name": "front.end"`, "ps", "--biz", "2", "-o", "json", "--limit", "1")
	_, errs, _ := c.run(t.Context(), "ps", "--biz", "2", "--limit", "2")
	if !strings.Contains(errs, "2 of 4 instances listed") {
		t.Error(errs)
	}

	c.want(5, "", "ps", "--biz", "2", "--module", "none")
	c.want(5, "", "ps", "--biz", "9")
	c.want(2, "", "ps", "--set", "a*")
	_, errs, code := c.run(t.Context(), "ps", "-e", "front.end.*.*.nginx.*")
	if code != 2 || !strings.Contains(errs,
		`has 6: * matches everything, and a dot that belongs to a name is written \.`) {
		t.Errorf("exit %d: %s", code, errs)
	}

	if _, errs, _ = c.run(t.Context(), "ps", "-e", "a.b.[c.d.e"); !strings.Contains(errs,
		"field 3 (service instance)") {
		t.Error(errs)
	}
}

func TestOperateABusiness(t *testing.T) {
	c := withShop(t)
	c.decide(func(a *gozzard.OpReport, op *gozzard.Op, agent gozzard.AgentID) bool {
		if op.Action == gozzard.ActionStop && op.Key.Name == "nginx_1" && agent == "a2" {
			a.Phase, a.Outcome = gozzard.PhaseNever, gozzard.Outcome{Code: gozzard.CodeNoDefinition}
		}
		return true
	})

	c.want(0, "start: 4 done of 4\n", "start", "-e", "*.*.*.*.*")
	c.want(0, "start: 3 done of 3\n", "start", "--biz", "2", "--env", "3", "*")
	c.want(0, "manage: 2 done of 2\n", "manage", "--set", "front.end", "--host", "10.0.0.1")
	c.want(6, "stop: 3 done, 1 failed of 4\n", "stop", "--set", "5", "--set", "7")
	c.want(0, "unmanage: 1 done of 1\n", "unmanage", "--module", "cache")
	c.want(0, "unregister: 1 done of 1\n", "unregister", "redis", "--biz", "2")
	c.want(5, "", "restart", "--module", "cache", "nginx")
	c.want(5, "", "start", "--biz", "9", "-e", "*.*.*.*.*")

	for _, args := range [][]string{{"stop", "--biz", "2"}, {"stop", "--env", "3"}, {"stop", "-e", "*.*.*.*"},
		{"stop", "--module", "cache", "--all-hosts"},
		{"stop", "--module", "cache", "-n", "shop"}, {"stop"}, {"stop", "--biz", "2", "*", "--env", "x"}} {
		if _, errs, code := c.run(t.Context(), args...); code != 2 || errs == "" {
			t.Errorf("%v: exit %d: %s", args, code, errs)
		}
	}

	c.want(0, "applied", "topology", "apply", "-f",
		c.file("other.yaml", strings.Replace(twoSets, "biz: 2", "biz: 3", 1)))

	if _, errs, code := c.run(t.Context(), "stop", "-e", "*.*.*.*.*"); code != 2 ||
		!strings.Contains(errs, "choose a business: 2 (商店), 3 (商店)") {
		t.Errorf("exit %d: %s", code, errs)
	}
}
