//go:build linux

package console_test

import (
	"os/user"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/test/console"
)

const shopDocument = `biz: 2
name: shop
clouds: [{id: 0, name: default}]
sets:
  - id: 5
    name: front
    env: 3
    modules:
      - id: 21
        name: web
        instances:
          - id: 51
            name: 127.0.0.1_web
            host: {ip: 127.0.0.1, cloud: 0}
            processes:
              - {id: 46, name: nginx, func_name: sleep, proc_num: 2, user: ACCOUNT, work_path: /, start_check_secs: 1, start_cmd: "exec sleep 100000"}
  - id: 6
    name: 后端
    env: 1
    modules:
      - id: 22
        name: db
        instances:
          - id: 52
            name: 127.0.0.1_db
            host: {ip: 127.0.0.1, cloud: 0}
            processes:
              - {id: 47, name: redis, func_name: sleep, user: ACCOUNT, work_path: /, start_check_secs: 1, start_cmd: "exec sleep 100000"}
`

// TestBusiness: a document is applied after its plan, its tree counts live, expressions match, drift shows, and a change
// by another person is a conflict in words.
func TestBusiness(t *testing.T) {
	t.Parallel()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	doc := strings.ReplaceAll(shopDocument, "ACCOUNT", me.Username)
	f := console.StartFleet(t, 1, cmdbFlags(t)...)
	p := f.Open(t)
	p.EnterByLink()

	// The first document.
	p.Click("link", "Businesses")
	p.WaitText("No business yet")
	p.Accessible()
	p.Click("link", "Apply a document")
	p.Fill("Document (YAML or JSON)", strings.ReplaceAll(doc, "env: 1", "env: nine"))
	p.WaitText("sets[1].env")
	p.Accessible()
	p.Fill("Document (YAML or JSON)", doc)
	p.WaitText("Plan: ")
	p.WaitText("set 6 后端")
	if list, err := f.Client.Businesses(t.Context()); err != nil || list.Count != 0 {
		t.Fatalf("a plan has changed something: %+v %v", list, err)
	}
	p.Accessible()
	p.Click("button", "Apply this plan")
	p.WaitText("Applied: business 2 is at version 1.")

	// The tree counts live.
	p.Click("link", "Open the business")
	p.WaitText("2 processes")
	a, err := f.Client.Operate(t.Context(), client.Operation{Action: "start", Selection: client.Selection{
		BusinessSelection: client.BusinessSelection{Biz: 2, Expression: "front.*.*.*.*"}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Client.Wait(t.Context(), a.TaskID, nil); err != nil {
		t.Fatal(err)
	}
	p.Until("two running instances of the set", `[...document.querySelectorAll(".biz-tree tr")].some((r) =>
		r.innerText.includes("front") && r.querySelector(".state-running")?.parentElement.innerText.trim().endsWith("2"))`)
	p.Click("button", "Open web")
	p.WaitText("127.0.0.1_web")
	p.WaitText("nginx")
	p.Accessible()

	// An expression is built, and matches at once.
	p.Fill("Service instance", "127.0.0.1_web")
	p.WaitText(`*.*.127\.0\.0\.1_web.*.*`)
	p.WaitText("1 process, 2 instances")
	p.Click("link", "Show on the page of processes")
	p.WaitText("nginx #2")
	p.WaitNoText("redis")
	p.Back()
	p.WaitText("1 process, 2 instances")
	p.Fill("Set", "nowhere")
	p.WaitText("Nothing matches")
	p.Fill("Set", "[")
	p.WaitText("without a ] after it")
	p.Accessible()
	p.Click("button", "Everything")
	p.WaitNoText("without a ] after it")
	businessActs(t, f, p)

	// What the document says and the fleet does not have is drift.
	p.Click("link", "Drift")
	p.WaitText("In the document, not registered on the host: 1")
	p.Accessible()

	// A viewer sees it and is offered no change.
	f.AddUser(t, "val", password, client.Grant{Role: "viewer"})
	v := f.Open(t)
	v.SignIn("val", password)
	v.Wait("navigation", "Pages")
	v.Go("/console/businesses/2?e=front.*.*.*.*")
	v.WaitText("1 process, 2 instances")
	v.WaitText("后端")
	for _, what := range [][2]string{{"link", "Apply"}, {"button", "Remove"}, {"button", "Restart"}} {
		if v.Has(what[0], what[1]) {
			t.Errorf("a viewer is offered %s", what[1])
		}
	}
	v.Click("link", "Drift")
	v.WaitText("needs the right to operate")
	v.Accessible()

	// Another person is faster: a conflict in words, with a new plan.
	p.Click("link", "Apply")
	p.Until("the document", `document.querySelector("textarea")?.value.includes("biz: 2")`)
	p.Fill("Document (YAML or JSON)", strings.Replace(doc, "name: shop", "name: shop of mine", 1))
	p.WaitText("Plan: 0 added, 1 changed, 0 removed")
	if _, err := f.Client.ApplyTopology(t.Context(), 2, []byte(strings.Replace(doc, "name: front", "name: fore", 1)),
		client.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	p.Click("button", "Apply this plan")
	p.WaitText("Another person changed this business meanwhile")
	p.Accessible()
	p.Click("button", "Apply this plan")
	p.WaitText("Applied: business 2 is at version 3.")
	pruneByFile(t, f, p, strings.Replace(doc, "name: shop", "name: shop of mine", 1))

	// The document, in Chinese and on a phone.
	p.Click("button", "中文")
	p.Click("link", "文档")
	p.WaitText("name: shop of mine")
	p.Accessible()
	fits(p, 390)
	copyDocument(t, f, p)

	// The business is removed after its plan and its number.
	f.Operate(t, "stop", "nginx_*")
	p.Go("/console/businesses")
	p.Click("link", "shop of mine")
	p.Click("button", "删除业务")
	p.WaitText("删除业务 shop of mine")
	p.WaitText("计划：")
	p.Accessible()
	p.Fill("输入业务编号以确认", "2")
	p.Click("button", "确认删除")
	p.WaitText("还没有业务")

	p.Click("button", "English")
	takeOver(t, f, p)
}

// businessActs: a node of the tree is the expression of an act on its processes; a process that is not in the document is
// unregistered.
func businessActs(t *testing.T, f *console.Fleet, p *console.Page) {
	t.Helper()
	before := f.Process(t, "nginx_1").PID
	press(p, ".biz-tree button", "Use in the expression")
	p.WaitText("front.*.*.*.*")
	p.WaitText("1 process, 2 instances")
	p.Click("button", "Restart")
	p.Click("button", "Restart 2 processes")
	p.WaitText("done: 2")
	if now := f.Process(t, "nginx_1").PID; now == before || now <= 0 {
		t.Errorf("nginx_1 has pid %d, had %d", now, before)
	}

	f.Define(t, "{namespace: GSEKIT_BIZ_2, name: stranger, command: exec sleep 1000}")
	p.Click("link", "Drift")
	p.WaitText("In the fleet, not in the document: 1")
	p.Accessible()
	p.Click("button", "Unregister")
	p.Click("button", "Unregister 1 process")
	p.WaitNoText("In the fleet, not in the document")
}
