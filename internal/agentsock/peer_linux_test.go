package agentsock_test

import (
	"bufio"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/gozzard/gozzard/internal/agentsock"
)

var nobodyHere = account{uid: 54321, gid: 54321}

// TE7: the mode of the socket blocks strangers. If the mode is wrong, their connections are closed without an answer,
// counted, and sometimes logged.
func TestTE7StrangersGetNothing(t *testing.T) {
	needsRoot(t)
	s := serve(t, filepath.Join(openFolder(t), "agent.sock"), "", nil).up(t)
	fi, err := os.Lstat(s.path)
	if err != nil || fi.Mode() != os.ModeSocket|0o600 || fi.Sys().(*syscall.Stat_t).Uid != 0 {
		t.Fatalf("%v, %v", fi.Mode(), err)
	}
	if h := nobodyHere.asks(t, s.path, getStatus, 0); !strings.Contains(h.Refused, "permission denied") ||
		h.Bytes != 0 {
		t.Errorf("%+v", h)
	}

	if err := os.Chmod(s.path, 0o666); err != nil {
		t.Fatal(err)
	}

	strangers := []account{nobodyHere, {uid: 54321, gid: 0}, {uid: 65534, gid: 65534, groups: []uint32{0, 1, 100}}}
	for i, request := range []string{getStatus, getProcesses, postReconnect, "", strings.Repeat("x", 64<<10)} {
		if h := strangers[i%len(strangers)].asks(t, s.path, request, 0); h.Refused != "" &&
			!strings.Contains(h.Refused, "broken pipe") || h.Bytes != 0 {
			t.Errorf("a stranger with %.20q: %+v", request, h)
		}
	}

	st, err := agentsock.NewClient(s.path).Status(t.Context())
	if err != nil || st.Refused != 5 {
		t.Errorf("%d were refused, %v", st.Refused, err)
	}
	// 1, 2 and 4
	if n := strings.Count(s.log.String(), "rejected a connection to the local socket"); n != 3 ||
		!strings.Contains(s.log.String(), "uid=54321") {
		t.Errorf("%d lines:\n%s", n, &s.log)
	}

	if s.reconnects.Load() != 0 {
		t.Error("a stranger made the agent reconnect")
	}
}

// TE7: members of the group have read access only, whether it is their first group or one of very many.
func TestTE7MembersOnlyLook(t *testing.T) {
	needsRoot(t)
	const group = 100
	name := strconv.Itoa(group)
	if g, err := user.LookupGroupId(name); err == nil {
		name = g.Name
	}

	s := serve(t, filepath.Join(openFolder(t), "agent.sock"), name, nil).up(t)
	fi, err := os.Lstat(s.path)
	if err != nil || fi.Mode() != os.ModeSocket|0o660 || fi.Sys().(*syscall.Stat_t).Gid != group ||
		fi.Sys().(*syscall.Stat_t).Uid != 0 {
		t.Fatalf("%+v, %v", fi, err)
	}

	var many []uint32
	for n := range uint32(200) {
		many = append(many, 70000+n)
	}

	for name, acct := range map[string]account{
		"first group": {uid: 54321, gid: group}, "second group": {uid: 54321, gid: 54321, groups: []uint32{group}},
		"one of many": {uid: 54321, gid: 54321, groups: append([]uint32{group}, many...)},
	} {
		if h := acct.asks(t, s.path, getStatus, 0); h.Code != 200 || !strings.Contains(h.Body, `"agent":"a1"`) {
			t.Errorf("%s: status %+v", name, h)
		}
		if h := acct.asks(t, s.path, getProcesses, 0); h.Code != 200 ||
			!strings.Contains(h.Body, `"name":"web\u001b[31m"`) {
			t.Errorf("%s: processes %+v", name, h)
		}
		if h := acct.asks(t, s.path, postReconnect, 0); h.Code != 403 ||
			!strings.Contains(h.Body, "members of its group may look only") {
			t.Errorf("%s: reconnect %+v", name, h)
		}
	}

	if err := os.Chmod(s.path, 0o666); err != nil {
		t.Fatal(err)
	}
	if h := (account{uid: 54321, gid: 54321, groups: many}).asks(t, s.path, getStatus, 0); h.Bytes != 0 {
		t.Errorf("in many groups, but not in that one: %+v", h)
	}
	if s.reconnects.Load() != 0 {
		t.Error("a member made the agent reconnect")
	}
	if h := (account{}).asks(t, s.path, postReconnect, 0); h.Code != 202 || s.reconnects.Load() != 1 {
		t.Errorf("root: %+v, %d times", h, s.reconnects.Load())
	}
	if h := (account{}).asks(t, s.path, postReconnect, 0); h.Code != 429 && h.Code != 202 {
		t.Errorf("root, at once again: %+v", h)
	}
}

// TE7: an agent of an ordinary account answers that account and root.
func TestTE7AgentOfAnOrdinaryAccount(t *testing.T) {
	needsRoot(t)
	dir := filepath.Join(openFolder(t), "state")
	if err := os.Mkdir(dir, 0o755); err != nil { // open to all, so that only the socket protects itself
		t.Fatal(err)
	}

	me := account{uid: 54322, gid: 54322}
	if err := os.Chown(dir, int(me.uid), int(me.gid)); err != nil {
		t.Fatal(err)
	}

	path := filepath.Join(dir, "agent.sock")
	cmd := me.command("serve", path)
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })

	if line, err := bufio.NewReader(out).ReadString('\n'); !strings.Contains(line, "local socket is served") {
		t.Fatalf("%q, %v", line, err)
	}

	fi, err := os.Lstat(path)
	if err != nil || fi.Mode() != os.ModeSocket|0o600 || fi.Sys().(*syscall.Stat_t).Uid != me.uid {
		t.Fatalf("%v, %v", fi, err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if h := me.asks(t, path, postReconnect, 0); h.Code != 202 {
		t.Errorf("itself: %+v", h)
	}
	if h := (account{}).asks(t, path, getStatus, 0); h.Code != 200 {
		t.Errorf("root: %+v", h)
	}
	if h := (account{uid: 54323, gid: me.gid, groups: []uint32{me.gid}}).asks(t, path, getStatus, 0); h.Bytes != 0 {
		t.Errorf("another account of its group: %+v", h)
	}

	// A killed agent leaves the file of the socket. The next agent replaces it, and removes it at its end.
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}

	_ = cmd.Wait()
	if _, err := os.Lstat(path); err != nil {
		t.Fatalf("a killed agent cannot have cleared up: %v", err)
	}
	if _, err := agentsock.NewClient(path).Status(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "no agent listens on "+path) {
		t.Errorf("%v", err)
	}
}

// On a kernel that does not provide the groups of a peer, the files of the host are used.
func TestDatabaseGroups(t *testing.T) {
	root, err := user.LookupId("0")
	if err != nil {
		t.Skip("this host has no files of accounts")
	}

	gid, err := strconv.ParseUint(root.Gid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	if groups := agentsock.DatabaseGroups(0); !slices.Contains(groups, uint32(gid)) {
		t.Errorf("root is in %v", groups)
	}
	if groups := agentsock.DatabaseGroups(4_000_000_000); len(groups) != 0 {
		t.Errorf("an account that does not exist is in %v", groups)
	}
}
