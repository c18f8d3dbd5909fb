//go:build linux

package faults_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/gozzard/gozzard/client"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// TestRejectedDefinitionIsNotRecorded: what the policy of a host rejects does not replace the recorded definition. The
// process can be stopped and started as before. A process whose first definition is rejected is not registered.
func TestRejectedDefinitionIsNotRecorded(t *testing.T) {
	needs(t)
	t.Parallel()
	b := startBounded(t, "root", `{allow_root: true, users: ["*"], deny_uids: "", path_prefixes: [/tmp], trusted_paths: false,
namespaces: {"shop*": [nobody]}}`)
	good := b.daemon("gzgood", "nobody")
	must(t, b.operate("shop", good.Name, 0, good.Spec(nil)), 0)

	// The host rejects another definition of it.
	bad := *good
	bad.User = "daemon"
	must(t, b.operate("shop", good.Name, 0, bad.Spec(nil)), 65535)

	// Without a definition, the server sends the recorded one.
	mustRun(t, b.s, "stop", good.Name, "-n", "shop", "--all-hosts")
	mustRun(t, b.s, "start", good.Name, "-n", "shop", "--all-hosts")
	if n := good.Count("start"); n != 2 || good.PID() < 0 {
		t.Errorf("%d starts: %v", n, good.Calls())
	}

	// A first definition that the host rejects leaves nothing, however it comes.
	never := b.daemon("gznever", "daemon")
	register := func() ft.Entry {
		out := map[string]ft.Entry{}
		b.s.OK("register_proc_info", ft.J{"meta": ft.J{"namespace": "shop", "name": never.Name},
			"spec": never.Spec(nil), "hosts": host1}, &out)
		all := slices.Collect(maps.Values(out))
		if len(all) != 1 {
			t.Fatalf("register: %+v", out)
		}
		return all[0]
	}
	for range 2 {
		must(t, b.operate("shop", never.Name, 0, never.Spec(nil)), 65535)
		b.refused("register", register().Msg, "namespaces")
	}
	if out := mustRun(t, b.s, "ps"); strings.Contains(out, never.Name) || !strings.Contains(out, good.Name) {
		t.Errorf("ps lists what no host has: %s", out)
	}

	// It can be registered with a definition that the host takes, also after the server started again.
	b.s.Kill(syscall.SIGKILL)
	b.s.Again()
	b.s.AwaitReady()
	b.s.AwaitOnline(t, 1)
	never.User = "nobody"
	ft.Chown(t, never.Dir, never.User)
	must(t, register(), 0)
	mustRun(t, b.s, "start", never.Name, "-n", "shop", "--all-hosts")
}

// TestTR1RefusalsByPolicy: what the policy of a shared host rejects has its own row in the audit, by every door. It says
// which caller asked for what, as which account, on which host, and why. A task has one such row at most.
func TestTR1RefusalsByPolicy(t *testing.T) {
	needs(t)
	t.Parallel()
	b := startBounded(t, "root", `{allow_root: true, users: ["*"], deny_uids: "", path_prefixes: [/tmp], trusted_paths: false,
namespaces: {"shop*": [nobody], "JOB_BIZ_7": [nobody]}}`)
	d := b.daemon("gzrefused", "nobody")
	must(t, b.operate("shop-eu", d.Name, 0, d.Spec(nil)), 0)
	if rows := auditRows(t, b.s, "--action", "refused:policy"); len(rows) != 0 {
		t.Fatalf("nothing was rejected: %+v", rows)
	}

	// A forbidden account, by two doors.
	d.User = "daemon"
	must(t, b.operate("shop-eu", d.Name, 1, d.Spec(nil)), 65535)
	b.refused("Job", b.job(d, "daemon"), "namespaces")
	rows := auditRows(t, b.s, "--action", "refused:policy", "--account", "daemon", "--host", "127.0.0.1")
	if len(rows) != 2 {
		t.Fatalf("rows of the refusals: %+v", rows)
	}
	for _, r := range rows {
		if r.TaskID == "" || r.App != b.s.Cred.AppCode || r.Targets != 1 || r.Door == "" ||
			!strings.HasPrefix(r.Outcome, "refused by policy: ") || !strings.Contains(r.Outcome, "(namespaces in "+b.Rules) {
			t.Errorf("row of a refusal: %+v", r)
		}
	}

	// A forbidden program.
	b.WriteRules(t, `{allow_root: true, users: ["*"], deny_uids: "", shell: false, path_prefixes: [/tmp]}`)
	spec := d.Spec(nil)
	spec["control"] = ft.J{"start_cmd": "/usr/bin/env true", "stop_cmd": "./stop.sh"}
	must(t, b.operate("shop-eu", d.Name, 0, spec), 65535)
	rows = auditRows(t, b.s, "--action", "refused:policy")
	if len(rows) != 3 || !strings.Contains(rows[2].Outcome, "(path_prefixes in "+b.Rules) {
		t.Fatalf("rows of the refusals: %+v", rows)
	}

	// It shows the process, the action and the host. The row of the operation still has the count of its verdicts.
	var detail client.AuditDetail
	auditJSON(t, b.s, &detail, "show", strconv.FormatInt(rows[2].Seq, 10))
	if len(detail.Hosts) != 1 || detail.Hosts[0].IP != "127.0.0.1" || len(detail.Items) != 1 ||
		detail.Items[0].Action != "start" || detail.Items[0].Namespace != "shop-eu" || detail.Items[0].Name != d.Name ||
		!strings.Contains(string(detail.Definitions[detail.Items[0].Definition]), "/usr/bin/env true") {
		t.Errorf("the row shows %+v", detail)
	}
	auditJSON(t, b.s, &detail, "show", strconv.FormatInt(rows[2].Ref, 10))
	if detail.Row.Result != "refused=1" {
		t.Errorf("the row of the operation: %+v", detail.Row)
	}
	if len(d.Calls()) != 1 {
		t.Errorf("commands ran: %v", d.Calls())
	}
}
