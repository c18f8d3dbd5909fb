//go:build linux

package console_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/test/console"
	"github.com/gozzard/gozzard/test/fleettest"
)

// TestMembers: the life of an enrolled host on the pages of hosts and releases. It gets a release, is in quarantine after
// its state folder was copied, and waits after the server was restored from a backup.
func TestMembers(t *testing.T) {
	t.Parallel()
	s := console.StartServer(t, "--release-two-person")
	host := s.Join(t, 1, "")
	for _, name := range []string{"ada", "ben"} {
		s.AddUser(t, name, password, client.Grant{Role: "admin"})
	}
	p := s.Open(t)
	p.SignIn("ada", password)
	p.Wait("navigation", "Pages")
	p.Go("/console/hosts")
	p.WaitSelector(".hosts-table .online-yes")

	rollRelease(t, s, p, host)
	quarantined(t, p, host)
	restored(t, s, p, host)
}

// rollRelease brings a release to the host: one person starts it, another one approves it.
func rollRelease(t *testing.T, s *console.Server, p *console.Page, host *console.Member) {
	t.Helper()
	const version = "1.1.0"
	program := filepath.Join(t.TempDir(), "gozzard")
	fleettest.BuildVersion(t, version, program)
	key := fleettest.NewReleaseKey(t)
	host.Trust(t, key)
	pid := host.PID()

	// The release is published, and offered.
	s.Run(t, "release", "publish", key.ReleaseOf(t, version, program, nil))
	p.Click("link", "Releases")
	p.Click("button", "Roll out")
	p.Wait("dialog", "Bring "+version+" to hosts")
	p.Fill("Stages, in percent of the hosts", "50, 10")
	p.WaitText("Write whole numbers that rise to 100")
	p.Accessible()
	p.Fill("Stages, in percent of the hosts", "100")
	submit(p)
	p.WaitText("you started it, so another person must approve it")
	p.WaitText("0 of 1 host has it")
	if p.Has("button", "Approve") || p.Has("button", "Roll out") {
		t.Error("the person that started a roll may approve it, or start another one")
	}
	p.Accessible()

	// A roll that waits is stopped, and another one begins.
	does(p, "Stop", "Stop the roll to "+version)
	p.WaitText(version + " · stopped")
	p.Click("button", "Roll out")
	p.Fill("Stages, in percent of the hosts", "100")
	submit(p)
	p.WaitText("you started it, so another person must approve it")

	// Another person approves it; the first one sees its end without a touch.
	other := s.Open(t)
	other.SignIn("ben", password)
	other.Wait("navigation", "Pages")
	other.Go("/console/releases")
	other.Click("button", "Approve")
	other.Wait("dialog", "Approve the roll to "+version)
	other.Accessible()
	submit(other)
	for _, page := range []*console.Page{p, other} {
		page.WaitText(version + " · done")
		page.WaitText("1 of 1 host has it")
		page.WaitText("approved by user ben")
	}
	p.Accessible()
	p.Click("button", "中文")
	p.WaitText("1 / 1 台主机已完成")
	p.Accessible()
	fits(p, 390)
	p.Click("button", "English")

	// The host says its version; its agent is the same process.
	p.Click("link", "Hosts")
	p.Until("the new version", `document.querySelector(".hosts-table")?.innerText.includes("`+version+`")`)
	if host.PID() != pid {
		t.Errorf("the agent has pid %d, had %d", host.PID(), pid)
	}

	// The release is removed.
	p.Go("/console/releases")
	p.Click("button", "Remove")
	p.Wait("dialog", "Remove release "+version)
	submit(p)
	p.WaitText("No release is published")
}

// quarantined copies the state folder of the host. Both agents are out until a person has removed the copy.
func quarantined(t *testing.T, p *console.Page, host *console.Member) {
	t.Helper()
	p.Go("/console/hosts")
	p.WaitSelector(".hosts-table .online-yes")
	second := host.Copy(t)

	// The page says so by itself, and why.
	p.WaitText("1 host waits for you")
	p.WaitText("Find the copy and remove it, then approve the host")
	p.WaitSelector(".hosts-table .online-no")
	p.Accessible()
	p.Click("button", "中文")
	p.WaitText("请先找到并清除副本")
	p.Accessible()
	fits(p, 390)
	p.Click("button", "English")

	// It comes back when the copy is gone and the host is approved.
	second.Kill(syscall.SIGKILL)
	p.Click("button", "Approve")
	p.Wait("dialog", "Approve 127.0.0.1")
	p.WaitText("Have you found the copy of its state folder")
	p.Accessible()
	submit(p)
	p.WaitNoText("waits for you")
	comesBack(p, host)
}

// comesBack waits until the host is online. Its agent starts again, because a rejected one waits longer and longer.
func comesBack(p *console.Page, host *console.Member) {
	host.Kill(syscall.SIGTERM)
	host.Again()
	p.WaitSelector(".hosts-table .online-yes")
}

// restored loses the server and restores it from a backup. The host waits until an admin has looked at the list.
func restored(t *testing.T, s *console.Server, p *console.Page, host *console.Member) {
	t.Helper()
	dir := t.TempDir()
	key, file := filepath.Join(dir, "key"), filepath.Join(dir, "backup.age")
	recipient := strings.TrimSpace(s.Run(t, "backup", "keygen", "--to", key))
	s.Run(t, "backup", "create", "--data", s.Data, "--to", file, "--recipient", recipient)
	s.Kill(syscall.SIGTERM)
	p.WaitText("No connection to the server")
	s.Restored(t, file, key)

	// A session may have been revoked after the backup, so all have ended. The page says what happened.
	p.WaitText("Your session has ended")
	p.SignIn("ada", password)
	p.WaitText("The record was restored from a backup")
	p.WaitText("1 host cannot connect until an admin confirms")
	p.WaitText("waits after a restore")
	p.Accessible()
	p.Click("button", "中文")
	p.WaitText("服务端数据由备份恢复")
	p.Accessible()
	fits(p, 390)
	p.Click("button", "English")

	// A person confirms the number of hosts, and the host comes back.
	p.Click("button", "Confirm the restore")
	p.Wait("dialog", "Confirm the restore")
	p.Fill("Number of hosts", "2")
	p.Until("the button waits for the right number", `document.querySelector("dialog [type=submit]").disabled`)
	p.Accessible()
	p.Fill("Number of hosts", "1")
	submit(p)
	p.WaitNoText("The record was restored from a backup")
	comesBack(p, host)
}
