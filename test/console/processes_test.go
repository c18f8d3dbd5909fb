//go:build linux

package console_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/test/console"
)

// rowsAre waits until the table of processes shows as many rows.
func rowsAre(p *console.Page, n int) {
	p.Until(fmt.Sprintf("%d rows", n), fmt.Sprintf(`document.querySelector("[role=grid]")?.getAttribute("aria-rowcount") === "%d" &&
		document.querySelectorAll(".ps-rows > :not([hidden])").length === %d`, n+1, n))
}

// rowHas waits until a row, counted from 1, has a text.
func rowHas(p *console.Page, row int, text string) {
	p.Until(fmt.Sprintf("%s in row %d", text, row), fmt.Sprintf(`document.querySelector(".ps-rows > [aria-rowindex='%d']:not([hidden])")?.textContent
		.includes(%q)`, row+1, text))
}

// TestProcesses walks over the table of processes with the mouse: filter, chips, sort, select, restart.
func TestProcesses(t *testing.T) {
	t.Parallel()
	f := console.StartFleet(t, 3, "--demo")
	p := f.Open(t)
	p.EnterByLink()
	p.Go("/console/processes")
	rowsAre(p, 14)
	p.Accessible()

	// Words, fields and expressions; the address holds them.
	p.Fill("Filter", "web_2 127.0.0.1")
	rowsAre(p, 1)
	p.Fill("Filter", "shop.web.*.web.*")
	rowsAre(p, 6)
	p.Fill("Filter", "*.orders.*.[orders,payments].100[4-5]")
	rowsAre(p, 2)
	p.Fill("Filter", "*.*.*.[web.*")
	p.WaitText("A bracket is not closed")
	p.Fill("Filter", "stat:failed")
	p.WaitText(`"stat:" is not a field`)
	p.WaitText("No process matches")
	p.Fill("Filter", "shop.web.*.web.* host:127.0.0.2")
	rowsAre(p, 2)

	// The link shows the same to somebody else, in the other language and on a phone.
	other := f.Open(t)
	other.EnterByLink()
	other.Go(p.Path())
	rowsAre(other, 2)
	other.Eval(`localStorage.setItem("gozzard.language", "zh")`, nil)
	other.Size(390, 800)
	other.Reload()
	rowsAre(other, 2)
	other.WaitText("进程")
	other.Accessible()
	other.Until("no scrolling to the side", `document.documentElement.scrollWidth <= innerWidth`)

	// Chips, with their counts.
	p.Fill("Filter", "")
	rowsAre(p, 14)
	p.Click("button", "stopped 1")
	rowsAre(p, 1)
	if path := p.Path(); path != "/console/processes?f=state%3Astopped" {
		t.Errorf("the address is %s", path)
	}
	p.Click("button", "stopped 1")
	rowsAre(p, 14)

	// Sort: by name as it is, then by host, both ways.
	p.Click("button", "Host")
	p.Until("the order", `document.querySelector("[role=columnheader][aria-sort=ascending]")?.textContent.startsWith("Host")`)
	rowHas(p, 1, "127.0.0.1")
	rowHas(p, 14, "127.0.0.3")
	p.Click("button", "Host")
	p.Until("the order", `document.querySelector("[role=columnheader][aria-sort=descending]")`)
	rowHas(p, 1, "127.0.0.3")
	rowHas(p, 14, "127.0.0.1")

	// Choose a column; it is kept.
	p.Click("", "Columns")
	p.Click("checkbox", "PID")
	p.Until("the column", `[...document.querySelectorAll("[role=columnheader]")].some((h) => h.textContent === "PID")`)
	p.Reload()
	rowsAre(p, 14)
	p.Until("the kept column", `[...document.querySelectorAll("[role=columnheader]")].some((h) => h.textContent === "PID")`)

	restartSelection(p)
}

// restartSelection selects a range and everything, and restarts what is selected.
func restartSelection(p *console.Page) {
	p.Fill("Filter", "name:web*")
	rowsAre(p, 6)
	p.Click("checkbox", "Select web_1")
	p.WaitText("1 selected")
	p.Eval(`[...document.querySelectorAll(".ps-rows > :not([hidden])")].find((r) => r.getAttribute("aria-rowindex") === "4")
		.querySelector("input").dispatchEvent(new MouseEvent("click", {bubbles: true, shiftKey: true}))`, nil)
	p.WaitText("3 selected")
	p.Click("button", "Select everything that matches (6)")
	p.WaitText("6 selected")
	p.Click("button", "Restart")
	p.WaitText("6 processes on 3 hosts")
	p.Accessible()
	p.Click("button", "Restart 6 processes")
	p.Wait("link", "Show the task")
	p.WaitText("done: 6")
	p.Click("link", "Show the task")
	p.Until("the page of the task", `location.pathname.startsWith("/console/tasks/")`)
}

// TestProcessesByKeyboard: everything without a mouse.
func TestProcessesByKeyboard(t *testing.T) {
	t.Parallel()
	f := console.StartFleet(t, 1)
	runSleepers(t, f, "a", "b", "c", "d")
	p := f.Open(t)
	p.EnterByLink()
	p.TypeUntil("gp", "the page of processes", `location.pathname === "/console/processes"`)
	rowsAre(p, 4)
	p.Type("/")
	p.Until("the focus", `document.activeElement?.type === "search"`)
	p.Press("a", console.Ctrl) // the browser would not type the slash
	p.Type("ns:keys")
	p.Until("the filter in the address", `location.search === "?f=ns%3Akeys"`)
	p.Press(kb.Enter)
	p.Until("the focus", `document.activeElement?.getAttribute("role") === "grid"`)

	p.Type("jx")
	p.WaitText("1 selected")
	p.Type("jX")
	p.WaitText("2 selected")
	p.Press(kb.Home)
	p.Press(kb.End, console.Shift)
	p.WaitText("4 selected")
	p.Until("the last row", `document.getElementById(document.activeElement.getAttribute("aria-activedescendant"))?.textContent.includes("d")`)

	// Restart after a confirmation, and open a row.
	p.Type("r")
	p.WaitText("4 processes on host ")
	p.Until("the focus on the button", `document.activeElement?.textContent === "Restart 4 processes"`)
	p.Press(kb.Enter)
	p.WaitText("done: 4")
	p.Press(kb.Enter)
	p.Until("the page of the process", `location.pathname === "/console/process/keys/d"`)
}

// TestProcessesWithOddTexts: long and odd names and messages break no layout.
func TestProcessesWithOddTexts(t *testing.T) {
	t.Parallel()
	f := console.StartFleet(t, 1)
	long := strings.Repeat("长名字", 14)
	runSleepers(t, f, "normal", long, strings.Repeat("w", 120), "שלום-עולם")
	loud := "echo '<img src=x onerror=alert(1)>" + strings.Repeat("x", 4000) + "' >&2; exit 1"
	f.Define(t, fmt.Sprintf("{namespace: keys, name: loud, proc_name: sh, command: %q, start_check: 1s}", loud))
	task, err := f.Client.Operate(t.Context(), client.Operation{Action: "start",
		Selection: client.Selection{Names: []string{"loud"}, All: true}})
	if err == nil {
		_, err = f.Client.Wait(t.Context(), task.TaskID, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	p := f.Open(t)
	p.EnterByLink()
	p.Eval(`localStorage.setItem("gozzard.processes.columns", JSON.stringify(["state", "name", "host", "message"]))`, nil)
	for _, width := range []int64{1280, 390} {
		p.Size(width, 800)
		p.Go("/console/processes")
		rowsAre(p, 5)
		p.Until("rows of the same height", `[...document.querySelectorAll(".ps-rows > :not([hidden])")].every((r) => r.offsetHeight === 28)`)
		narrow(p)
		p.Until("no picture", `!document.querySelector("main img")`)
	}
	p.Fill("Filter", "长名字")
	rowsAre(p, 1)
}

// TestProcessesOfViewer: what the user may not do is not shown.
func TestProcessesOfViewer(t *testing.T) {
	t.Parallel()
	f := console.StartFleet(t, 1)
	runSleepers(t, f, "seen")
	f.AddUser(t, "bob", password, client.Grant{Role: "viewer"})
	p := f.Open(t)
	p.SignIn("bob", password)
	p.Wait("navigation", "Pages")
	p.Go("/console/processes")
	rowsAre(p, 1)
	p.Type("jxr")
	for _, role := range []string{"checkbox", "dialog"} {
		if p.Has(role, "") {
			t.Errorf("a viewer has a %s", role)
		}
	}
	for _, name := range []string{"Restart", "Stop", "Kill", "Unregister", "Select everything that matches (1)"} {
		if p.Has("button", name) {
			t.Errorf("a viewer has the button %s", name)
		}
	}
	if p.Has("link", "Register a process") {
		t.Error("a viewer may register")
	}
	p.Accessible()
}

// wantNumber answers an operation without a number as a server with limits does: `gozzard dev` has none. It does check a
// number that is given.
const wantNumber = `void (window.fetch = ((real) => (url, o) => {
	const body = o?.method === "POST" && String(url).includes("/operations") ? JSON.parse(o.body) : {dry_run: true};
	if (body.dry_run || body.confirm) return real(url, o);
	const fault = {path: "confirm", text: "stop concerns 60 processes: repeat it with confirm 60 if that is meant"};
	return Promise.resolve(new Response(JSON.stringify({error: {kind: "invalid", message: "no", faults: [fault]}}), {status: 400}));
})(window.fetch))`

// TestActionAsksForNumber: the server wants the number of a large part of the fleet, and a wrong one does nothing. What
// is selected stays selected while the server starts again.
func TestActionAsksForNumber(t *testing.T) {
	t.Parallel()
	f := console.StartFleet(t, 1)
	f.Define(t, "{namespace: many, name: worker, instances: 60, command: exec sleep 1000}")
	p := f.Open(t)
	p.EnterByLink()
	p.Go("/console/processes")
	p.WaitText("60 processes")
	p.Click("button", "Select everything that matches (60)")
	p.Click("button", "Stop")
	p.WaitText("60 processes on host ")
	p.Eval(wantNumber, nil)
	p.Click("button", "Stop 60 processes")
	p.WaitText("Type the number of processes to confirm")
	p.Accessible()
	p.Fill("Type the number of processes to confirm", "6")
	p.Click("button", "Stop 60 processes")
	p.WaitText("confirm is 6: nothing was done")
	p.Fill("Type the number of processes to confirm", "60")
	p.Press(kb.Enter)
	p.WaitText("done: 60")

	// The rows in view are few, and the last one is reached.
	p.Until("few nodes", `document.querySelectorAll(".ps-rows > *").length < 40`)
	p.Eval(`document.querySelector("[role=grid]").focus()`, nil)
	p.Press(kb.End)
	p.Until("the last row", `document.querySelector(".ps-current")?.getAttribute("aria-rowindex") === "61"`)

	f.Kill(syscall.SIGTERM)
	p.WaitText("No connection to the server")
	f.Restart()
	p.WaitNoText("No connection to the server")
	p.WaitText("60 selected")
}

// runSleepers registers and starts processes that sleep.
func runSleepers(t *testing.T, f *console.Fleet, names ...string) {
	t.Helper()
	for _, name := range names {
		f.Define(t, fmt.Sprintf("{namespace: keys, name: %q, command: exec sleep 1000, start_check: 1s}", name))
	}
	f.Operate(t, "start", names...)
}
