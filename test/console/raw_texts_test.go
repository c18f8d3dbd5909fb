//go:build linux

package console_test

import (
	"bytes"
	"os/user"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/test/console"
	"github.com/gozzard/gozzard/test/fleettest"
)

// TestTextsOfAgents: what an agent says is Chinese on the Chinese page, and stays as it is if nobody knows it. An action
// that needs a second person says so before it is sent.
func TestTextsOfAgents(t *testing.T) {
	t.Parallel()
	info := rawInfo()
	info.Degraded = []string{"no cgroup v2 is mounted", "a feature of the future"}
	f, h := console.StartRawHost(t, info, "--second-person", "root-hosts=0")
	f.AddUser(t, "ada", password, client.Grant{Role: "admin"})
	web := gozzard.Key{Namespace: "shop", Name: "web"}
	h.Report(gozzard.Report{Kind: gozzard.ReportStatus, Round: 1, Parts: 1, Statuses: []gozzard.Status{{
		Key: web, Wanted: gozzard.StateRunning, State: gozzard.StateStopped, Condition: gozzard.ConditionFailed,
		Kind: gozzard.ShownResident, PID: -1, ReportedAt: time.Now().Unix(), Message: "exited with 7"}}})
	h.Report(gozzard.Report{Kind: gozzard.ReportEvents, Events: []gozzard.Event{{Seq: 1, Key: web,
		Kind: gozzard.EventStartFailed, At: time.Now().UnixMilli(), Message: "exited with 7"}}})

	p := f.Open(t)
	p.SignIn("ada", password)
	p.Wait("navigation", "Pages")
	p.Go("/console/hosts/raw-1")
	p.WaitText("no cgroup v2 is mounted")
	p.WaitText("exited with 7")
	p.Click("button", "中文")
	p.WaitText("没有挂载 cgroup v2")
	p.WaitText("a feature of the future")
	p.WaitText("退出码为 7")
	p.WaitNoText("exited with 7")

	// An event that comes while the page is open.
	h.Report(gozzard.Report{Kind: gozzard.ReportEvents, Events: []gozzard.Event{{Seq: 2, Key: web,
		Kind: gozzard.EventStartFailed, At: time.Now().UnixMilli(), Message: "exited with 99"}}})
	p.WaitText("退出码为 99")
	p.WaitNoText("exited with 99")
	p.Accessible()

	// The preview of an action.
	p.Click("button", "English")
	p.Go("/console/process/shop/web")
	p.Click("button", "Start")
	p.WaitText("it waits until another admin approves it")
	p.Wait("button", "Ask: Start 1 process")
	p.Accessible()

	// The command line says it too; its app cannot ask.
	out, err := f.Command(t, "start", "web", "--namespace", "shop", "--dry-run").CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("this needs a second person, and an app cannot ask one")) {
		t.Errorf("%v: %s", err, out)
	}
}

// TestPlannedProcess: a periodic process that was never started waits for its time, and the page counts it down.
func TestPlannedProcess(t *testing.T) {
	t.Parallel()
	f := console.StartFleet(t, 1)
	f.Define(t, `
name: night
namespace: batch
hosts: [{ip: 127.0.0.1}]
command: exec sleep 5
proc_name: sleep
schedule: "0 3 29 2 *"
`)
	f.Operate(t, "manage", "night")
	fleettest.Until(t, time.Minute, func() string { return "it does not wait for its time" }, func() bool {
		return f.Process(t, "night").State == "scheduled"
	})

	p := f.Open(t)
	p.EnterByLink()
	p.Go("/console/process/batch/night")
	p.WaitText("Waiting for its time")
	p.Until("the next start is counted", `/^in \d+ d/.test(document.querySelector(".instance time[datetime]")?.textContent ?? "")`)
	p.Accessible()

	// A process of a business is shown by its place, with the recorded name on hover.
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	doc := strings.ReplaceAll(shopDocument, "ACCOUNT", me.Username)
	if _, err := f.Client.ApplyTopology(t.Context(), 2, []byte(doc), client.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	op := client.Operation{Action: "start", Selection: client.Selection{BusinessSelection: client.BusinessSelection{Biz: 2,
		Expression: "*.*.*.*.*"}}}
	preview, err := f.Client.Preview(t.Context(), op)
	if err != nil {
		t.Fatal(err)
	}
	op.Confirm = preview.Targets
	task, err := f.Client.Operate(t.Context(), op)
	if err == nil {
		_, err = f.Client.Wait(t.Context(), task.TaskID, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	p.Go("/console/process/GSEKIT_BIZ_2/nginx_2")
	p.Wait("heading", "shop/front/web/nginx #2")
	p.Until("the recorded name is on hover", `document.querySelector("h1 [title='GSEKIT_BIZ_2/nginx_2']")`)
	p.Accessible()
	p.Go("/console/processes?f=redis")
	p.Until("the row has the name of the document", `[...document.querySelectorAll("[aria-rowindex='2'] a")].some((a) => a.textContent === "redis" && a.title === "GSEKIT_BIZ_2/redis_1")`)
	p.Accessible()
}
