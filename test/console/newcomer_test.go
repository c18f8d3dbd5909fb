//go:build linux

package console_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/gozzard/gozzard/test/console"
)

// TestFirstLook: what a newcomer tries on the demo fleet is answered: filters that mean nothing, keys, colours, names,
// forms and charts without content, and a phone.
func TestFirstLook(t *testing.T) {
	t.Parallel()
	f := console.StartFleet(t, 3, "--demo")
	p := f.Open(t)
	p.Prefer("prefers-color-scheme", "light")
	p.EnterByLink()
	p.WaitText("14 processes on 3 hosts")

	// The first click on the button for colours changes them, and the next one changes them back.
	p.Until("a light page", `getComputedStyle(document.body).backgroundColor === "rgb(247, 248, 248)"`)
	p.Click("button", "Colours of the system")
	p.Until("a dark page", `getComputedStyle(document.body).backgroundColor === "rgb(15, 21, 20)"`)
	p.Click("button", "Dark")
	p.Until("a light page", `getComputedStyle(document.body).backgroundColor === "rgb(247, 248, 248)"`)

	// The page of requests is there for everybody.
	p.TypeUntil("gr", "the page of requests", `location.pathname === "/console/requests"`)
	p.WaitText("Nothing waits for a second person")

	// A filter that is not understood is explained.
	for filter, fault := range map[string]string{
		"foo:bar":     `"foo:" is not a field. Fields are state, name,`,
		"state:bogus": `"bogus" is not a state. States are `,
		"shop.*.web":  `"shop.*.web" has 3 parts. An expression has five`,
		"web*":        "For a pattern write name:web*",
	} {
		p.Go("/console/processes?f=" + filter)
		p.WaitText(fault)
	}
	p.Accessible()

	// Dialogs and tasks name processes as the list does, and one host by its address.
	p.Go("/console/processes?f=host:127.0.0.3")
	p.WaitText("of 14 processes shown")
	p.Type("ar")
	p.WaitText("on host 127.0.0.3")
	p.WaitText("demo/web #2")
	noRecordedNames(t, p)
	p.Press(kb.Escape)
	p.Go("/console/tasks")
	p.WaitText("demo/chat")
	noRecordedNames(t, p)
	p.Click("link", "Stop")
	p.WaitText("Processes of this task")
	noRecordedNames(t, p)

	// Nothing is wrong with a form that was not touched yet.
	p.Go("/console/register")
	p.Wait("textbox", "Name")
	p.WaitNoText("Checking")
	if text := p.Text(); strings.Contains(text, "fault") {
		t.Errorf("an untouched form has faults:\n%s", text)
	}

	// A chart without data says so.
	p.Go("/console/process/GSEKIT_BIZ_1000/chat_1?tab=charts")
	p.WaitText("No data in this range yet")
	p.Accessible()

	// The header of a phone leaves room for the page.
	p.Size(390, 800)
	p.Until("a low header", `document.querySelector("header.top").getBoundingClientRect().height < 90`)
	p.Go("/console/tasks")
	p.WaitText("demo/chat")
	p.Until("closed filters", `document.querySelector("details.fold")?.open === false`)
	narrow(p)
}

// noRecordedNames checks that the page has no recorded name of a process of a business.
func noRecordedNames(t *testing.T, p *console.Page) {
	t.Helper()
	if text := p.Text(); strings.Contains(text, "GSEKIT_BIZ") {
		t.Errorf("%s shows recorded names:\n%s", p.Path(), text)
	}
}

// TestDialogAsksAgain: the dialog of an action that was opened while the server was gone shows what it would do when
// the server is back.
func TestDialogAsksAgain(t *testing.T) {
	t.Parallel()
	f := console.StartFleet(t, 1)
	runSleepers(t, f, "a", "b")
	p := f.Open(t)
	p.EnterByLink()
	p.Go("/console/processes")
	rowsAre(p, 2)
	p.Type("ar")
	p.WaitText("2 processes on host 127.0.0.1")
	p.Press(kb.Escape)
	p.WaitNoSelector("dialog")

	p.Allow("ERR_") // requests that find no server
	f.Kill(syscall.SIGKILL)
	p.WaitText("No connection to the server")
	p.Type("r")
	p.WaitText("The server does not answer")
	f.Restart()
	p.WaitText("2 processes on host 127.0.0.1")
	p.WaitNoText("The server does not answer")
}

// TestLanguageOfEvents: events that are on the page follow its language, also those that came while it was open.
func TestLanguageOfEvents(t *testing.T) {
	t.Parallel()
	f := console.StartFleet(t, 1)
	f.Define(t, `{namespace: shop, name: sick, command: [sleep, "100000"], folder: /, start_check: 0s,
health: {command: "echo out of luck; exit 3", interval: 1s, failures: 1}}`)
	p := f.Open(t)
	p.EnterByLink()
	p.Go("/console/process/shop/sick?tab=events")
	p.WaitText("Nothing has happened yet")

	f.Operate(t, "start", "sick")
	p.WaitText("health_cmd exited with 3: out of luck")
	p.Click("button", "中文")
	p.WaitText("health_cmd 的退出码为 3：out of luck")
	p.WaitNoText("health_cmd exited")
	p.Click("button", "English")
	p.WaitText("health_cmd exited with 3: out of luck")
	p.WaitNoText("health_cmd 以")
}
