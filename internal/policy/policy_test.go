//go:build linux

package policy_test

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/policy"
)

// needsRoot is for tests that make files of other accounts.
func needsRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make files of other accounts")
	}
}

func parse(t *testing.T, format string, args ...any) *policy.Policy {
	t.Helper()
	p, err := policy.Parse("/etc/gozzard/policy.yaml", fmt.Appendf(nil, format, args...))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func spec(user, dir, start string) *gozzard.Spec {
	return &gozzard.Spec{Identity: gozzard.Identity{User: user, SetupPath: dir}, Control: gozzard.Control{Start: start}}
}

// wants checks a rejection. "" means that there must be none.
func wants(t *testing.T, what string, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: %v", what, err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("%s: %v, want %s", what, err, want)
	case err != nil && (strings.ContainsRune(err.Error(), '\n') || !strings.HasPrefix(err.Error(), "permission: ") ||
		!strings.Contains(err.Error(), " in /etc/gozzard/policy.yaml)")):
		t.Errorf("%s: not one line that names the file: %q", what, err)
	}
}

// TE5: only the owner of the host can allow root, by its name and as the default account.
func TestTE5RootNeedsTheOwnersWord(t *testing.T) {
	refusing, allowing := parse(t, `path_prefixes: ["/"]`), parse(t, `{allow_root: true, path_prefixes: ["/"]}`)
	wants(t, "refused", refusing.Definition("gse", spec("root", "/usr", "")),
		"account root is not allowed by local policy (allow_root in /etc/gozzard/policy.yaml)")
	wants(t, "allowed", allowing.Definition("gse", spec("root", "/usr", "")), "")
	wants(t, "allowed, by no name", allowing.Definition("gse", spec("", "/usr", "")), "(default_user in")
	wants(t, "everybody is not root", parse(t,
		`{users: ["*"], deny_uids: "", path_prefixes: ["/"]}`).Definition("gse", spec("root", "/usr", "")), "allow_root in")
}

func TestAccounts(t *testing.T) {
	for _, tt := range []struct{ rules, user, want string }{
		{`users: [nobody]`, "nobody", ""},
		{`users: [daemon]`, "nobody", "account nobody is not allowed by local policy (users in"},
		{`users: ["*"]`, "nobody", ""},
		{`{users: ["*"], deny_uids: "65534"}`, "nobody",
			"account nobody with uid 65534 is not allowed by local policy (deny_uids in"},
		{`users: [daemon]`, "daemon", "with uid 1 is not allowed by local policy (deny_uids in"},
		{`{users: [daemon], deny_uids: ""}`, "daemon", ""},
		{`users: ["@nogroup"]`, "nobody", ""},
		{`users: ["@no-such-group"]`, "nobody", "(users in"},
		{`users: ["*"]`, "no-such-user", ""}, // the host reports it
		{`users: []`, "no-such-user", "(users in"},
		{`users: [nobody]`, "nobody\nx", `account "nobody\nx" is not`},
		{`users: [nobody]`, strings.Repeat("é", 4000), "(users in"},
		{`users: ["*"]`, "../../root", ""}, // not an account: the host reports it
	} {
		wants(t, tt.rules+" "+tt.user, parse(t, "%s", tt.rules).Definition("gse", spec(tt.user, "/opt", "")), tt.want)
	}
}

// openDir is a folder that every account can look into.
func openDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestFolders(t *testing.T) {
	top := openDir(t)
	for _, d := range []string{"in/app", "out"} {
		if err := os.MkdirAll(filepath.Join(top, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}

	for name, to := range map[string]string{"in/escape": "../out", "in/far": top + "/out", "in/near": "app",
		"alias": "in", "in/loop": "loop", "in/up": "../in/./near/../app"} {
		if err := os.Symlink(to, filepath.Join(top, name)); err != nil {
			t.Fatal(err)
		}
	}

	p := parse(t, `{users: ["*"], path_prefixes: [%[1]s/in]}`, top)
	aliased := parse(t, `{users: ["*"], path_prefixes: [%s/alias]}`, top)
	for path, want := range map[string]string{
		top + "/in":                      "",
		top + "/in/app":                  "",
		top + "/in/app/":                 "",
		top + "/in/near":                 "",
		top + "/in/up":                   "",
		top + "/in/new/one":              "",
		top + "/in/../out":               "(path_prefixes in",
		top + "/in/escape":               "a link leads to another place",
		top + "/in/far/below":            "a link leads to another place",
		top + "/in/loop":                 "too many links",
		top + "/inside":                  "(path_prefixes in",
		top:                              "(path_prefixes in",
		"":                               "folder / (the default if none is given) is not allowed",
		"in/app":                         "it is not absolute",
		"/proc/self/root":                "(path_prefixes in",
		"/etc\n/x":                       `"/etc\n/x"`,
		"/" + strings.Repeat("a/", 4000): "(path_prefixes in",
	} {
		wants(t, path, p.Definition("gse", spec("nobody", path, "")), want)
		if path != top+"/inside" {
			wants(t, "aliased "+path, aliased.Definition("gse", spec("nobody", path, "")), want)
		}
	}
}

// TestTI15FoldersThatTheAccountCannotSee: the answer about a folder that the account cannot see is the same whatever is
// there: nothing, a file, a folder, or a link to anywhere.
func TestTI15FoldersThatTheAccountCannotSee(t *testing.T) {
	top := openDir(t)
	private := filepath.Join(top, "in", "private")
	if err := errors.Join(os.MkdirAll(private+"/folder", 0o755), os.Mkdir(top+"/out", 0o755),
		os.WriteFile(private+"/file", nil, 0o644), os.Symlink(top+"/out", private+"/away"),
		os.Symlink(top+"/in", private+"/near"), os.Symlink("loop", private+"/loop"),
		os.Symlink(private, top+"/in/own"), os.Chmod(private, 0o700)); err != nil {
		t.Fatal(err)
	}

	p := parse(t, `{users: ["*"], path_prefixes: [%s/in, /proc]}`, top)
	for _, name := range []string{"nothing", "nothing/x", "file", "file/x", "folder", "away", "away/x", "near", "loop"} {
		wants(t, name, p.Definition("gse", spec("nobody", private+"/"+name, "")), "")
		wants(t, "through a link: "+name, p.Definition("gse", spec("nobody", top+"/in/own/"+name, "")), "")
	}
	wants(t, "the folder of another process", p.Definition("gse", spec("nobody", "/proc/1/cwd", "")), "")

	// Before a command runs, the real path decides.
	wants(t, "the real path", p.Folder("nobody", top+"/out"), "(path_prefixes in")
}

// TE2: what runs as root must be where no other account can replace it.
func TestTE2WritableParents(t *testing.T) {
	needsRoot(t)
	top := t.TempDir()
	make := func(path string, mode fs.FileMode, uid int) {
		t.Helper()
		full := filepath.Join(top, path)
		var err error

		if strings.HasSuffix(path, ".sh") {
			err = os.WriteFile(full, []byte("#!/bin/sh\n"), 0o755)
		} else {
			err = os.MkdirAll(full, 0o755)
		}

		if err == nil {
			err = os.Chmod(full, mode)
		}
		if err == nil {
			err = os.Lchown(full, uid, -1)
		}
		if err != nil {
			t.Fatal(err)
		}
	}

	make("good", 0o755, 0)
	make("good/run.sh", 0o755, 0)
	make("good/open.sh", 0o775, 0)
	make("good/theirs.sh", 0o755, 65534)
	make("wide", 0o777, 0)
	make("wide/in", 0o755, 0)
	make("wide/in/run.sh", 0o755, 0)
	make("group", 0o775, 0)
	make("sticky", 0o777|fs.ModeSticky, 0)
	make("sticky/ours", 0o755, 0)
	make("sticky/theirs", 0o755, 65534)
	make("theirs", 0o755, 65534)

	for name, to := range map[string]string{"theirs/link": top + "/good", "good/via": top + "/theirs/link",
		"good/straight": "run.sh"} {
		if err := os.Symlink(to, filepath.Join(top, name)); err != nil {
			t.Fatal(err)
		}
	}

	p := parse(t, `{allow_root: true, users: ["*"], path_prefixes: ["/"]}`)
	for _, tt := range []struct{ dir, start, want string }{
		{"good", "./run.sh", ""},
		{"good", "sleep 1", ""},
		{"good", "./straight", ""},
		{"good", "./absent.sh", ""},
		{"sticky/ours", "", ""},
		{"wide", "", "wide is writable by others (mode 0777)"},
		{"wide/in", "", "wide is writable by others"},
		{"group", "", "is writable by others (mode 0775)"},
		{"theirs", "", "belongs to uid 65534"},
		{"sticky/theirs", "", "belongs to uid 65534"},
		{"good/via", "", "belongs to uid 65534"}, // the path leads through a folder of another user
		{"good", "./open.sh", "start_cmd as root is not allowed by local policy (trusted_paths in"},
		{"good", "./theirs.sh -x", "theirs.sh belongs to uid 65534"},
		{"good", top + "/wide/in/run.sh; true", "wide is writable by others"},
		{"good", "exec ../wide/in/run.sh", "wide is writable by others"},
		{"good", "./run.sh&", ""},
	} {
		err := p.Definition("gse", spec("root", filepath.Join(top, tt.dir), tt.start))
		wants(t, tt.dir+" "+tt.start, err, tt.want)
		if tt.want != "" && (err == nil || !strings.Contains(err.Error(), "(trusted_paths in")) {
			t.Errorf("%s %s: %v", tt.dir, tt.start, err)
		}
		wants(t, "nobody", p.Definition("gse", spec("nobody", filepath.Join(top, tt.dir), tt.start)), "")
	}

	lax := parse(t, `{allow_root: true, trusted_paths: false, path_prefixes: ["/"]}`)
	wants(t, "lax", lax.Definition("gse", spec("root", filepath.Join(top, "wide"), "./x")), "")
}

func TestWithoutShell(t *testing.T) {
	p := parse(t, `{users: ["*"], shell: false}`)
	for text, good := range map[string]bool{
		"./start.sh": true, "/opt/x/bin/svc -c /opt/x.conf --level=3": true, "exec ./svc a b": true, "": true,
		"  ":  true,
		"svc": false, "kill 1": false, ". ./x": false, "eval ./x": false, "A=1 ./x": false, "A=./x": false,
		"./x; ./y": false, "./x &": false, "./x $HOME": false,
		"./x `id`": false, "./x\n./y": false, "./x > /etc/x": false, "./x 'a b'": false, "./*": false, "~/x": false,
		"./x #": false, "-oProxy/x": false, "exec": false,
		"./x\t1": false, "./x\\": false, "./x {a,b}": false, "./x \u00e9": false,
	} {
		want := "start_cmd with the words of a shell is not allowed by local policy (shell in"
		if good {
			want = ""
		}
		wants(t, text, p.Definition("gse", spec("nobody", "/opt", text)), want)
	}

	s := spec("nobody", "/opt", "./x")
	s.Control.Health = "curl localhost | grep ok"
	wants(t, "health_cmd", p.Definition("gse", s), "health_cmd with the words of a shell")
}

func TestActionsAndProcesses(t *testing.T) {
	p := parse(t, `{ops: [start, query], max_processes: 3}`)
	wants(t, "start", p.Action(gozzard.ActionStart), "")
	wants(t, "kill", p.Action(gozzard.ActionKill), "operation kill is not allowed by local policy (ops in")
	wants(t, "register", p.Action(gozzard.ActionRegister), "")
	wants(t, "3", p.Processes(3), "")
	wants(t, "4", p.Processes(4), "process number 4 is not allowed by local policy (max_processes in")
	var none policy.Policy
	if none.Action(gozzard.ActionStart) == nil || none.Processes(1) == nil ||
		none.Definition("gse", spec("nobody", "/opt", "")) == nil {
		t.Error("the zero value allows something")
	}
}

func TestFileOthersCanWriteIsRefused(t *testing.T) {
	needsRoot(t)
	dir := t.TempDir()
	path := filepath.Join(dir, policy.FileName)
	reset := func() {
		t.Helper()
		for _, err := range []error{os.RemoveAll(path), os.WriteFile(path, nil, 0o600), os.Chmod(dir, 0o700),
			os.Chown(dir, 0, 0)} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}

	for name, tt := range map[string]struct {
		do   func() error
		want string
	}{
		"good":            {func() error { return nil }, ""},
		"readable by all": {func() error { return os.Chmod(path, 0o644) }, ""},
		"file for all": {func() error { return os.Chmod(path, 0o666) },
			"policy.yaml is writable by others (mode 0666)"},
		"file for group": {func() error { return os.Chmod(path, 0o620) },
			"policy.yaml is writable by others (mode 0620)"},
		"file of another": {func() error { return os.Chown(path, 65534, 0) }, "policy.yaml belongs to uid 65534"},
		"folder for all":  {func() error { return os.Chmod(dir, 0o777) }, "is writable by others (mode 0777)"},
		"folder of other": {func() error { return os.Chown(dir, 65534, 0) }, "belongs to uid 65534"},
		"folder": {func() error { return errorsJoin(os.Remove(path), os.Mkdir(path, 0o700)) },
			"is not a regular file"},
		"missing": {func() error { return os.Remove(path) }, "no such file"},
		"nonsense": {func() error { return os.WriteFile(path, []byte("x: 1"), 0o600) },
			`line 1: "x" is not a setting`},
	} {
		reset()
		if err := tt.do(); err != nil {
			t.Fatal(err)
		}
		_, err := policy.Open(path, policy.TrustOwn, slog.New(slog.DiscardHandler))
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func errorsJoin(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestFileIsFollowed(t *testing.T) {
	path := filepath.Join(t.TempDir(), policy.FileName)
	write := func(text string) {
		t.Helper()
		if err := errorsJoin(os.WriteFile(path+".new", []byte(text), 0o600), os.Rename(path+".new", path)); err != nil {
			t.Fatal(err)
		}
	}

	write("ops: [start]\n")
	var log strings.Builder
	f, err := policy.Open(path, policy.TrustOwn, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}

	may := func(a gozzard.Action) bool { return f.Action(a) == nil }
	if !may(gozzard.ActionStart) || may(gozzard.ActionStop) {
		t.Error("the first one is not in force")
	}

	write("ops: [stop]\n")

	if may(gozzard.ActionStart) || !may(gozzard.ActionStop) {
		t.Error("a change is not in force")
	}

	write("ops: [fly]\n")

	if may(gozzard.ActionStart) || !may(gozzard.ActionStop) {
		t.Error("what cannot be read is in force")
	}
	if n := strings.Count(log.String(), "is invalid"); n != 1 {
		t.Errorf("it was logged %d times", n)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if may(gozzard.ActionStart) || !may(gozzard.ActionStop) || !may(gozzard.ActionStop) {
		t.Error("the last one is gone with its file")
	}

	write("ops: [start, stop]\n")

	if !may(gozzard.ActionStart) || !may(gozzard.ActionStop) {
		t.Error("a file that came back is not in force")
	}
}

func TestCreate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, policy.FileName)
	for _, c := range []policy.Choice{{}, {AllowRoot: true}, {Own: "alice", OwnUID: 1000}, {Own: "svc", OwnUID: 998}} {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		made, err := policy.Create(path, c)
		if err != nil || !made {
			t.Fatalf("%v %v", made, err)
		}
		p, err := policy.Load(path, policy.TrustOwn)
		if err != nil {
			t.Fatal(err)
		}
		want := policy.Default()
		want.AllowRoot = c.AllowRoot
		if c.Own != "" {
			want.Users = append(want.Users, c.Own)
		}
		if p.String() != want.String() || (c.OwnUID == 998) != (len(p.DenyUIDs) == 0) {
			t.Errorf("%+v: %s, want %s", c, p, want)
		}
	}

	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if made, err := policy.Create(path, policy.Choice{AllowRoot: true}); err != nil || made {
		t.Errorf("%v %v", made, err)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("one that was there has changed: %s %v", after, err)
	}
	if left, _ := filepath.Glob(dir + "/.*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func BenchmarkDefinition(b *testing.B) {
	p := policy.Default()
	p.Users = []string{"@nogroup"}
	s := spec("nobody", "/usr/local/bin", "exec ./x")
	for b.Loop() {
		if err := p.Definition("gse", s); err != nil {
			b.Fatal(err)
		}
	}
}
