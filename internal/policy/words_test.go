//go:build linux

package policy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TE2: the script of another account is found in every form of a command that Gozzard composes and that people write.
func TestTE2WordsOfAShell(t *testing.T) {
	needsRoot(t)
	top := t.TempDir()
	dir := filepath.Join(top, "it's an app")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{"start.sh": 0o755, "plain.txt": 0o644, "app.pid": 0o644} {
		path := filepath.Join(dir, name)
		text := "#!/bin/sh\n"
		if name == "app.pid" {
			text = "1\n"
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, 65534, -1); err != nil {
			t.Fatal(err)
		}
	}

	p := parse(t, `{allow_root: true, path_prefixes: ["/"]}`)
	quoted := `'` + strings.ReplaceAll(dir, `'`, `'\''`) + `'`
	for _, text := range []string{
		"./start.sh", "sh start.sh", "sh ./start.sh", "nohup ./start.sh", "true && ./start.sh", "X=1 ./start.sh",
		"X=1 Y= nohup ./start.sh &", "cd " + quoted + " && ./start.sh 'name' &", "bash -x start.sh", ". ./start.sh",
		"(./start.sh)", "if true; then ./start.sh; fi", "true;./start.sh", "true|./start.sh", "echo `./start.sh`",
		`sh -c "./start.sh"`, `sh -c "cd . 2>&1; exec ./start.sh"`, "echo $(./start.sh)", "setsid -f ./start.sh",
		"nice -n 5 ./start.sh", "xargs ./start.sh", `"./start.sh"`, `./st"ar"t.sh`, `./start\.sh`, "env A=1 ./start.sh",
		"python3 plain.txt", "/bin/sh plain.txt", "true\n./start.sh", "./start.sh>/dev/null", ">/dev/null ./start.sh",
		"true \\\n./start.sh", quoted + "/start.sh", "find . -exec ./start.sh ;",
	} {
		wants(t, text, p.Definition("gse", spec("root", dir, text)), "start_cmd as root is not allowed by local policy "+
			"(trusted_paths in /etc/gozzard/policy.yaml)")
		if text[0] != '\'' && !strings.Contains(text, dir) && !strings.Contains(text, quoted) {
			wants(t, "elsewhere "+text, p.Definition("gse", spec("root", "/usr", text)), "")
		}
	}

	// What is only read or written is not a program.
	for _, text := range []string{
		"kill $(cat app.pid)", "cat plain.pid", "true > start.sh", "true 2>> ./start.sh", "pkill -F app.pid",
		"start-stop-daemon --stop --pidfile app.pid", "/bin/sleep 1", "exec sleep 1 >/dev/null 2>&1 &", "echo 'a b'",
	} {
		wants(t, text, p.Definition("gse", spec("root", dir, text)), "")
	}
}
