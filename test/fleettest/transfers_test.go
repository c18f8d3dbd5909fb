//go:build linux

package fleettest_test

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// transferEnd is an agent of a transfer, with the account that reads or writes there.
func transferEnd(host int, user string) ft.J {
	return ft.J{"bk_agent_id": fmt.Sprintf("0:127.0.0.%d", host), "bk_container_id": "", "user": user}
}

// transferOf is a task of a transfer from host 1 to host 2, as nobody.
func transferOf(from, to string, source, target ft.J) ft.J {
	s := ft.J{"file_name": filepath.Base(from), "store_dir": filepath.Dir(from), "agent": transferEnd(1, "nobody")}
	t := ft.J{"file_name": filepath.Base(to), "store_dir": filepath.Dir(to) + "/", "agents": []ft.J{transferEnd(2, "nobody")}}
	for k, v := range source {
		s[k] = v
	}
	for k, v := range target {
		t[k] = v
	}
	return ft.J{"source": s, "target": t}
}

// fileRow is the result of a file.
type fileRow struct {
	ErrorCode int    `json:"error_code"`
	ErrorMsg  string `json:"error_msg"`
	Content   struct {
		Dest       string `json:"dest_agent_id"`
		DestDir    string `json:"dest_file_dir"`
		DestName   string `json:"dest_file_name"`
		Source     string `json:"source_agent_id"`
		SourceDir  string `json:"source_file_dir"`
		SourceName string `json:"source_file_name"`
		Progress   int    `json:"progress"`
		Size       int64  `json:"size"`
	} `json:"content"`
}

// beginTransfer sends a transfer as bk-bscp does, and returns its task, or the refusal of the whole request.
func (c *tenant) beginTransfer(more ft.J, tasks ...ft.J) (task, refusal string) {
	c.t.Helper()
	body := ft.J{"timeout_seconds": 600, "auto_mkdir": true, "upload_speed": 0, "download_speed": 0, "tasks": tasks}
	for k, v := range more {
		body[k] = v
	}
	var made struct {
		Data struct {
			Result struct {
				TaskID string `json:"task_id"`
			} `json:"result"`
		} `json:"data"`
	}
	_, text := c.native(http.MethodPost, "/api/bk-gse/prod"+scriptPath+"async_transfer_file/", body, &made)
	return made.Data.Result.TaskID, text
}

// transferRows polls a transfer once.
func (c *tenant) transferRows(task string, more ft.J) (rows []fileRow, text string) {
	c.t.Helper()
	body := ft.J{"task_id": task}
	for k, v := range more {
		body[k] = v
	}
	var got struct {
		Data struct {
			Result []fileRow `json:"result"`
		} `json:"data"`
	}
	_, text = c.native(http.MethodPost, scriptPath+"get_transfer_file_result", body, &got)
	return got.Data.Result, text
}

// transfer transfers files and waits for the end. A request that is refused as a whole has a row with the refusal.
func (c *tenant) transfer(more ft.J, tasks ...ft.J) []fileRow {
	c.t.Helper()
	task, refusal := c.beginTransfer(more, tasks...)
	if task == "" {
		return []fileRow{{ErrorCode: -1, ErrorMsg: refusal}}
	}
	return c.transferred(task)
}

// transferred waits for the end of a transfer as bk-bscp does: until no row has 115.
func (c *tenant) transferred(task string) (rows []fileRow) {
	c.t.Helper()
	ft.Until(c.t, time.Minute, func() string { return fmt.Sprintf("the transfer has not ended: %+v", rows) }, func() bool {
		rows, _ = c.transferRows(task, nil)
		for _, r := range rows {
			if r.ErrorCode == 115 {
				return false
			}
		}
		return len(rows) > 0
	})
	return rows
}

// transferFleet is a server with two hosts that allow files below one folder each, and an app with the right to transfer.
func transferFleet(t *testing.T, code string, flags ...string) (s *ft.Server, c *tenant, from, to string) {
	t.Helper()
	s, _, c, from, to = transferHosts(t, code, flags...)
	return s, c, from, to
}

// transferHosts is transferFleet with the agents of the hosts.
func transferHosts(t *testing.T, code string, flags ...string) (s *ft.Server, agents []*ft.Program, c *tenant, from, to string) {
	t.Helper()
	s = ft.StartServer(t, "", flags...)
	folders := []string{fileFolder(t, "nobody"), fileFolder(t, "nobody")}
	for i, dir := range folders {
		state := t.TempDir()
		rules := fmt.Sprintf("users: [nobody, daemon]\ndeny_uids: \"\"\nfiles: {paths: [%s], max_size: 4194304}\n", dir)
		if err := os.WriteFile(state+"/policy.yaml", []byte(rules), 0o600); err != nil {
			t.Fatal(err)
		}
		agents = append(agents, s.StartAgentIn(t, i+1, state, ""))
	}
	return s, agents, newTenant(t, s, code, transferGrant(nil)), folders[0], folders[1]
}

// transferGrant is a grant to transfer files as nobody.
func transferGrant(more ft.J) ft.J {
	g := ft.J{"role": "operator", "hosts": "any", "actions": []string{"transfer"}, "accounts": []string{"nobody"}}
	for k, v := range more {
		if g[k] = v; v == nil {
			delete(g, k)
		}
	}
	return g
}

// source writes a file of nobody.
func source(t *testing.T, path string, content []byte, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, content, mode); err != nil {
		t.Fatal(err)
	}
	ft.Chown(t, path, "nobody")
}

// TestTransfers transfers files between two hosts through the API of GSE: a small one, one in parts, into new folders, and several
// in one request of which one cannot be read.
func TestTransfers(t *testing.T) {
	t.Parallel() // it mostly waits
	_, c, from, to := transferFleet(t, "transfers")
	small, big := []byte("listen 80;\n"), large(7, 3<<20+5)
	source(t, from+"/app.conf", small, 0o640)
	source(t, from+"/big.bin", big, 0o600)
	has := func(path string, want []byte, mode os.FileMode) {
		t.Helper()
		got, err := os.ReadFile(path)
		info, _ := os.Lstat(path)
		if err != nil || !bytes.Equal(got, want) || info.Mode() != mode {
			t.Errorf("%s: %v, %d bytes, %v", path, err, len(got), info)
		}
	}

	sum := md5.Sum(small)
	task, refusal := c.beginTransfer(nil, transferOf(from+"/app.conf", to+"/new/deep/web.conf", ft.J{"md5": hex.EncodeToString(sum[:])},
		ft.J{"owner": "nobody", "permission": 0}))
	if task == "" {
		t.Fatal(refusal)
	}
	ft.Until(t, time.Minute, func() string { return c.taskState(task) }, func() bool {
		return strings.Contains(c.taskState(task), `"state":"successed","successed_agents":["0:127.0.0.2"]`)
	})
	has(to+"/new/deep/web.conf", small, 0o640)
	rows, _ := c.transferRows(task, ft.J{"agents": []ft.J{{"bk_agent_id": "0:127.0.0.2", "bk_container_id": ""}}})
	if len(rows) != 1 || rows[0].ErrorCode != 0 || rows[0].Content.Dest != "0:127.0.0.2" || rows[0].Content.DestDir != to+"/new/deep" ||
		rows[0].Content.DestName != "web.conf" || rows[0].Content.Source != "0:127.0.0.1" || rows[0].Content.SourceDir != from ||
		rows[0].Content.SourceName != "app.conf" || rows[0].Content.Progress != 100 || rows[0].Content.Size != int64(len(small)) {
		t.Errorf("%+v", rows)
	}
	if rows, _ := c.transferRows(task, ft.J{"agents": []ft.J{{"bk_agent_id": "0:127.0.0.9"}}}); len(rows) != 0 {
		t.Errorf("%+v", rows)
	}

	// A content in parts, without a name for the target, and a source that does not exist.
	task, refusal = c.beginTransfer(nil, transferOf(from+"/big.bin", to+"/x", nil, ft.J{"file_name": ""}),
		transferOf(from+"/none", to+"/y", nil, nil))
	if task == "" {
		t.Fatal(refusal)
	}
	rows = c.transferred(task)
	if len(rows) != 2 || rows[0].ErrorCode != 0 || rows[1].ErrorCode == 0 || !strings.Contains(rows[1].ErrorMsg, "there is no such file") ||
		rows[1].Content.DestName != "y" {
		t.Errorf("%+v", rows)
	}
	has(to+"/big.bin", big, 0o600)
	gone := func() {
		t.Helper()
		if _, err := os.Lstat(to + "/y"); err == nil {
			t.Error("a file without a source was written")
		}
	}
	gone()

	// To repeat the task does not write an empty file instead.
	if text := c.operate(http.MethodPost, "/api/v1/tasks/"+task+"/retry", ft.J{}); strings.Contains(text, `"verdict":"done"`) {
		t.Errorf("%s", text)
	}
	gone()

	// Without auto_mkdir no folder is made.
	rows = c.transfer(ft.J{"auto_mkdir": false}, transferOf(from+"/app.conf", to+"/other/web.conf", nil, nil))
	if rows[0].ErrorCode == 0 || !strings.Contains(rows[0].ErrorMsg, "does not exist: make it first") {
		t.Errorf("%+v", rows)
	}
}

// TestTT16TransfersOfOthers tries to get around the right to transfer files and around the policies of both hosts.
func TestTT16TransfersOfOthers(t *testing.T) {
	t.Parallel() // it mostly waits
	s, c, from, to := transferFleet(t, "transfers-right")
	secret := []byte("secret of nobody\n")
	source(t, from+"/app.conf", secret, 0o644)
	evil := transferOf(from+"/app.conf", to+"/evil", nil, nil)
	refused := func(name string, rows []fileRow, want string) {
		t.Helper()
		if len(rows) == 0 || rows[0].ErrorCode == 0 || !strings.Contains(rows[0].ErrorMsg, want) {
			t.Errorf("%s: %+v", name, rows)
		}
	}

	// No role has the right: it must be listed. The right to configure or to run scripts does not help.
	refused("admin of everything", (&tenant{API: s.API, t: t}).transfer(nil, evil), "may not transfer")
	for name, x := range map[string]struct {
		grants []ft.J
		want   string
	}{
		"operator":      {[]ft.J{transferGrant(ft.J{"actions": nil})}, "may not transfer"},
		"configure":     {[]ft.J{transferGrant(ft.J{"actions": []string{"configure", "script"}})}, "may not transfer"},
		"viewer":        {[]ft.J{transferGrant(ft.J{"role": "viewer", "actions": nil, "accounts": nil})}, "may not transfer"},
		"other account": {[]ft.J{transferGrant(ft.J{"accounts": []string{"daemon"}})}, "as account nobody"},
		"only the target": {[]ft.J{transferGrant(ft.J{"hosts": "listed", "nets": []string{"127.0.0.2/32"}})},
			"is not in the fleet"},
		"only the source": {[]ft.J{transferGrant(ft.J{"hosts": "listed", "nets": []string{"127.0.0.1/32"}})},
			"is not in the fleet"},
		"configure on the source": {[]ft.J{transferGrant(ft.J{"hosts": "listed", "nets": []string{"127.0.0.2/32"}}),
			transferGrant(ft.J{"actions": []string{"configure"}})}, "may not transfer"},
		"configure on the target": {[]ft.J{transferGrant(ft.J{"hosts": "listed", "nets": []string{"127.0.0.1/32"}}),
			transferGrant(ft.J{"actions": []string{"configure"}})}, "may not transfer"},
		"business": {[]ft.J{transferGrant(ft.J{"namespaces": []string{"GSEKIT_BIZ_9"}})}, "may not transfer"},
	} {
		refused(name, newTenant(t, s, "transfers-"+strings.ReplaceAll(name, " ", "-"), x.grants...).transfer(nil, evil), x.want)
	}

	// The policies of both hosts hold everybody.
	every := newTenant(t, s, "transfers-every", transferGrant(ft.J{"accounts": []string{"*", "root"}}))
	if err := os.Symlink("/etc/passwd", from+"/link"); err != nil {
		t.Fatal(err)
	}
	end := func(user string) ft.J { return ft.J{"agent": transferEnd(1, user)} }
	for name, x := range map[string]struct {
		task ft.J
		want string
	}{
		"source outside":    {transferOf("/etc/passwd", to+"/evil", nil, nil), "not allowed by local policy"},
		"source by dots":    {transferOf(from+"/app.conf", to+"/evil", ft.J{"store_dir": from + "/../../etc", "file_name": "passwd"}, nil), "clean path"},
		"source by name":    {transferOf(from+"/app.conf", to+"/evil", ft.J{"file_name": "../../etc/passwd"}, nil), "without a folder"},
		"source by link":    {transferOf(from+"/link", to+"/evil", nil, nil), "symbolic link"},
		"source as root":    {transferOf(from+"/app.conf", to+"/evil", end("root"), nil), "not allowed by local policy"},
		"source as other":   {transferOf(from+"/app.conf", to+"/evil", end("daemon"), nil), "belongs to uid"},
		"source, no user":   {transferOf(from+"/app.conf", to+"/evil", end(""), nil), "user"},
		"wrong md5":         {transferOf(from+"/app.conf", to+"/evil", ft.J{"md5": strings.Repeat("0", 32)}, nil), "its md5 is"},
		"target outside":    {transferOf(from+"/app.conf", filepath.Dir(to)+"/evil", nil, nil), "not allowed by local policy"},
		"new folder beside": {transferOf(from+"/app.conf", to+"-evil/deep/evil", nil, nil), "not allowed by local policy"},
		"target as root":    {transferOf(from+"/app.conf", to+"/evil", nil, ft.J{"agents": []ft.J{transferEnd(2, "root")}}), "not allowed by local policy"},
		"owner":             {transferOf(from+"/app.conf", to+"/evil", nil, ft.J{"owner": "root"}), "must be the account in user"},
		"group":             {transferOf(from+"/app.conf", to+"/evil", nil, ft.J{"owner": "nobody:root"}), "not a member"},
		"set-id":            {transferOf(from+"/app.conf", to+"/evil", nil, ft.J{"permission": 4755}), "must be 0"},
		"container": {transferOf(from+"/app.conf", to+"/evil", nil, ft.J{"agents": []ft.J{{"bk_agent_id": "0:127.0.0.2",
			"bk_container_id": "abc", "user": "nobody"}}}), "containers cannot be reached"},
		"no targets": {transferOf(from+"/app.conf", to+"/evil", nil, ft.J{"agents": []ft.J{}}), "at least one agent"},
	} {
		refused(name, every.transfer(nil, x.task), x.want)
	}
	refused("no tasks", every.transfer(ft.J{"tasks": []ft.J{}}), "at least one task")
	refused("no time", every.transfer(ft.J{"timeout_seconds": 0}, evil), "timeout_seconds")

	// Other doors do not transfer, others do not see it, and the right does not show contents.
	if status, text := every.native(http.MethodPost, "/api/v1/operations", ft.J{"action": "transfer", "namespace": "shop", "name": "x",
		"hosts": []ft.J{{"cloud": 0, "ip": "127.0.0.1"}}}, nil); status < 400 {
		t.Errorf("%d %s", status, text)
	}
	if status, text := c.file(from+"/app.conf", "nobody"); status < 400 || strings.Contains(text, "secret") {
		t.Errorf("%d %s", status, text)
	}
	task, _ := c.beginTransfer(nil, transferOf(from+"/app.conf", to+"/good", nil, nil))
	other := newTenant(t, s, "transfers-other", transferGrant(nil))
	if rows, text := other.transferRows(task, nil); len(rows) != 0 || !strings.Contains(text, "no such task") {
		t.Errorf("%s", text)
	}

	// Nothing was written.
	for _, path := range []string{to + "/evil", filepath.Dir(to) + "/evil", to + "-evil"} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s exists", path)
		}
	}
}

// TestTT16ManyTransfers: transfers have the quota of destructive actions, one for each target. Small steps, several targets of one
// request, a retry and another name for the user count together, and what is above it writes nothing.
func TestTT16ManyTransfers(t *testing.T) {
	t.Parallel() // it mostly waits
	_, c, from, to := transferFleet(t, "transfers-many", "--destructive-quota=3")
	source(t, from+"/app.conf", []byte("app"), 0o644)
	file := func(name string) ft.J { return transferOf(from+"/app.conf", to+"/"+name, nil, nil) }
	for _, name := range []string{"one", "two"} {
		if rows := c.transfer(nil, file(name)); rows[0].ErrorCode != 0 {
			t.Fatalf("%s: %+v", name, rows)
		}
	}

	above := func(what string, rows []fileRow) {
		t.Helper()
		if len(rows) == 0 || rows[0].ErrorCode == 0 || !strings.Contains(rows[0].ErrorMsg, "3 an hour") {
			t.Errorf("%s: %+v", what, rows)
		}
	}
	above("two files, one is left", c.transfer(nil, file("evil"), file("evil-2")))
	if rows := c.transfer(nil, file("three")); rows[0].ErrorCode != 0 {
		t.Errorf("the last one: %+v", rows)
	}
	above("one more", c.transfer(nil, file("evil")))
	above("another user", c.transfer(ft.J{"bk_username": "another"}, file("evil")))
	for _, name := range []string{"evil", "evil-2"} {
		if _, err := os.Lstat(to + "/" + name); err == nil {
			t.Errorf("%s exists", name)
		}
	}
}

// TestTransfersOffByDefault: without files in the policy of a host nothing is read and nothing written there.
func TestTransfersOffByDefault(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	scriptAgent(t, s, "users: [nobody]\ndeny_uids: \"\"\n")
	dir := fileFolder(t, "nobody")
	source(t, dir+"/a", []byte("a"), 0o644)
	c := newTenant(t, s, "transfers-off", transferGrant(nil))
	rows := c.transfer(nil, transferOf(dir+"/a", dir+"/b", nil, ft.J{"agents": []ft.J{transferEnd(1, "nobody")}}))
	if rows[0].ErrorCode == 0 || !strings.Contains(rows[0].ErrorMsg, "not allowed by local policy") {
		t.Errorf("%+v", rows)
	}
}
