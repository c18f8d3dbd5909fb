//go:build linux

package fleettest_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gozzard/gozzard"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// filesRules allow files of nobody below one folder.
func filesRules(dir string) string {
	return fmt.Sprintf("users: [nobody, daemon]\ndeny_uids: \"\"\nfiles: {paths: [%s], max_size: 65536}\n", dir)
}

// fileFolder makes a folder of an account that every account can enter.
func fileFolder(t *testing.T, account string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "gozzard-files-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	conf := dir + "/conf"
	if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(conf, 0o755)); err != nil {
		t.Fatal(err)
	}
	ft.Chown(t, conf, account)
	return conf
}

// write is a request that writes a file on host 1.
func write(path, account, content string, more ft.J) ft.J {
	body := ft.J{"namespace": "shop", "hosts": []ft.J{{"cloud": 0, "ip": "127.0.0.1"}}, "path": path, "account": account,
		"content": content}
	for k, v := range more {
		body[k] = v
		if k == "kept" {
			delete(body, "content")
		}
	}
	return body
}

func (c *tenant) put(body ft.J) string {
	c.t.Helper()
	return c.operate(http.MethodPut, "/api/v1/files", body)
}

func (c *tenant) file(path, account string, more ...string) (int, string) {
	c.t.Helper()
	v := url.Values{"namespace": {"shop"}, "host": {"127.0.0.1"}, "path": {path}, "account": {account}}
	for i := 0; i < len(more); i += 2 {
		v.Set(more[i], more[i+1])
	}
	return c.native(http.MethodGet, "/api/v1/files?"+v.Encode(), nil, nil)
}

// TestFiles writes, reads, lists and restores files through the API, with an agent of root and a policy.
func TestFiles(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	conf := fileFolder(t, "nobody")
	state := t.TempDir()
	if err := os.WriteFile(state+"/policy.yaml", []byte(filesRules(conf)), 0o600); err != nil {
		t.Fatal(err)
	}
	agent := s.StartAgentIn(t, 1, state, "")
	admin := &tenant{API: s.API, t: t}
	path := conf + "/web.conf"
	has := func(want string) {
		t.Helper()
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Fatalf("the file has %q %v, want %q", got, err, want)
		}
	}
	good := func(text, note string) {
		t.Helper()
		if !strings.Contains(text, `"ok":1`) && !strings.Contains(text, `"verdict":"done"`) || !strings.Contains(text, note) {
			t.Fatalf("%q: %s", note, text)
		}
	}

	// A new file, the same again, and another content with other line ends and another mode.
	good(admin.put(write(path, "nobody", "one\n", ft.J{"expect": "absent"})), "the file is new")
	has("one\n")
	good(admin.put(write(path, "nobody", "one\n", nil)), "unchanged")
	good(admin.put(write(path, "nobody", "two\n", ft.J{"line_ends": "crlf", "mode": "0600",
		"expect": gozzard.FileDigest([]byte("one\n"))})), "replaced the content")
	has("two\r\n")
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil || st.Uid != 65534 || st.Mode&0o777 != 0o600 {
		t.Errorf("uid %d, mode %o, %v", st.Uid, st.Mode, err)
	}

	// A file that a person changed is not replaced unseen.
	if err := os.WriteFile(path, []byte("by hand\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := admin.put(write(path, "nobody", "three\n", ft.J{"expect": gozzard.FileDigest([]byte("two\r\n"))}))
	if !strings.Contains(text, "has changed on the host") || !strings.Contains(text, "not_executed") {
		t.Errorf("%s", text)
	}
	has("by hand\n")
	if status, text := admin.file(path, "nobody"); status != http.StatusOK || !strings.Contains(text, `"by hand\n"`) {
		t.Errorf("%d %s", status, text)
	}
	good(admin.put(write(path, "nobody", "three\n", nil)), "replaced the content")

	// Its former contents are there after a restart of the agent, and can be read and put back.
	agent.Kill(syscall.SIGKILL)
	s.AgainOnline(t, agent)
	q := url.Values{"namespace": {"shop"}, "host": {"127.0.0.1"}, "path": {path}, "account": {"nobody"}}
	var list struct {
		Versions []struct {
			SHA256 string `json:"sha256"`
			Size   int    `json:"size"`
		} `json:"versions"`
	}
	admin.native(http.MethodGet, "/api/v1/files/versions?"+q.Encode(), nil, &list)
	if len(list.Versions) != 2 || list.Versions[0].SHA256 != gozzard.FileDigest([]byte("by hand\n")) {
		t.Fatalf("%+v", list)
	}
	if status, text := admin.file(path, "nobody", "kept", list.Versions[1].SHA256); status != http.StatusOK ||
		!strings.Contains(text, `"one\n"`) {
		t.Errorf("%d %s", status, text)
	}
	good(admin.put(write(path, "nobody", "", ft.J{"kept": list.Versions[0].SHA256})), "replaced the content")
	has("by hand\n")
	if text := admin.put(write(path, "nobody", "", ft.J{"kept": gozzard.FileDigest([]byte("never"))})); !strings.Contains(text,
		"does not keep a content") {
		t.Errorf("%s", text)
	}

	// Contents that are no text.
	good(admin.put(write(path, "nobody", "", ft.J{"kept": nil, "content_base64": "/wA="})), "replaced the content")
	has("\xff\x00")
	if status, text := admin.file(path, "nobody"); status != http.StatusOK || !strings.Contains(text, `"/wA="`) {
		t.Errorf("%d %s", status, text)
	}
}

// TestTT5FilesOfOthers tries to get around the limits of the host and of rights, through the API.
func TestTT5FilesOfOthers(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	conf, daemons := fileFolder(t, "nobody"), fileFolder(t, "daemon")
	outside := filepath.Dir(conf) + "/outside"
	state := t.TempDir()
	if err := errors.Join(os.WriteFile(state+"/policy.yaml", []byte(filesRules(conf)), 0o600), os.Mkdir(outside, 0o755),
		os.Symlink(outside, conf+"/link")); err != nil {
		t.Fatal(err)
	}
	ft.Chown(t, outside, "nobody")
	s.StartAgentIn(t, 1, state, "")
	admin := &tenant{API: s.API, t: t}

	// The policy of the host holds an admin of everything.
	for name, c := range map[string]struct {
		body ft.J
		want string
	}{
		"outside":       {write(outside+"/x", "nobody", "evil", nil), "files in "},
		"up":            {write(conf+"/../outside/x", "nobody", "evil", nil), "not the clean path"},
		"name prefix":   {write(conf+"x/x", "nobody", "evil", nil), "files in "},
		"link":          {write(conf+"/link/x", "nobody", "evil", nil), "is a symbolic link"},
		"other account": {write(conf+"/x", "daemon", "evil", nil), "not to root or to daemon"},
		"root":          {write(conf+"/x", "root", "evil", nil), "allow_root"},
		"root as 0":     {write(conf+"/x", "0", "evil", nil), "not allowed by local policy"},
		"too large":     {write(conf+"/x", "nobody", strings.Repeat("x", 65537), nil), "its max_size is 65536"},
		"set-uid":       {write(conf+"/x", "nobody", "evil", ft.J{"mode": "4755"}), "octal digits"},
		"other group":   {write(conf+"/x", "nobody", "evil", ft.J{"group": "root"}), "is not a member"},
		"the agent":     {write(state+"/policy.yaml", "root", "allow_root: true", nil), "not allowed by local policy"},
		"no account":    {write(conf+"/x", "", "evil", nil), "account"},
	} {
		if text := admin.put(c.body); !strings.Contains(text, c.want) || strings.Contains(text, `"verdict":"done"`) {
			t.Errorf("%s: %s", name, text)
		}
	}

	// Rights: another business, a smaller right, another account, and reading.
	if text := admin.put(write(conf+"/secret", "nobody", "password", nil)); !strings.Contains(text, "the file is new") {
		t.Fatal(text)
	}
	anywhere := func(more ft.J) ft.J {
		g := ft.J{"role": "operator", "namespaces": []string{"shop"}, "hosts": "any", "accounts": []string{"nobody"}}
		for k, v := range more {
			g[k] = v
		}
		return g
	}
	for name, grant := range map[string]ft.J{
		"viewer":  anywhere(ft.J{"role": "viewer", "accounts": nil}),
		"starter": anywhere(ft.J{"actions": []string{"start", "update", "register"}}),
		"other":   anywhere(ft.J{"namespaces": []string{"game"}}),
		"daemon":  anywhere(ft.J{"accounts": []string{"daemon"}}),
		"nets":    anywhere(ft.J{"hosts": "listed", "nets": []string{"10.0.0.0/8"}}),
	} {
		for k, v := range grant {
			if v == nil {
				delete(grant, k)
			}
		}
		c := newTenant(t, s, "files-"+name, grant)
		if text := c.put(write(conf+"/x", "nobody", "evil", nil)); strings.Contains(text, `"verdict":"done"`) ||
			!strings.Contains(text, "permitted") && !strings.Contains(text, "is not in the fleet") {
			t.Errorf("%s writes: %s", name, text)
		}
		if status, text := c.file(conf+"/secret", "nobody"); status < 400 || strings.Contains(text, "password") {
			t.Errorf("%s reads: %d %s", name, status, text)
		}
	}
	c := newTenant(t, s, "files-right", anywhere(ft.J{"actions": []string{"configure"}}))
	if text := c.put(write(conf+"/right", "nobody", "good", nil)); !strings.Contains(text, "the file is new") {
		t.Errorf("the right configure: %s", text)
	}

	// What the account may not read is not shown, whatever the caller may do.
	for _, path := range []string{"/etc/shadow", state + "/policy.yaml", daemons + "/x"} {
		if status, text := admin.file(path, "nobody"); status < 400 {
			t.Errorf("%s: %s", path, text)
		}
	}

	// Nothing was written.
	if left, _ := filepath.Glob(outside + "/*"); len(left) > 0 {
		t.Errorf("%v", left)
	}
	if _, err := os.Lstat(conf + "/x"); err == nil {
		t.Error("a rejected file is there")
	}
}

// TestFilesOfOrdinaryAgent: an agent of an ordinary account writes files of its own account only; by default, none.
func TestFilesOfOrdinaryAgent(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	conf := fileFolder(t, "nobody")
	l := s.StartAgentAs(t, 1, "nobody", nil, "users: [nobody, daemon]\ndeny_uids: \"\"\n")
	admin := &tenant{API: s.API, t: t}
	if text := admin.put(write(conf+"/x", "nobody", "one", nil)); !strings.Contains(text, "not allowed by local policy (files in ") {
		t.Errorf("by default: %s", text)
	}

	l.WriteRules(t, filesRules(filepath.Dir(conf))+"\n")
	if text := admin.put(write(conf+"/x", "nobody", "one", nil)); !strings.Contains(text, "the file is new") {
		t.Errorf("its own: %s", text)
	}
	if text := admin.put(write(conf+"/y", "daemon", "one", nil)); !strings.Contains(text, "mode user") {
		t.Errorf("of another account: %s", text)
	}
	if got, err := os.ReadFile(conf + "/x"); err != nil || string(got) != "one" {
		t.Errorf("%q %v", got, err)
	}
}
