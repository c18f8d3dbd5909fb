package host_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/host"
	"github.com/gozzard/gozzard/internal/policy"
	"github.com/gozzard/gozzard/internal/supervise"
)

// heldHost is a host under a policy without a shell, with a folder of programs that all accounts can reach.
func heldHost(t *testing.T, rules string) (*fixture, *gozzard.Spec, string) {
	t.Helper()
	top := t.TempDir()
	for d := top; d != "/tmp" && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	bin := top + "/app/bin"
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("policy.yaml", []byte(strings.ReplaceAll(rules, "TOP", top)))
	if err != nil {
		t.Fatal(err)
	}
	f := newHost(t, func(o *host.Options) { o.Permit, o.Programs = p.Folder, p })
	s := f.spec("x")
	s.Identity.SetupPath = bin
	return f, s, top
}

func putScript(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := errors.Join(os.WriteFile(path, []byte(text), 0o755), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
}

// TE13: the file that is executed is the one that the policy was asked about.
func TestTE13ExecutedFileIsJudged(t *testing.T) {
	needsRoot(t)
	sh, err := filepath.EvalSymlinks("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, account := range []string{"root", "nobody"} {
		f, s, top := heldHost(t, `{allow_root: true, users: [nobody], shell: false, path_prefixes: [TOP],
			programs: [TOP/app/bin/*]}`)
		s.Identity.User = account
		bin := top + "/app/bin/"
		putScript(t, bin+"say", "#!/bin/sh\necho \"$0 $* $PWD\"\n", 0o755)
		putScript(t, bin+"second", "#!"+bin+"say\n", 0o755)
		putScript(t, bin+"relative", "#!bin/sh\n", 0o755)
		putScript(t, bin+"none", "echo hello\n", 0o755)
		putScript(t, bin+"closed", "#!/bin/sh\n", 0o644)
		putScript(t, bin+"long", "#!"+strings.Repeat("/bin", 80)+"/sh\n", 0o755)
		putScript(t, bin+"open", "#!/bin/sh\n", 0o777)
		putScript(t, bin+"opened", "#!"+top+"/tool\n", 0o755)
		if err := errors.Join(copyFile("/bin/cat", bin+"kitty"), copyFile("/bin/cat", top+"/tool"),
			os.Chmod(top+"/tool", 0o777), os.Symlink("/bin/cat", bin+"link"),
			os.Symlink("say", bin+"near")); err != nil {
			t.Fatal(err)
		}

		run := func(text string) (supervise.Result, error) {
			return f.Run(t.Context(), supervise.Run{Key: f.key("a"), Spec: s, Action: gozzard.ActionStop, Command: text,
				Timeout: time.Minute})
		}
		for text, want := range map[string]string{
			"./say a b":               bin + "say a b " + strings.TrimSuffix(bin, "/"),
			"exec ../bin/near":        bin + "say  " + strings.TrimSuffix(bin, "/"),
			"./kitty /proc/self/comm": "kitty",
		} {
			if res, err := run(text); err != nil || res.ExitCode != 0 || res.Output != want {
				t.Errorf("%s as %s: %+v, %v, want %s", text, account, res, err, want)
			}
		}
		for text, want := range map[string]string{
			"./link x":     "(programs in policy.yaml)",
			"/bin/sh say":  "stop_cmd with program " + sh + " is not allowed by local policy (programs in policy.yaml)",
			"sh say":       "(shell in policy.yaml)",
			"./say; ./say": "(shell in policy.yaml)",
			"./second":     "is a script itself",
			"./relative":   "is not an absolute path",
			"./long":       "too long",
			"./none":       "is neither a program for this machine nor a script with #! in its first line",
			"./closed":     "user " + account + " may not enter the folder of the command, or may not execute",
			"./absent":     "no such file",
			"./":           "not a regular file",
			"./open":       "is writable by others (mode 0777)",
			"./opened":     "is writable by others (mode 0777)",
		} {
			if res, err := run(text); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s as %s: %+v, %v, want %s", text, account, res, err, want)
			}
		}
	}
}

// TE13: a folder of the path that is replaced while commands start never leads to a program elsewhere.
func TestTE13SwappedProgramsStayInside(t *testing.T) {
	needsRoot(t)
	f, s, top := heldHost(t, `{allow_root: true, shell: false, trusted_paths: false, path_prefixes: [TOP/app]}`)
	out := top + "/out"
	if err := errors.Join(os.MkdirAll(out, 0o755), os.Symlink("bin", top+"/app/current"),
		copyFile("/bin/true", top+"/app/bin/tool"), copyFile("/bin/false", out+"/tool")); err != nil {
		t.Fatal(err)
	}
	link := func(to string) func(string) error { return func(tmp string) error { return os.Symlink(to, tmp) } }
	stop, swapped := swapper(t, top+"/app/current", []func(string) error{link("bin"), link(out), link("../out")})

	ran, refused := 0, 0
	for i := 0; i < 10000 && (ran < *reuses/4 || refused < *reuses/4 || swapped.Load() < *fewestSwaps); i++ {
		res, err := f.Run(t.Context(), supervise.Run{Key: f.key("a"), Spec: s, Action: gozzard.ActionStop,
			Command: top + "/app/current/tool", Timeout: time.Minute})
		switch {
		case err == nil && res.ExitCode == 0:
			ran++
		case err != nil && strings.Contains(err.Error(), "(path_prefixes in policy.yaml)"):
			refused++
		default:
			t.Fatalf("%+v %v", res, err)
		}
	}
	stop()
	fmt.Printf("threat TE13: %d starts inside, %d refused during %d swaps\n", ran, refused, swapped.Load())
	if ran == 0 || refused == 0 {
		t.Errorf("%d ran, %d refused", ran, refused)
	}
}

// copyFile copies a program with another program, because the kernel does not run a file that is open for writing.
func copyFile(from, to string) error {
	out, err := exec.Command("cp", "--", from, to).CombinedOutput()
	if err != nil {
		return fmt.Errorf("cp: %w: %s", err, out)
	}
	return nil
}
