//go:build linux

package faults_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

// TestTI1SecretsAreNowhere: a secret that was shown once is in no file of the server or an agent, in no log and in no
// answer.
func TestTI1SecretsAreNowhere(t *testing.T) {
	t.Parallel() // it mostly waits
	f := startPlain(t, "127.0.0.1", "--enrol")
	f.join(t)
	password := filepath.Join(t.TempDir(), "password")
	const canary = "canary-password-4711"
	if err := os.WriteFile(password, []byte(canary), 0o600); err != nil {
		t.Fatal(err)
	}

	f.gozzard(t, "user", "create", "alice", "--password-file", password, "--role", "viewer")
	secrets := map[string]string{
		"password": canary,
		"app": strings.TrimSpace(f.gozzard(t, "app", "create", "shop", "--role", "viewer", "--asserts-users",
			"--unknown-users")),
		"token": strings.TrimSpace(f.gozzard(t, "user", "token", "create", "alice")),
		"enrol": strings.Split(strings.TrimSpace(f.gozzard(t, "token", "create")), ".")[2],
	}
	head := f.authorization("shop", secrets["app"])
	f.ask(t, "GET", "/api/v1/hosts", nil, authorizationHeader, head)
	f.ask(t, "GET", "/api/v1/hosts?secret="+secrets["app"], nil, authorizationHeader,
		strings.Replace(head, "shop", "shop2", 1))
	f.ask(t, "GET", "/api/v1/hosts", nil, "Authorization", "Bearer "+secrets["token"])
	f.ask(t, "POST", "/api/v1/login", strings.NewReader(`{"user":"alice","password":"`+canary+`x"}`))
	var answers strings.Builder
	for _, path := range []string{"/api/v1/apps", "/api/v1/users", "/api/v1/users/alice/tokens", "/api/v1/grants",
		"/api/v1/enrol/tokens", "/api/v1/audit", "/api/v1/events", "/metrics"} {
		answers.WriteString(f.admin(t, "GET", path, nil).body)
	}

	for name, secret := range secrets {
		if len(secret) < 12 {
			t.Fatalf("%s: %d characters", name, len(secret))
		}
		for _, dir := range []string{f.data, f.state} {
			if where := filesWith(t, dir, secret); len(where) > 0 {
				t.Errorf("the secret of %s lies in %q", name, where)
			}
		}
		if strings.Contains(f.server.Output()+f.agent.Output(), secret) {
			t.Errorf("the secret of %s is in a log", name)
		}
		if strings.Contains(answers.String(), secret) {
			t.Errorf("the secret of %s is in an answer", name)
		}
	}
}

// TestTR3NothingForgesALine: texts that callers choose reach logs and terminals without control characters.
func TestTR3NothingForgesALine(t *testing.T) {
	t.Parallel() // it mostly waits
	f := startPlain(t, "127.0.0.1")
	bad := []string{"a\nb", "a\r{\"level\":\"INFO\"}", "\x1b[2J\x1b[31mred", "a\u2028b", "a\u0085b", "a\u202eb",
		"a\x00b", "\u009b31m", strings.Repeat("x", 4000) + "\n"}
	for _, text := range bad {
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		q := string(quoted)
		body := `{"bk_app_code":"` + f.cred.App + `","bk_app_secret":"` + f.cred.Secret + `","bk_username":` + q +
			`,"meta":{"namespace":"n","name":"p","labels":{"k":` + q + `}},"op_type":1,` +
			`"hosts":[{"ip":"127.0.0.1","bk_cloud_id":0,"bk_supplier_id":0}]}`
		f.ask(t, "POST", "/api/c/compapi/v2/gse/operate_proc/", strings.NewReader(body))
		f.ask(t, "POST", "/api/c/compapi/v2/gse/operate_proc/",
			strings.NewReader(strings.Replace(body, `"`+f.cred.App+`"`, q, 1)))
		f.admin(t, "POST", "/api/v1/operations", strings.NewReader(`{"action":"stop","namespace":`+q+`,"names":[`+q+
			`],"hosts":[{"agent":`+q+`}]}`))
	}

	for name, text := range map[string]string{"log": f.server.Output(), "audit list": f.gozzard(t, "audit", "list"),
		"events": f.gozzard(t, "events"), "ps": f.gozzard(t, "ps")} {
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			if name == "log" && !json.Valid([]byte(line)) {
				t.Errorf("%s: %.200q", name, line)
			}
			if i := strings.IndexFunc(line, func(r rune) bool {
				return unicode.IsControl(r) || r == 0x2028 ||
					r == 0x202e
			}); i >= 0 {
				t.Errorf("%s: %.200q", name, line)
			}
		}
	}
}
