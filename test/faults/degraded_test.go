//go:build linux

package faults_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/gozzard/gozzard/client"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// H3: a machine without some kernel features. The host is listed with what is missing, and the agent works.
func TestH3Degraded(t *testing.T) {
	t.Parallel() // it mostly waits
	needs(t, "unshare")
	unified := mountOf(t, "cgroup2")
	for name, remove := range map[string]string{
		"no cgroup":        "umount -l " + unified,
		"read-only cgroup": "mount -o remount,bind,ro " + unified,
	} {
		t.Run(name, func(t *testing.T) {
			s := ft.StartServer(t, "")
			agent := s.StartAgent(t, 1, "")
			agent.Kill(syscall.SIGKILL)
			agent.Through("unshare", "--mount", "--propagation", "private", "sh", "-c", remove+" && exec \"$@\"", "sh")
			s.AgainOnline(t, agent)
			reasons := missing(t, s, "cgroup")
			f := startFleet(t, s, agent, "gzpoor", 5)
			done := 0
			for _, op := range []int{8, 7, 1, 0, 9, 0} { // reload, restart, stop, start, kill, start
				must(t, operate(t, s.API, f.ds[0], op, f.ds[0].Spec(nil)), 0)
				done++
			}

			cameBack(t, f.ds[1])
			f.ds, f.pids = f.ds[2:], f.pids[2:]
			agent.Kill(syscall.SIGKILL)
			s.AgainOnline(t, agent)
			f.untouched("after the agent was killed")
			cameBack(t, f.ds[0])
			fmt.Printf("fault H3 %s: %q; %d operations done, what died came back, what runs was found again\n", name,
				reasons, done)
		})
	}
}

// missing checks that the only host of a server is listed as degraded for a reason, and returns all reasons.
func missing(t *testing.T, s *ft.Server, what string) []string {
	t.Helper()
	reasons := degraded(t, s)
	if !strings.Contains(strings.Join(reasons, "; "), what) {
		t.Fatalf("the host is not listed as degraded: %q", reasons)
	}
	return reasons
}

// degraded is what is listed as missing on the only host of a server.
func degraded(t *testing.T, s *ft.Server) []string {
	t.Helper()
	c, err := client.New(s.Cred.URL, client.Credentials{AppCode: s.Cred.AppCode, AppSecret: s.Cred.Secret,
		Username: s.Cred.Username})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	page, err := c.Hosts(t.Context(), 0, 10)
	if err != nil || len(page.Hosts) != 1 {
		t.Fatalf("%+v, %v", page, err)
	}
	return page.Hosts[0].Degraded
}
