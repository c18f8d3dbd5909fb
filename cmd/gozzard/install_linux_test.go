package main

import (
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMakeInstall: make install puts the manual and the completions of every command in place, the packages have them, and
// make uninstall removes them.
func TestMakeInstall(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("gozzard") // TestMain has put this program there
	if err != nil {
		t.Fatal(err)
	}
	stage := t.TempDir()
	build := func(target string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "make", "-C", filepath.Join("..", ".."), target, "BINARY="+program,
			"DESTDIR="+stage, "PREFIX=/usr")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("make %s: %v\n%s", target, err, out)
		}
	}
	build("install")

	// Look at what is installed.
	for file, want := range map[string]string{
		"bash-completion/completions/gozzard": "__start_gozzard", "zsh/site-functions/_gozzard": "#compdef gozzard",
		"fish/vendor_completions.d/gozzard.fish": "complete -c gozzard",
		"man/man1/gozzard.1.gz":                  `.TH "GOZZARD"`, "man/man1/gozzard-agent-join.1.gz": "allow\\-user",
	} {
		if text := readInstalled(t, filepath.Join(stage, "usr/share", file)); !strings.Contains(text, want) {
			t.Errorf("%s has no %q", file, want)
		}
	}

	// The client for Python is there, whole.
	if python, err := exec.LookPath("python3"); err != nil {
		t.Log("no python3: the client for Python is not imported")
	} else {
		cmd := exec.CommandContext(t.Context(), python, "-B", "-c", "import gozzard; print(gozzard.__file__, gozzard.Client, gozzard.TaskFailed)")
		cmd.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(stage, "usr/share/gozzard/python"))
		if out, err := cmd.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), stage) {
			t.Errorf("the client for Python: %v\n%s", err, out)
		}
	}
	for _, pattern := range []string{"gozzard/*.py", "pyproject.toml"} {
		sources, _ := filepath.Glob(filepath.Join("..", "..", "client", "python", pattern))
		for _, source := range sources {
			want, err := os.ReadFile(source)
			if err != nil {
				t.Fatal(err)
			}
			rel, _ := filepath.Rel(filepath.Join("..", "..", "client", "python"), source)
			if got := readInstalled(t, filepath.Join(stage, "usr/share/gozzard/python", rel)); got != string(want) {
				t.Errorf("%s is not installed as it is", rel)
			}
		}
		if len(sources) == 0 {
			t.Errorf("client/python has no %s", pattern)
		}
	}

	// The packages have all of them.
	list, err := os.ReadFile(filepath.Join("..", "..", "packaging", "nfpm.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(stage, func(path string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, stage)
		if err != nil || d.IsDir() {
			return err
		}
		for dir := name; dir != "/"; dir = filepath.Dir(dir) {
			if src := "src: ${STAGE}" + dir; strings.Contains(string(list), src+"\n") ||
				strings.Contains(string(list), src+"/\n") {
				return nil
			}
		}
		t.Errorf("packaging/nfpm.yaml has no %s", name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	// Remove it.
	build("uninstall")
	for _, pattern := range []string{"usr/bin/*", "usr/share/man/man1/*", "usr/share/*/*completions*/*gozzard*",
		"usr/share/zsh/site-functions/*", "usr/share/gozzard"} {
		if left, err := filepath.Glob(filepath.Join(stage, pattern)); err != nil || len(left) > 0 {
			t.Errorf("make uninstall leaves %v: %v", left, err)
		}
	}
}

func readInstalled(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
