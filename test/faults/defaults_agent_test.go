//go:build linux

package faults_test

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

func agentConnectsOut(t *testing.T, f *plainFleet) {
	if l := sockets(t, f.agent.PID()); len(l) != 0 {
		t.Errorf("the agent listens on %q", l)
	}
}

// agentsTLS: the listener sends nothing to a client that does not speak TLS 1.3 with a certificate of the fleet.
func agentsTLS(t *testing.T, f *plainFleet) {
	c, err := net.Dial("tcp", f.agents)
	if err != nil {
		t.Fatal(err)
	}

	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	if n, _ := c.Read(make([]byte, 10)); n > 0 {
		t.Error("a greeting before TLS")
	}

	for name, config := range map[string]*tls.Config{
		"TLS 1.2":        {InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12},
		"no certificate": {InsecureSkipVerify: true},
	} {
		c, err := tls.Dial("tcp", f.agents, config)
		if err != nil {
			continue
		}
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		if n, err := c.Read(make([]byte, 10)); err == nil || n > 0 {
			t.Errorf("%s: let in", name)
		}
		_ = c.Close()
	}
}

func enrolmentTokens(t *testing.T, f *plainFleet) {
	token := strings.TrimSpace(f.gozzard(t, "token", "create"))
	parts := strings.Split(token, ".")
	if len(parts) != 4 || parts[0] != "gz1" {
		t.Fatalf("%d parts", len(parts))
	}

	var list struct {
		Tokens []struct {
			ID               string
			Created, Expires time.Time
			Uses             int
		}
	}
	if err := json.Unmarshal([]byte(f.gozzard(t, "token", "list", "-o", "json")), &list); err != nil {
		t.Fatal(err)
	}

	i := slices.IndexFunc(list.Tokens, func(r struct {
		ID               string
		Created, Expires time.Time
		Uses             int
	}) bool {
		return r.ID == parts[1]
	})
	if i < 0 || list.Tokens[i].Uses != 1 || list.Tokens[i].Expires.Sub(list.Tokens[i].Created) != time.Hour {
		t.Errorf("%+v", list.Tokens)
	}
	if where := filesWith(t, f.data, parts[2]); len(where) > 0 {
		t.Errorf("the token's secret lies in %q", where)
	}
	if !strings.Contains(f.gozzard(t, "audit", "list"), parts[1]) {
		t.Error("a new token is not in the audit")
	}
}

func serverIsPinned(t *testing.T, f *plainFleet) {
	for _, args := range [][]string{{"agent", "--help"}, {"agent", "join", "--help"}, {"server", "--help"},
		{"ps", "--help"}} {
		// This flag is about another service: how the server asks BlueKing for the user of a login.
		help := strings.ReplaceAll(strings.ToLower(f.gozzard(t, args...)), "--bk-login-insecure", "")
		if strings.Contains(help, "insecure") ||
			strings.Contains(help, "skip-verify") || strings.Contains(help, "no-verify") {
			t.Errorf("gozzard %q has a way around the check of the server", args)
		}
	}

	parts := strings.Split(strings.TrimSpace(f.gozzard(t, "token", "create")), ".")
	token := filepath.Join(t.TempDir(), "token")
	wrong := base64.RawURLEncoding.EncodeToString(make([]byte, 32))
	if err := os.WriteFile(token, []byte(strings.Join([]string{parts[0], parts[1], parts[2], wrong}, ".")),
		0o600); err != nil {
		t.Fatal(err)
	}

	dir := filepath.Join(t.TempDir(), "agent")
	if out, err := f.try("agent", "join", "--server", f.cred.URL, "--token-file", token, "--data", dir, "--ip",
		"127.0.0.2"); err == nil {
		t.Errorf("joined a server of another pin: %s", out)
	}
}

func defaultPolicy(t *testing.T, f *plainFleet) {
	path := filepath.Join(f.state, "policy.yaml")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	for setting, want := range map[string]string{
		"allow_root": "false", "users": `["@gozzard"]`, "deny_uids": `"1-999"`,
		"path_prefixes": `["/opt", "/srv", "/data", "/usr/local", "/home"]`, "shell": "true",
		"ops": "[start, stop, restart, reload, kill, query, manage, unmanage]", "max_processes": "2000",
	} {
		if !regexp.MustCompile(`(?m)^` + setting + `: ` + regexp.QuoteMeta(want) + `( |$)`).Match(b) {
			t.Errorf("%s is not %s in\n%s", setting, want, b)
		}
	}

	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o022 != 0 {
		t.Errorf("%v, %v", info, err)
	}
}

// stateIsPrivate: an agent does not start if other accounts could change its folder, policy or program.
func stateIsPrivate(t *testing.T, f *plainFleet) {
	if info, err := os.Stat(f.state); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}

	program := filepath.Join(ft.NewAgentHome(t, "root").Dir, "gozzard")
	f.agent.Through("sh", "-c", `shift; exec "`+program+`" "$@"`, "sh")

	for name, path := range map[string]string{
		"folder": f.state, "policy": filepath.Join(f.state, "policy.yaml"), "program": program,
		"folder of the program": filepath.Dir(program),
	} {
		f.agent.Kill(syscall.SIGKILL)
		before, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, before.Mode().Perm()|0o022); err != nil {
			t.Fatal(err)
		}
		sessions := f.agent.Sessions()
		f.agent.Again()
		ended := false
		select {
		case <-f.agent.Done():
			ended = true
		case <-time.After(30 * time.Second):
		}
		if !ended || f.agent.ExitCode() == 0 || f.agent.Sessions() != sessions {
			t.Errorf("an agent with a %s that others may write runs", name)
		}
		if !strings.Contains(f.agent.Output(), path+" is writable by others (mode") {
			t.Errorf("a %s that others may write: not said", name)
		}
		if err := os.Chmod(path, before.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}

	f.agentAgain(t) // the unchanged copy starts
	f.agent.Kill(syscall.SIGKILL)
	f.agent.Through()
	f.agentAgain(t)
}
