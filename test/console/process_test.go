//go:build linux

package console_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/test/console"
)

// ticker prints a number again and again.
const ticker = `exec sh -c 'n=0; while :; do n=$((n+1)); echo "line $n of %s"; sleep 0.2; done'`

func define(t *testing.T, f *console.Fleet, name, command string, more ...string) {
	t.Helper()
	f.Define(t, fmt.Sprintf("name: %s\ncommand: |-\n  %s\nstart_check: 2s\nstop_timeout: 1s\n%s", name, command,
		strings.Join(more, "\n")))
}

// TestProcessPage: the page of a process shows its log as it grows, its charts, and a crash by itself.
func TestProcessPage(t *testing.T) {
	t.Parallel()
	f := console.StartFleet(t, 2)
	hosts := "hosts: [{ip: 127.0.0.1}, {ip: 127.0.0.2}]\nmemory: 1G\nlimits: {files: 8}"
	define(t, f, "ticker", fmt.Sprintf(ticker, "$(hostname)"), hosts)
	f.Operate(t, "start", "ticker")
	p := f.Open(t)
	p.EnterByLink()
	p.Go("/console/process/default/ticker")

	// Its instances, with how close they are to their limits.
	p.WaitText("0:127.0.0.1")
	p.WaitText("0:127.0.0.2")
	p.WaitText("Memory: ")
	p.WaitText("of 8")
	p.Accessible()
	picture(p, "process-instances")

	// The log of both, merged: new lines come, are found, and do not come while it is paused.
	p.Click("link", "Log")
	p.WaitText("following")
	p.Until("lines of both hosts", `["0:127.0.0.1", "0:127.0.0.2"].every((h) => [...document.querySelectorAll(".log-line")].some((l) => l.innerText.startsWith(h)))`)
	last := lastLine(p)
	p.Until("a newer line", fmt.Sprintf("[...document.querySelectorAll('.log-line')].at(-1).innerText !== %q", last))
	p.Accessible()
	picture(p, "process-log")
	newestLine(t, f, p)
	p.Click("button", "Pause")
	p.WaitText("paused")
	stopped := lastLine(p)
	waitLog(t, f, "ticker", 5)
	if now := lastLine(p); now != stopped {
		t.Errorf("the paused log went on from %q to %q", stopped, now)
	}
	p.Click("button", "Follow")
	p.Until("the log goes on", fmt.Sprintf("[...document.querySelectorAll('.log-line')].at(-1).innerText !== %q", stopped))
	p.Eval(`void (URL.createObjectURL = ((real) => (b) => { void b.text().then((s) => { window.saved = s; }); return real.call(URL, b); })(URL.createObjectURL))`, nil)
	p.Click("button", "Download")
	p.Until("a file with the lines of both hosts", `["0:127.0.0.1", "0:127.0.0.2"].every((h) => window.saved?.includes(h)) && window.saved.includes("line 1 of")`)
	p.Fill("Search in the log", "line 1 of")
	p.WaitSelector(".log mark")
	p.Until("only lines that fit", `[...document.querySelectorAll(".log-line")].every((l) => l.innerText.includes("line 1 of"))`)
	if path := p.Path(); !strings.Contains(path, "q=line") || !strings.Contains(path, "tab=log") {
		t.Errorf("the address %s does not hold the view", path)
	}

	// The charts.
	p.Click("link", "Charts")
	p.Until("four charts", `document.querySelectorAll(".chart canvas").length === 4`)
	p.Until("numbers", `[...document.querySelectorAll(".chart-table td")].some((c) => /[1-9]/.test(c.textContent))`)
	p.Accessible()
	picture(p, "process-charts")

	// A crash shows in the events by itself.
	p.Click("link", "Events")
	p.WaitText("started")
	if err := syscall.Kill(int(f.Process(t, "ticker").PID), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.WaitText("SIGKILL")
	p.WaitText("was restarted by the agent")
	p.Accessible()

	// What another caller does with the process is shown while it runs.
	op := client.Operation{Action: "restart", Selection: client.Selection{Names: []string{"ticker"}, All: true}, Confirm: 2}
	task, err := f.Client.Operate(t.Context(), op)
	if err != nil {
		t.Fatal(err)
	}
	p.Until("the restart by another caller", `/now: Restart/.test(document.body.innerText)`)
	if _, err := f.Client.Wait(t.Context(), task.TaskID, nil); err != nil {
		t.Fatal(err)
	}
	p.WaitNoText("now: Restart")

	// The definition, and all of it in Chinese.
	p.Click("link", "Definition")
	p.WaitText("stop_timeout")
	p.Click("button", "YAML")
	p.WaitText("start_check: 2s")
	p.Accessible()
	copyDefinition(t, f, p)
	p.Click("button", "中文")
	p.WaitText("历史版本")
	p.Accessible()
	p.Click("link", "实例")
	p.WaitText("已运行")
	p.Size(390, 800)
	p.Until("no wider than the phone", `document.documentElement.scrollWidth <= 390`)
	p.Accessible()
	picture(p, "process-phone")
}

// TestEditDefinition: a change of the form reaches the real process. The second of two editors sees the change of the first.
func TestEditDefinition(t *testing.T) {
	t.Parallel()
	f := console.StartFleet(t, 1)
	define(t, f, "edited", fmt.Sprintf(ticker, "one"))
	f.Operate(t, "start", "edited")
	before := f.Process(t, "edited").PID
	one, two := f.Open(t), f.Open(t)
	for _, p := range []*console.Page{one, two} {
		p.EnterByLink()
		p.Go("/console/process/default/edited")
		p.Click("link", "Edit")
		p.Wait("textbox", "Command")
	}

	// The first editor: form, plan, save, restart.
	one.Fill("Command", fmt.Sprintf(ticker, "two"))
	one.Accessible()
	picture(one, "register-form")
	one.Click("button", "Show what changes")
	one.WaitText("~ command")
	one.Accessible()
	picture(one, "register-plan")
	one.Click("button", "Save")
	one.WaitText("default/edited is saved")
	one.Accessible()
	one.Click("button", "Restart")
	one.Click("button", "Restart 1 process")
	eventually(t, "the process has its new definition", func() bool {
		return f.Process(t, "edited").PID != before && strings.Contains(readLog(t, f, "edited"), "of two")
	})

	// The second editor sees the change, keeps its own, and saves.
	two.WaitText("Another person changed this definition meanwhile")
	two.Accessible()
	picture(two, "register-conflict")
	two.Fill("Command", fmt.Sprintf(ticker, "three"))
	two.Click("button", "Show what changes")
	two.WaitText("nothing was registered")
	two.Click("button", "Keep mine")
	two.Click("button", "Show what changes")
	two.WaitText("~ command")
	two.Click("button", "Save")
	two.WaitText("default/edited is saved")
	two.Click("link", "To the process")
	two.Click("link", "Definition")
	two.WaitText("of three")
	two.Until("the versions", `document.querySelectorAll(".diff-new").length > 0`)
	two.Accessible()
	picture(two, "process-definition")

	takeTheirs(t, f, one, two)
}

// TestRegisterProcess: a form that checks, the same as YAML, a warning about unsaved changes, and a process that runs.
func TestRegisterProcess(t *testing.T) {
	t.Parallel()
	f := console.StartFleet(t, 1)
	p := f.Open(t)
	p.EnterByLink()
	p.Go("/console/register")
	p.Wait("textbox", "Name")
	p.Accessible()

	// A fault stands beside its field after the field was left, not before.
	if p.Has("alert", "") {
		t.Error("a form that nobody touched shows faults")
	}
	p.Fill("Name", `no\backslash`)
	p.Click("textbox", "Command")
	p.WaitSelector(".field-faulty [name=name]")
	p.Accessible()
	p.Fill("Name", "fresh")
	p.Fill("Command", fmt.Sprintf(ticker, "fresh"))
	p.WaitText("No faults")

	// The same as YAML: faults have lines, and nothing is lost on the way back.
	p.Click("button", "YAML")
	p.WaitSelector("#definition-yaml")
	var text string
	p.Eval(`document.querySelector("#definition-yaml").value`, &text)
	if !strings.Contains(text, "name: fresh") {
		t.Errorf("YAML:\n%s", text)
	}
	p.Fill("YAML", text+"start_check: soon\n")
	p.WaitText("start_check")
	p.Accessible()
	p.Fill("YAML", text+"start_check: 1s\nstop_timeout: 1s\nspec: {resource: {fd: 4000}}\n")
	p.WaitText("No faults")
	p.Click("button", "Form")
	p.Until("the value of the YAML", `document.querySelector("[name=start_check]")?.value === "1s"`)
	picture(p, "register-new")

	// Unsaved changes are not lost by a click.
	p.Click("link", "Hosts")
	p.WaitText("changes that are not saved")
	p.Accessible()
	p.Click("button", "Stay")
	p.Wait("textbox", "Name")

	// Save and start.
	p.Click("button", "Show what changes")
	p.WaitText("1 new")
	p.Click("button", "Save")
	p.WaitText("default/fresh is saved")
	p.Click("button", "Start")
	p.Click("button", "Start 1 process")
	eventually(t, "the process runs", func() bool { return f.Process(t, "fresh").State == client.StateRunning })
	d, err := f.Client.Definitions(t.Context(), client.ProcessQuery{Names: []string{"fresh"}}, 0, 1)
	if err != nil || !strings.Contains(string(d.Definitions[0].Document), "4000") {
		t.Errorf("what the form does not show is lost: %+v %v", d, err)
	}

	// In Chinese, and for a name that exists.
	p.Click("button", "中文")
	p.Go("/console/register")
	p.Wait("textbox", "名称")
	p.Accessible()
	p.Fill("名称", "fresh")
	p.Fill("启动命令", "sleep 1000")
	p.Click("button", "查看改动")
	p.WaitText("请编辑已有定义，或换一个名称")

	// What is not saved is discarded after a question.
	p.Click("link", "主机")
	p.Click("button", "放弃改动")
	p.Until("the page of hosts", `location.pathname === "/console/hosts"`)
}

// lastLine is the newest line of the log on the page.
func lastLine(p *console.Page) (text string) {
	p.Eval(`[...document.querySelectorAll(".log-line")].at(-1).innerText`, &text)
	return text
}

func readLog(t *testing.T, f *console.Fleet, name string) string {
	t.Helper()
	host := string(f.Process(t, name).Host.Agent)
	chunk, err := f.Client.Log(t.Context(), gozzard.Key{Namespace: "default", Name: name}, host, 100, -1)
	if err != nil {
		t.Fatal(err)
	}
	return chunk.Text
}

// waitLog waits until the log of a process has grown by some lines.
func waitLog(t *testing.T, f *console.Fleet, name string, lines int) {
	t.Helper()
	seen := map[string]bool{}
	for l := range strings.Lines(readLog(t, f, name)) {
		seen[l] = true
	}
	eventually(t, "the log of "+name+" grows", func() bool {
		n := 0
		for l := range strings.Lines(readLog(t, f, name)) {
			if !seen[l] {
				n++
			}
		}
		return n >= lines
	})
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(console.Patience); !cond(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// picture writes a picture for people to look at, if a folder for pictures is named.
func picture(p *console.Page, name string) {
	if folder := os.Getenv("GOZZARD_TEST_PICTURES"); folder != "" {
		p.Picture(filepath.Join(folder, name+".png"))
	}
}
