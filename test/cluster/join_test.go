//go:build linux

package cluster_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// token makes a token for one more server, or with other words another one, and returns the file that has it.
func (m *member) token(words ...string) string {
	m.i.t.Helper()
	if len(words) == 0 {
		words = []string{"servers", "token"}
	}
	args := append(append([]string{}, words...), "--credentials", m.credentials)
	secret, err := exec.Command(ft.Binary(m.i.t), args...).Output()
	if err != nil {
		m.i.t.Fatalf("%v: %v", args, err)
	}
	return m.i.file(string(secret))
}

// file has a text that only its owner can read.
func (i *installation) file(text string) string {
	i.t.Helper()
	path := filepath.Join(i.t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		i.t.Fatal(err)
	}
	return path
}

// denied runs a command that must fail with a text, and make no file in a folder.
func (i *installation) denied(want, folder string, args ...string) {
	i.t.Helper()
	out, err := exec.Command(ft.Binary(i.t), args...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), want) {
		i.t.Errorf("gozzard %v: %v: %s\nwant an error with %q", args, err, out, want)
	}
	if list, err := os.ReadDir(folder); err == nil && len(list) > 0 {
		i.t.Errorf("gozzard %v left %v", args, list)
	}
}

// TestTS17ServerTokens: what gets the keys of an installation, and what does not.
func TestTS17ServerTokens(t *testing.T) {
	t.Parallel() // it mostly waits
	i := newInstallation(t, 2, "--max-failed-logins=10")
	a, b := i.servers[0], i.servers[1]
	folder := filepath.Join(t.TempDir(), "new")
	join := func(url, token string) []string {
		return []string{"server", "join", "--server", url, "--token-file", token, "--data", folder}
	}

	// The second server has the keys, closed to others, and nothing that is of the first one alone.
	for name, mode := range map[string]os.FileMode{"": 0o700, "ca.key": 0o600, "signing.key": 0o600, "record.json": 0o600} {
		st, err := os.Stat(filepath.Join(b.data, name))
		if err != nil || st.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", name, st, err)
		}
	}
	for _, name := range []string{"ca.key", "signing.key"} {
		if x, y := a.read(name), b.read(name); x != y {
			t.Errorf("%s differs", name)
		}
	}
	if a.read("server.json") == b.read("server.json") {
		t.Error("both servers have the same id")
	}

	// Each of them gives the keys on. A used token, also at the other server, gets nothing.
	token := b.token()
	i.denied("not valid here", folder, join(a.Cred.URL, token)...)
	if out, err := exec.Command(ft.Binary(t), join(b.Cred.URL, token)...).CombinedOutput(); err != nil ||
		!strings.Contains(string(out), "start the server with: gozzard server --data "+folder) {
		t.Fatalf("join: %v: %s", err, out)
	}
	i.denied("is not empty", "", join(b.Cred.URL, b.token())...)
	folder = filepath.Join(t.TempDir(), "again")
	i.denied("was used already", folder, join(b.Cred.URL, token)...)

	// A token of a host, as it is and as one of a server; and the other way around.
	hosts := a.token("token", "create")
	i.denied("this is a token for hosts", folder, join(a.Cred.URL, hosts)...)
	text, err := os.ReadFile(hosts)
	if err != nil {
		t.Fatal(err)
	}
	i.denied("not valid here", folder, join(a.Cred.URL, i.file(strings.Replace(string(text), "gz1.", "gzs1.", 1)))...)
	i.denied("this is a token for a server", folder, "agent", "join", "--server", a.Cred.URL, "--token-file", a.token(),
		"--data", folder, "--ip", "127.0.0.13")

	// Too late.
	late := a.token("servers", "token", "--ttl", "1s")
	time.Sleep(1500 * time.Millisecond)
	i.denied("expired at", folder, join(a.Cred.URL, late)...)

	// A file that others can read.
	open := a.token()
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	i.denied("can be read by others", folder, join(a.Cred.URL, open)...)

	i.smallerRights(a, "servers", "token")
	i.manInTheMiddle(a, folder)

	// The audit names both acts.
	code, rows := a.Get(t, "/api/v1/audit?limit=1000")
	if code != 200 || !strings.Contains(rows, "server:token:") || !strings.Contains(rows, "server:join:") {
		t.Errorf("the audit has %s", rows)
	}
	i.guesses(a)
}

func (m *member) read(name string) string {
	m.i.t.Helper()
	b, err := os.ReadFile(filepath.Join(m.data, name))
	if err != nil {
		m.i.t.Fatal(err)
	}
	return string(b)
}

// smallerRights: apps that are no admins of everything make no token with a command.
func (i *installation) smallerRights(m *member, command ...string) {
	i.t.Helper()
	for code, role := range map[string][]string{"opera": {"--role", "operator", "--account", "*"}, "enrols": {"--role", "enroller"},
		"cloudy": {"--role", "admin", "--account", "*", "--cloud", "0"}} {
		out := filepath.Join(i.t.TempDir(), "app.json")
		m.cli(append([]string{"app", "create", code, "--asserts-users", "--unknown-users", "--out", out}, role...)...)
		b, err := os.ReadFile(out)
		if err != nil {
			i.t.Fatal(err)
		}
		named := i.file(strings.Replace(string(b), "{", `{"bk_username":"someone",`, 1))
		i.denied("admin on everything", "", append(slices.Clone(command), "--credentials", named)...)
	}
}

// manInTheMiddle: a server with another authority gets nothing, and the token stays valid.
func (i *installation) manInTheMiddle(m *member, folder string) {
	i.t.Helper()
	token, listen := m.token(), freeAddr(i.t)
	data := filepath.Join(i.t.TempDir(), "rogue")
	rogue := ft.Start(i.t, "rogue", nil, "server", "--data", data, "--listen", listen, "--agent-listen", freeAddr(i.t), "--enrol")
	ft.Until(i.t, time.Minute, rogue.Output, func() bool { return strings.Contains(rogue.Output(), `"msg":"server started"`) })

	args := []string{"server", "join", "--server", "https://" + listen, "--token-file", token, "--data", folder}
	i.denied("the server is not the one that the token is for", folder, args...)
	args[3] = m.Cred.URL
	if out, err := exec.Command(ft.Binary(i.t), args...).CombinedOutput(); err != nil {
		i.t.Errorf("the token is lost: %v: %s", err, out)
	}

	// A server that is alone gives nothing, not even to its admin.
	i.denied("this server is alone", "", "servers", "token", "--credentials", filepath.Join(data, "credentials.json"))
}

// guesses: wrong tokens are wrong logins, whose number is limited.
func (i *installation) guesses(m *member) {
	i.t.Helper()
	answers := map[int]int{}
	for range 60 {
		res, err := m.Client.Post(m.Cred.URL+"/api/v1/servers/join", "application/json",
			strings.NewReader(`{"token":"abcdefabcdef","public":"AAAA","proof":"AAAA"}`))
		if err != nil {
			i.t.Fatal(err)
		}
		_ = res.Body.Close()
		answers[res.StatusCode]++
	}
	if answers[429] < 30 || answers[401] < 1 || answers[429]+answers[401] != 60 {
		i.t.Errorf("60 guesses were answered %v", answers)
	}
}

// TestSecondPersonKeepsKeys: where acts need a second person, one person alone does not get the keys.
func TestSecondPersonKeepsKeys(t *testing.T) {
	t.Parallel() // it mostly waits
	i := newInstallation(t, 1, "--second-person=admin-grants")
	i.denied("--second-person", "", "servers", "token", "--credentials", i.servers[0].credentials)
}
