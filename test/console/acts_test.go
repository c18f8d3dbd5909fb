//go:build linux

package console_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/test/console"
)

// TestProcessActs: every act on processes, from the overview, the page of one process, the table and the palette.
func TestProcessActs(t *testing.T) {
	t.Parallel()
	f := console.StartFleet(t, 2)
	dir := t.TempDir()
	allow, reloaded := filepath.Join(dir, "allow"), filepath.Join(dir, "reloaded")
	f.Define(t, picky("mend", allow)+"reload: 'echo again >> "+reloaded+"'\n")
	applyBusiness(t, f, 7, "ID", "7", "NAME", "corner", "SETNAME", "front", "MODULE", "web", "INSTANCE", "till_1", "HOST", "127.0.0.1",
		"PROCESS", "till", "COMMAND", "exec sleep 100000")
	task := begin(t, f, "start", "mend")
	if _, err := f.Client.Wait(t.Context(), task.TaskID, nil); err != nil {
		t.Fatal(err)
	}
	p := f.Open(t)
	p.EnterByLink()

	mend(t, p, allow)
	onePage(t, f, p, reloaded)
	palette(p)
	chipsAndSelection(t, f, p)
}

// mend starts what failed from the overview, and follows the groups and the map to their processes.
func mend(t *testing.T, p *console.Page, allow string) {
	t.Helper()
	p.Go("/console/")
	p.Wait("button", "Start shop/mend")
	if err := os.WriteFile(allow, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	p.Click("button", "Start shop/mend")
	p.Click("button", "Start 2 processes")
	p.WaitText("Nothing is wrong.")

	choose(p, "Group by", "host")
	p.Click("link", "127.0.0.2")
	rowsAre(p, 1)
	if path := p.Path(); !strings.Contains(path, "f=host") {
		t.Errorf("a group leads to %s", path)
	}
	p.Go("/console/")
	p.Until("a process of the map", `(() => {
		const map = document.querySelector(".heat canvas"), box = map?.getBoundingClientRect();
		for (let y = 1; box && y < box.height; y += 3) for (let x = 1; x < 60; x += 3) {
			map.dispatchEvent(new MouseEvent("click", {bubbles: true, clientX: box.left + x, clientY: box.top + y}));
			if (location.pathname !== "/console/") return location.pathname.startsWith("/console/process/");
		}
	})()`)
}

// onePage performs every act of the page of a process, and looks at what comes of it.
func onePage(t *testing.T, f *console.Fleet, p *console.Page, reloaded string) {
	t.Helper()
	is := func(what string, cond func(client.Process) bool) {
		eventually(t, what, func() bool {
			page, err := f.Client.Processes(t.Context(), client.ProcessQuery{Names: []string{"mend"}}, 0, 10)
			if err != nil || len(page.Processes) != 2 {
				return false
			}
			return cond(page.Processes[0]) && cond(page.Processes[1])
		})
	}
	act := func(name string) {
		p.Click("button", name)
		p.Click("button", name+" 2 processes")
		p.WaitNo("dialog", "")
	}
	running := func(r client.Process) bool { return r.State == client.StateRunning }
	ended := func(r client.Process) bool { return r.State == client.StateStopped }

	p.Go("/console/process/shop/mend")
	act("Reload")
	eventually(t, "both were reloaded", func() bool {
		b, err := os.ReadFile(reloaded)
		return err == nil && strings.Count(string(b), "again") == 2
	})
	act("Stop")
	is("both are stopped", ended)
	act("Start")
	is("both run", running)
	p.Click("button", "More")
	p.Accessible()
	act("Stop managing")
	is("no one is managed", func(r client.Process) bool { return running(r) && !r.Managed })
	act("Manage")
	is("both are managed", func(r client.Process) bool { return running(r) && r.Managed })
	act("Kill")
	is("both were killed", func(r client.Process) bool { return r.PID <= 0 })
	act("Start")
	is("both run again", running)

	// One host alone, in the log and in the charts; the definition as JSON.
	agent := string(f.Process(t, "mend").Host.Agent)
	p.Go("/console/process/shop/mend?tab=events")
	choose(p, "Host", agent)
	p.Until("the host in the address", fmt.Sprintf(`new URLSearchParams(location.search).get("host") === %q`, agent))
	p.Go("/console/process/shop/mend?tab=charts")
	p.Click("button", "Day")
	p.Until("four charts of a day", `location.search.includes("range=day") && document.querySelectorAll(".chart canvas").length === 4`)
	p.Go("/console/process/shop/mend?tab=definition")
	p.Click("button", "JSON")
	p.WaitText(`"reload"`)
	p.Accessible()
}

// palette finds a host and an act of the page by Ctrl-K; the keys and the colours are found as well.
func palette(p *console.Page) {
	find := func(words string) {
		p.Press("k", console.Ctrl)
		p.Wait("dialog", "Go to or do")
		p.Until("the focus in the box", `document.activeElement?.matches("dialog[open] input")`)
		p.Type(words)
		p.Until("the words in the box", fmt.Sprintf(`document.querySelector("dialog input")?.value === %q`, words))
	}
	p.Go("/console/process/shop/mend")
	p.Wait("button", "Restart")
	find("restart")
	p.Accessible()
	p.Press(kb.Enter)
	p.Wait("dialog", "Restart: what will happen")
	p.Press(kb.Escape)
	p.WaitNo("dialog", "")
	find("nothing at all")
	p.WaitText("Nothing fits")
	p.Press(kb.Escape)
	find("127.0.0.2")
	p.Press(kb.Enter)
	p.Wait("heading", "127.0.0.2")
	p.WaitNo("dialog", "")

	p.Type("?")
	p.Wait("dialog", "Keys")
	p.Accessible()
	p.Press(kb.Escape)
	p.WaitNo("dialog", "")
	find("dark")
	p.Press(kb.Enter)
	p.WaitSelector("[data-theme=dark]")
	p.Click("button", "Dark")
	p.WaitNoSelector("[data-theme=dark]")
}

// chipsAndSelection narrows the table by its chips, takes a selection back, and unregisters what is left of it.
func chipsAndSelection(t *testing.T, f *console.Fleet, p *console.Page) {
	t.Helper()
	p.Go("/console/processes")
	rowsAre(p, 3)
	for _, c := range []struct{ list, value, want string }{{"Business 1", "corner", "biz:"}, {"Set 1", "front", "set:front"},
		{"Module 1", "web", "module:web"}, {"Host 2", "127.0.0.1", "host:"}} {
		press(p, ".ps-facet summary", c.list)
		press(p, ".ps-facet[open] label", c.value)
		p.Until("the filter in the address", fmt.Sprintf(`new URLSearchParams(location.search).get("f")?.startsWith(%q)`, c.want))
		p.Accessible()
		p.Click("button", "Clear the filter")
		rowsAre(p, 3)
	}

	p.Click("button", "How to filter")
	p.WaitText("quotes keep blanks together")
	p.Accessible()
	p.Fill("Filter", "name:mend")
	rowsAre(p, 2)
	p.Click("button", "Select everything that matches (2)")
	p.WaitText("2 selected")
	p.Click("button", "Select nothing")
	p.WaitNoText("2 selected")
	p.Click("button", "Select everything that matches (2)")
	p.Click("button", "Kill")
	p.Click("button", "Kill 2 processes")
	eventually(t, "both were killed", func() bool { return f.Process(t, "mend").PID <= 0 })
	p.WaitNo("dialog", "")
	p.Click("button", "Unregister")
	p.Click("button", "Unregister 2 processes")
	p.WaitText("No process matches")
}

// press presses the first element of a CSS selector whose text begins with a text. The element gets the focus, as by a
// mouse.
func press(p *console.Page, css, text string) {
	p.Until(text, fmt.Sprintf(`(() => {
		const e = [...document.querySelectorAll(%q)].find((e) => e.innerText.trim().startsWith(%q));
		(e?.control ?? e)?.focus();
		(e?.control ?? e)?.click();
		return e;
	})()`, css, text))
}
