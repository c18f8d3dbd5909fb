//go:build linux

package console_test

import (
	"slices"
	"syscall"
	"testing"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/test/console"
)

// TestManyHosts: a table of many hosts draws only the rows in view, and an action can wait for a host that is offline.
func TestManyHosts(t *testing.T) {
	t.Parallel()
	f, sim := console.StartCrowd(t, 600)
	p := f.Open(t)
	p.EnterByLink()
	p.Go("/console/hosts")
	p.WaitText("600 of 600 hosts")
	p.Until("all are online", `[...document.querySelectorAll(".chip")].some((c) => c.innerText.includes("600"))`)
	p.Until("few rows", `document.querySelectorAll(".hosts-table tr").length < 120`)
	p.Accessible()

	// The last host is reached, and a word finds one.
	p.Until("the last row", `(() => { const s = document.querySelector(".hosts-scroll"); s.scrollTop = s.scrollHeight;
		return document.querySelector(".hosts-table tr[aria-rowindex='601']"); })()`)
	p.Until("few rows", `document.querySelectorAll(".hosts-table tr").length < 120`)
	p.Fill("Address, name, version", "sim-00007")
	p.WaitText("1 of 600 hosts")

	// A host goes away; an action on it waits until it is back.
	f.Define(t, "{namespace: sim, name: game, command: ok, user: root, hosts: [{ip: 127.1.1.1}], start_check: 1s}")
	f.Define(t, "{namespace: sim, name: lost, command: ok, user: root, hosts: [{ip: 127.1.1.2}], start_check: 1s}")
	sim.Kill(syscall.SIGKILL)
	p.Go("/console/process/sim/game")
	p.WaitText("127.1.1.1")
	eventually(t, "the host is offline", func() bool {
		hosts, err := f.Client.Hosts(t.Context(), 0, 1)
		return err == nil && len(hosts.Hosts) == 1 && !hosts.Hosts[0].Online
	})
	forgetHost(t, f, p)
	p.Go("/console/process/sim/game")
	p.Click("button", "Start")
	p.WaitText("1 of the hosts is offline")
	p.Accessible()
	p.Eval(`(() => { const e = document.querySelector("dialog select"); e.value = "600"; e.dispatchEvent(new Event("change", {bubbles: true})); })()`, nil)
	p.Click("button", "Start 1 process")
	p.WaitNo("dialog", "")
	sim.Again()
	eventually(t, "the process runs", func() bool { return f.Process(t, "game").State == client.StateRunning })
}

// forgetHost: a host that is offline for good is forgotten on its page, with the definitions on it.
func forgetHost(t *testing.T, f *console.Fleet, p *console.Page) {
	t.Helper()
	lost := f.Process(t, "lost").Host.Agent
	eventually(t, "the host of the process is offline", func() bool {
		hosts, err := f.Client.Hosts(t.Context(), 0, 1000)
		return err == nil && slices.ContainsFunc(hosts.Hosts, func(h client.HostInfo) bool {
			return h.Agent == lost && !h.Online
		})
	})
	p.Go("/console/hosts/" + string(lost))
	p.WaitText("lost")
	p.Click("button", "Forget")
	p.Wait("dialog", "Forget 127.1.1.2")
	p.Accessible()
	submit(p)
	p.WaitText("There is no such host")

	hosts, err := f.Client.Hosts(t.Context(), 0, 1000)
	if err != nil || hosts.Count != 599 {
		t.Errorf("%d hosts: %v", hosts.Count, err)
	}
	page, err := f.Client.Processes(t.Context(), client.ProcessQuery{Names: []string{"lost", "game"}}, 0, 10)
	if err != nil || len(page.Processes) != 1 || page.Processes[0].Name != "game" {
		t.Errorf("processes after the host was forgotten: %+v, %v", page.Processes, err)
	}
}
