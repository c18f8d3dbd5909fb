//go:build linux

package policy_test

import (
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/policy"
)

// TE13: without a shell, the program itself must be where the policy allows it, by its real path.
func TestTE13Programs(t *testing.T) {
	top := t.TempDir()
	for _, dir := range []string{"app/bin", "app/wide", "else"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"app/bin/svc", "app/bin/ctl", "app/wide/svc", "else/tool"} {
		if err := os.WriteFile(filepath.Join(top, file), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(top, "app/wide"), 0o777); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"app/bin/out": "/bin/cat", "app/bin/near": "svc", "alias": "app/bin",
		"app/bin/else": "../../else/tool"} {
		if err := os.Symlink(to, filepath.Join(top, name)); err != nil {
			t.Fatal(err)
		}
	}

	const rest = `users: ["*"], deny_uids: "", allow_root: true, trusted_paths: false, shell: false`
	folders := parse(t, `{path_prefixes: [%s/app], `+rest+`}`, top)
	listed := parse(t, `{path_prefixes: ["/"], programs: [%[1]s/app/bin/s*, %[1]s/alias/ctl, %[1]s/app/wide/svc], `+
		rest+`}`, top)
	for _, tt := range []struct{ text, folders, listed string }{
		{"./svc -x", "", ""},
		{"exec ./svc", "", ""},
		{top + "/alias/svc", "", ""},
		{"./near", "", ""},
		{"./ctl", "", ""},
		{"../bin/../bin/svc", "", ""},
		{"./absent", "", "(programs in"},
		{"../wide/svc", "", "app/wide is writable by others"},
		{"./out", "with program /usr/bin/cat is not allowed by local policy (path_prefixes in", "(programs in"},
		{"./else", "(path_prefixes in", "with program " + top + "/else/tool is not"},
		{"/bin/sh FILE", "(path_prefixes in", "(programs in"},
		{"/usr/bin/python3 FILE", "(path_prefixes in", "(programs in"},
		{"exec /usr/bin/env touch /etc/x", "(path_prefixes in", "(programs in"},
		{"/proc/self/exe", "(path_prefixes in", "(programs in"},
		{"../../else/tool", "(path_prefixes in", "(programs in"},
		{"sh x", "(shell in", "(shell in"},
	} {
		wants(t, tt.text, folders.Definition("gse", spec("root", top+"/app/bin", tt.text)), tt.folders)
		wants(t, "listed "+tt.text, listed.Definition("gse", spec("root", top+"/app/bin", tt.text)), tt.listed)
	}

	// What the host asks about the opened file.
	wants(t, "program", folders.Program("root", "start_cmd", "/bin/sh", false),
		"start_cmd with program /bin/sh is not allowed by local policy (path_prefixes in")
	wants(t, "interpreter", folders.Program("root", "start_cmd", "/usr/bin/env", true), "")
	wants(t, "open interpreter", folders.Program("root", "start_cmd", top+"/app/wide/svc", true), "(shell in")
	if s := listed.String(); !strings.Contains(s, "commands without shell only, programs: "+top+"/app/bin/s*, ") {
		t.Error(s)
	}
}

func TestProgramsNeedNoShell(t *testing.T) {
	for src, want := range map[string]string{
		"programs: [/opt/app/bin/*]\n": "line 1: programs needs shell: false, because the text of a shell can execute " +
			"every program",
		"shell: true\nprograms: []\n":                  "line 2: programs needs shell: false",
		"programs: [bin/x]\nshell: false\n":            "line 1: programs must be clean absolute paths",
		"programs: ['/a/[']\nshell: false\n":           "line 1: programs must be clean absolute paths",
		"programs: [/a/../b]\nshell: false\n":          "line 1: programs must be clean absolute paths",
		"programs: ['/']\nshell: false\n":              "line 1: programs must be clean absolute paths",
		"programs: /opt/app/x\nshell: false\n":         "line 1: programs must be a list",
		"programs:\nshell: false\n":                    "line 1: programs must be a list",
		"programs: [/a]\nshell: false\nprograms: [/b]": "given twice",
	} {
		if _, err := policy.Parse("/p.yaml", []byte(src)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", src, err, want)
		}
	}
	parse(t, "shell: false\nprograms: []\n")
}

// TestSetup checks what the agent sets up before it executes a command: variables, group and priority.
func TestSetup(t *testing.T) {
	self, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	own, err := user.LookupGroupId(self.Gid)
	if err != nil {
		t.Fatal(err)
	}
	const bounded = "allow_root: false\nusers: ['*']\ndeny_uids: ''\npath_prefixes: [/]\ntrusted_paths: false\n"
	spec := func(user string, e gozzard.Exec) *gozzard.Spec {
		return &gozzard.Spec{Identity: gozzard.Identity{User: user, SetupPath: "/"}, Exec: e}
	}
	env := func(names ...string) gozzard.Exec {
		e := gozzard.Exec{Env: map[string]string{}}
		for _, name := range names {
			e.Env[name] = "x"
		}
		return e
	}

	for _, c := range []struct {
		what, policy string
		user         string
		exec         gozzard.Exec
		want         string // "" means allowed
	}{
		{"plain names", bounded + "shell: false\n", "nobody", env("MODE", "PORT", "DATABASE_URL"), ""},
		{"a loader with a shell", bounded, "nobody", env("LD_PRELOAD"), ""},
		{"a loader", bounded + "shell: false\n", "nobody", env("LD_PRELOAD"), "variable LD_PRELOAD is not allowed by local policy (shell in f): it can make a program execute other code. To allow it, add to the policy: env: [LD_PRELOAD]"},
		{"a path", bounded + "shell: false\n", "nobody", env("PATH"), "variable PATH"},
		{"an interpreter", bounded + "shell: false\n", "nobody", env("PYTHONPATH"), "variable PYTHONPATH"},
		{"a listed name", bounded + "shell: false\nenv: [PYTHONPATH]\n", "nobody", env("PYTHONPATH"), ""},
		{"a listed pattern", bounded + "shell: false\nenv: [PYTHON*]\n", "nobody", env("PYTHONSTARTUP"), ""},
		{"nice", bounded, "nobody", gozzard.Exec{Nice: 5}, ""},
		{"a higher priority", bounded, "nobody", gozzard.Exec{Nice: -5}, "nice -5 is not allowed by local policy (allow_root in f)"},
		{"a higher priority with root", strings.Replace(bounded, "false", "true", 1), "nobody", gozzard.Exec{Nice: -5}, ""},
		{"its own group", strings.Replace(bounded, "false", "true", 1), self.Username, gozzard.Exec{Group: own.Name}, ""},
		{"another group", strings.Replace(bounded, "false", "true", 1), "nobody", gozzard.Exec{Group: "root"}, "group root is not allowed by local policy (users in f): account nobody is not a member"},
		{"no group", bounded, "nobody", gozzard.Exec{Group: "no-such-group"}, "there is no such group on this host"},
	} {
		p, err := policy.Parse("f", []byte(c.policy))
		if err != nil {
			t.Fatal(err)
		}
		err = p.Definition("shop", spec(c.user, c.exec))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.what, err, c.want)
		}
	}

	if _, err := policy.Parse("f", []byte("env: ['A-B', '*']\n")); err == nil {
		t.Error("the policy accepts names that no variable has")
	}
}
