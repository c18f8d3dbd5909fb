//go:build linux

package console_test

import (
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/test/console"
	"github.com/gozzard/gozzard/test/fleettest"
)

// TestTwoPeople: an admin sees what another person could do; then both look at one process, and each sees at once what the
// other one does with it.
func TestTwoPeople(t *testing.T) {
	t.Parallel()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	f := console.StartFleet(t, 1)
	applyBusiness(t, f, 7, "ID", "7", "NAME", "corner", "SETNAME", "front", "MODULE", "web", "INSTANCE", "till_1", "HOST", "127.0.0.1",
		"PROCESS", "till", "COMMAND", "exec sleep 100000")
	f.AddUser(t, "ada", password, client.Grant{Role: "admin"})
	f.AddUser(t, "ben", password, client.Grant{Role: "operator", Businesses: []int{7}, Accounts: []string{me.Username}})
	f.AddUser(t, "eve", password, client.Grant{Role: "operator", Businesses: []int{8}, Accounts: []string{me.Username}})
	ada, ben := f.Open(t), f.Open(t)
	ada.SignIn("ada", password)
	ben.SignIn("ben", password)
	for _, p := range []*console.Page{ada, ben} {
		p.Wait("navigation", "Pages")
	}

	couldDo(ada)
	leave := filepath.Join(t.TempDir(), "leave")
	f.Define(t, strings.Replace(stubborn(leave), "namespace: shop", "namespace: GSEKIT_BIZ_7\nuser: "+me.Username, 1))
	seeEachOther(t, f, ada, ben, leave)
}

// couldDo asks what two people could do with the process of a business: one has a grant on it, the other one on another
// business.
func couldDo(p *console.Page) {
	p.Go("/console/people?tab=grants&namespace=GSEKIT_BIZ_7&host=127.0.0.1&user=ben&action=start")
	p.Click("button", "Ask")
	p.WaitText("Yes, this is allowed")
	p.WaitText("✓ operator businesses 7")
	p.Accessible()

	p.Fill("User", "eve")
	p.Click("button", "Ask")
	p.WaitText("No, this is refused")
	p.WaitText("✗ operator businesses 8")
	p.Accessible()
	p.Click("button", "中文")
	p.WaitText("拒绝")
	p.Accessible()

	// The question is in the address.
	p.Reload()
	p.Click("button", "检查")
	p.WaitText("✗ 拒绝")
	p.Click("button", "English")
}

// seeEachOther: one person restarts a process that stops when a file is there, and the other one sees it while it happens,
// with the name.
func seeEachOther(t *testing.T, f *console.Fleet, ada, ben *console.Page, leave string) {
	t.Helper()
	f.Operate(t, "start", "stubborn")
	for _, p := range []*console.Page{ada, ben} {
		p.Go("/console/process/GSEKIT_BIZ_7/stubborn?tab=events")
		p.WaitText("started")
		p.Eval(`void (window.untouched = true)`, nil)
	}
	before := f.Process(t, "stubborn").PID

	// While it runs: the name, the act and a link to its task.
	ben.Click("button", "Restart")
	ben.Click("button", "Restart 1 process")
	ada.WaitText("ben works on this process now: Restart.")
	ben.WaitText("Your action runs now: Restart.")
	ada.Accessible()
	if err := os.WriteFile(leave, nil, 0o644); err != nil {
		t.Fatal(err)
	}

	// After it: state, event and person, without a touch.
	ada.WaitNoText("works on this process now")
	ada.WaitText("by ben")
	ada.Until("it runs", `document.querySelector(".state-running")`)
	if now := f.Process(t, "stubborn").PID; now == before || now == 0 {
		t.Errorf("the process has pid %d, had %d", now, before)
	}
	ada.Accessible()
	for _, p := range []*console.Page{ada, ben} {
		var untouched bool
		if p.Eval(`window.untouched === true`, &untouched); !untouched {
			t.Error("a page was loaded again")
		}
	}
}

// secondPersonOfTask: commands of root wait on the page of tasks. Another admin rejects them, or approves them; the person
// that asked withdraws them.
func secondPersonOfTask(t *testing.T, s *console.Server, ada, ben *console.Page) {
	t.Helper()
	online(t, s.Fleet)
	ask := func() {
		ada.Go("/console/process/shop/rooted")
		ada.Click("button", "Start")
		ada.WaitText("This needs a second person")
		ada.Accessible()
		ada.Click("button", "Ask: Start 1 process")
		ada.WaitText("Nothing was done yet")
		ada.Accessible()
		ada.Click("button", "Close")
		ada.Click("link", "Tasks")
		ada.Wait("heading", "Waiting for a second person")
	}

	// The person that asked can only withdraw it.
	ask()
	if ada.Has("button", "Approve") || ada.Has("button", "Reject") {
		t.Error("the person that asked may decide")
	}
	ada.Accessible()
	ada.Click("button", "Withdraw")
	ada.WaitNo("heading", "Waiting for a second person")

	// Another one rejects it, and then approves it after a look at the digest.
	ask()
	ben.Go("/console/tasks")
	ben.WaitText("ada asks for this")
	ben.Accessible()
	ben.Click("button", "Reject")
	ben.WaitNo("heading", "Waiting for a second person")
	ask()
	ben.Reload()
	ben.Click("button", "Approve")
	ben.WaitText("Digest of what is approved")
	ben.Accessible()
	fits(ben, 390)
	ben.Click("button", "Approve: carry this out now")
	ben.WaitNo("heading", "Waiting for a second person")
	for _, p := range []*console.Page{ada, ben} {
		p.Until("the task of the start", `[...document.querySelectorAll("main tr")].some((r) =>
			r.innerText.includes("Start") && r.innerText.includes("1 of 1 done, 0 failed"))`)
	}
	eventually(t, "the process runs", func() bool { return s.Process(t, "rooted").State == client.StateRunning })
	fleettest.KillPID(t, int(s.Process(t, "rooted").PID)) // it would outlive its agent

	// All of them, with what came of them, are on the page of requests.
	ben.Go("/console/requests?all=1")
	ben.WaitText("approved")
	ben.WaitText("rejected")
	ben.Accessible()
}

// online waits until the one host of a fleet is online.
func online(t *testing.T, f *console.Fleet) {
	t.Helper()
	eventually(t, "the host is online", func() bool {
		hosts, err := f.Client.Hosts(t.Context(), 0, 1)
		return err == nil && len(hosts.Hosts) == 1 && hosts.Hosts[0].Online
	})
}
