//go:build linux

package fleettest_test

import (
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// keepSecret gives the files of a copied data folder the modes that a server wants.
func keepSecret(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return os.Chmod(path, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestTE12AgentComparesTheAccount: the account that a caller has a right to goes with the signed command. Here the server
// has an older copy of its record, so it takes a process for one of the caller's account. The agent knows better and
// rejects the command.
func TestTE12AgentComparesTheAccount(t *testing.T) {
	ft.FileOnly(t, "an older copy of the data folder is put back; the server refuses an older database")
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	s.StartAgent(t, 1, "")
	l := newLoot(t)
	admin := &tenant{API: s.API, t: t}
	if status, text := admin.native(http.MethodPut, "/api/v1/topology/2", l.business(2, 1, "nobody", "x"),
		nil); status != http.StatusOK {
		t.Fatal(text)
	}
	shop := newTenant(t, s, "shop", ft.J{"role": "operator", "businesses": []int{2}, "accounts": []string{"nobody"}})
	define := func(c *tenant, user string) {
		t.Helper()
		if text := c.operate(http.MethodPut, "/api/v1/processes", ft.J{"namespace": "JOB_BIZ_2", "name": "p",
			"hosts": []ft.J{{"cloud": 0, "ip": "127.0.0.1"}}, "spec": l.spec("x", user)}); strings.Contains(text, "refused") {
			t.Fatal(text)
		}
	}

	// Record the process for one account, copy the record, and give the process to another account.
	define(shop, "nobody")
	s.Kill(syscall.SIGTERM)
	older := t.TempDir()
	if err := os.CopyFS(older, os.DirFS(s.Data)); err != nil {
		t.Fatal(err)
	}
	keepSecret(t, older)
	s.Again()
	s.AwaitReady()
	s.AwaitOnline(t, 1)
	define(admin, "daemon")
	s.Kill(syscall.SIGTERM)

	// The older record says nobody, the host daemon.
	if err := os.Rename(s.Data, filepath.Join(t.TempDir(), "newer")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(older, s.Data); err != nil {
		t.Fatal(err)
	}
	s.Again()
	s.AwaitReady()
	s.AwaitOnline(t, 1)
	unregister := ft.J{"namespace": "JOB_BIZ_2", "names": []string{"p"},
		"hosts": []ft.J{{"cloud": 0, "ip": "127.0.0.1"}}}
	text := shop.operate(http.MethodDelete, "/api/v1/processes", unregister)
	if !strings.Contains(text, "has the account daemon, and the command is for the account nobody") {
		t.Errorf("the agent carried out a command for another account: %s", text)
	}
	if text := admin.operate(http.MethodDelete, "/api/v1/processes", unregister); strings.Contains(text, "refused") {
		t.Errorf("an admin of the whole fleet is held to an account: %s", text)
	}
}
