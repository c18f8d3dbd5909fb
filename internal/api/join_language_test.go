//go:build linux

package api_test

import (
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"unicode"

	"github.com/gozzard/gozzard/internal/api"
	"github.com/gozzard/gozzard/internal/enrol"
)

// joinScriptIn is the script with its folders in dir, so that a run changes nothing else.
func joinScriptIn(t *testing.T, dir string) string {
	t.Helper()
	program := filepath.Join(dir, "program")
	check(t, os.WriteFile(program, []byte("a program"), 0o600))
	h := api.New(api.Options{Enrol: new(enrol.Registry), Join: &api.JoinScript{Platform: "linux-amd64", Program: program,
		Version: "1.0.0", Authority: func() string { return "" }}})
	r := httptest.NewRequest(http.MethodGet, "https://127.0.0.1:8443/join", nil)
	r.TLS = &tls.ConnectionState{Version: tls.VersionTLS13}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("the script: %d %s", w.Code, w.Body)
	}
	return regexp.MustCompile(`/(usr|etc|var|run)/`).ReplaceAllString(w.Body.String(), dir+"/$1/")
}

// TestJoinScriptSpeaks: the script and the program that it runs speak the language of the shell, as the command line does.
func TestJoinScriptSpeaks(t *testing.T) {
	for _, c := range []struct {
		env                          []string
		token, installed, joined, no string
	}{
		{env: nil, token: "there is no token", installed: "using the installed program: gozzard 1.0.0", joined: "in C", no: "令牌"},
		{env: []string{"LANG=en_US.UTF-8"}, token: "there is no token", installed: "using the", joined: "in C", no: "令牌"},
		{env: []string{"LANG=zh_CN.UTF-8", "LC_ALL=C"}, token: "there is no token", installed: "using the", joined: "in C", no: "令牌"},
		{env: []string{"LANG=zh_CN.UTF-8"}, token: "没有令牌", installed: "使用已安装的程序：gozzard 1.0.0", joined: "in zh_CN.UTF-8", no: "token:"},
		{env: []string{"LC_MESSAGES=zh_TW", "LANG=C"}, token: "没有令牌", installed: "使用", joined: "in zh_CN.UTF-8", no: "token:"},
		{env: []string{"LC_ALL=zh"}, token: "没有令牌", installed: "使用", joined: "in zh_CN.UTF-8", no: "token:"},
		{env: []string{"LANG=zh_CN.UTF-8", "LANGUAGE=en"}, token: "there is no token", installed: "using the", joined: "in C", no: "令牌"},
	} {
		dir := t.TempDir()
		script := joinScriptIn(t, dir)
		for name, text := range map[string]string{
			"usr/bin/id": "#!/bin/sh\necho 0\n",
			"usr/bin/gozzard": "#!/bin/sh\n[ \"$1\" = version ] && { echo gozzard 1.0.0; exit; }\n" +
				"echo \"joined in $LC_ALL$LANGUAGE; start the agent with: x\"\necho '已加入；启动 Agent：x'\n",
		} {
			check(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755))
			check(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
		}

		out, err := runJoin(dir, script, c.env)
		if err == nil || !strings.Contains(out, c.token) || strings.Contains(out, c.no) {
			t.Errorf("%q without a token: %v: %s", c.env, err, out)
		}
		out, err = runJoin(dir, script, append(c.env, "GOZZARD_TOKEN_FILE="+dir+"/none"))
		if err == nil || strings.Contains(out, "cat:") || strings.Count(out, "\n") != 1 {
			t.Errorf("%q without the file of the token: %v: %s", c.env, err, out)
		}
		out, err = runJoin(dir, script, append(c.env, "GOZZARD_TOKEN=x"))
		if err != nil || !strings.Contains(out, c.installed) || !strings.Contains(out, "joined "+c.joined+"\n已加入\n") {
			t.Errorf("%q: %v: %s", c.env, err, out)
		}
	}
}

// TestJoinScriptAgain: a join that fails says what it leaves, and that it may be repeated. Its exit code is that of the program.
func TestJoinScriptAgain(t *testing.T) {
	dir := t.TempDir()
	script := joinScriptIn(t, dir)
	check(t, os.MkdirAll(filepath.Join(dir, "usr/bin"), 0o755))
	check(t, os.WriteFile(filepath.Join(dir, "usr/bin/id"), []byte("#!/bin/sh\necho 0\n"), 0o755))
	check(t, os.WriteFile(filepath.Join(dir, "usr/bin/gozzard"), []byte("#!/bin/sh\n[ \"$1\" = version ] && exit\nexit 7\n"), 0o755))
	out, err := runJoin(dir, script, []string{"GOZZARD_TOKEN=x"})
	if e, ok := errors.AsType[*exec.ExitError](err); !ok || e.ExitCode() != 7 || !strings.Contains(out, "run the same command again") {
		t.Errorf("%v: %s", err, out)
	}
}

// runJoin runs the script without a terminal.
func runJoin(dir, script string, env []string) (string, error) {
	cmd := exec.Command("/bin/sh")
	cmd.Stdin = strings.NewReader(script)
	cmd.Env = append([]string{"PATH=" + dir + "/usr/bin:/usr/bin:/bin", "HOME=" + dir, "TMPDIR=" + dir}, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestJoinScriptIsTranslated: every text of the script is there in both languages.
func TestJoinScriptIsTranslated(t *testing.T) {
	script := strings.ReplaceAll(joinScriptIn(t, t.TempDir()), "\\\n", "")
	said := regexp.MustCompile(`(?m)\b(?:fail|text) "([^"]*)"(.*)$`).FindAllStringSubmatch(script, -1)
	if len(said) < 12 {
		t.Fatalf("only %d texts were found", len(said))
	}
	for _, m := range said {
		chinese := strings.TrimSpace(m[2])
		hasHan := strings.ContainsFunc(chinese, func(r rune) bool { return unicode.Is(unicode.Han, r) })
		if m[1] != "$@" && (!strings.HasPrefix(chinese, `"`) || !hasHan) { // fail hands its texts on
			t.Errorf("%q has no Chinese text: %s", m[1], chinese)
		}
	}
	if strings.Contains(script, "echo \"") {
		t.Error("the script prints a text in one language")
	}
}
