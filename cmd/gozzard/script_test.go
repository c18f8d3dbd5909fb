//go:build linux

package main

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/adopt"
	"github.com/gozzard/gozzard/internal/agentd"
	"github.com/gozzard/gozzard/internal/release"
	"github.com/gozzard/gozzard/test/fleettest"
	"github.com/gozzard/gozzard/test/pgtest"
)

// TestMain makes this test binary the program that scripts run. A script about updates gives it a version.
func TestMain(m *testing.M) {
	adopt.Serve()
	agentd.ServeGuard()
	testscript.Main(m, map[string]func(){"gozzard": func() {
		if v := os.Getenv("SCRIPT_VERSION"); v != "" {
			version = v
		}
		main()
	}})
}

// TestScripts uses the program as people do: testdata/script/*.txtar run it with real servers and agents.
func TestScripts(t *testing.T) {
	if testing.Short() {
		t.Skip("starts whole fleets")
	}

	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}

	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(e *testscript.Env) error {
			e.Vars = append(e.Vars, "ME="+me.Username, "HOMEDIR="+me.HomeDir)
			e.Defer(func() { killLeftovers(t, e.WorkDir) })
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":     exits,
			"waitfile":  waitFile,
			"expand":    expand,
			"soon":      soon,
			"onscreen":  onScreen,
			"release":   makeRelease,
			"oldgrants": oldGrants,
			"totp":      totp,
			"npm":       npm,
			"postgres": func(ts *testscript.TestScript, _ bool, _ []string) {
				ts.Setenv("POSTGRES", pgtest.Start(t, "off").URL("postgres"))
			},
		},
		Condition: func(name string) (bool, error) {
			if name != "postgres" {
				return false, errors.New("there is no such condition")
			}
			return pgtest.Available(), nil
		},
	})
}

// exits runs a command and checks its exit code: exits 3 gozzard status web.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}

	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var ex *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &ex) {
		got = ex.ExitCode()
	} else {
		ts.Check(err)
	}

	if got != want {
		ts.Fatalf("%s exits with %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

// soon runs a command until its output matches, because live status is a moment late: soon REGEXP COMMAND...
func soon(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: soon REGEXP COMMAND...")
	}
	want, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		_ = ts.Exec(args[1], args[2:]...) // another line checks its exit code
		if want.MatchString(ts.ReadFile("stdout")) {
			return
		}
	}
	ts.Fatalf("no %q in the output of %s", args[0], strings.Join(args[1:], " "))
}

// waitFile waits until a file exists: waitfile FILE.
func waitFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: waitfile FILE")
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(ts.MkAbs(args[0])); err == nil {
			return
		}
	}
	ts.Fatalf("%s was not written within a minute", args[0])
}

// expand replaces $WORK and $ME in files of the script: expand FILE...
func expand(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: expand FILE...")
	}
	for _, name := range args {
		path := ts.MkAbs(name)
		b, err := os.ReadFile(path)
		ts.Check(err)
		text := strings.NewReplacer("$WORK", ts.Getenv("WORK"), "$ME", ts.Getenv("ME")).Replace(string(b))
		ts.Check(os.WriteFile(path, []byte(text), 0o600))
	}
}

// npm installs a package into a folder, with the settings of this machine: npm PACKAGE@VERSION FOLDER.
func npm(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: npm PACKAGE@VERSION FOLDER")
	}
	out, err := exec.Command("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", ts.MkAbs(args[1]), args[0]).CombinedOutput()
	if err != nil {
		ts.Fatalf("npm install %s: %v: %s", args[0], err, out)
	}
}

// totp writes a code of the second factor in the JSON file of its enrolment to a file: totp FROM TO.
func totp(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: totp FROM TO")
	}
	var e client.TOTPEnrolment
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &e))
	code, err := fleettest.TOTPCode(e.Secret, time.Now())
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(code), 0o600))
}

// makeRelease writes a signed release of one program for this platform: release FOLDER VERSION PROGRAM. The public
// key is FOLDER/release.pub.
func makeRelease(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: release FOLDER VERSION PROGRAM")
	}
	dir, program := ts.MkAbs(args[0]), []byte(ts.ReadFile(args[2]))
	ts.Check(os.MkdirAll(dir, 0o755))

	// Describe the program and sign the description.
	public, private, err := ed25519.GenerateKey(nil)
	ts.Check(err)
	sum := sha256.Sum256(program)
	m := release.Manifest{Version: args[1], Created: time.Now().Add(-time.Hour), Expires: time.Now().Add(time.Hour),
		Files: []release.File{{
			Platform: runtime.GOOS + "/" + runtime.GOARCH, Name: "gozzard-program", Size: int64(len(program)),
			SHA256: hex.EncodeToString(sum[:]),
		}}}
	manifest, err := m.Encode()
	ts.Check(err)
	der, err := x509.MarshalPKIXPublicKey(public)
	ts.Check(err)

	for name, text := range map[string][]byte{
		release.ManifestName: manifest, release.SignatureName: ed25519.Sign(private, manifest),
		"gozzard-program": program,
		"release.pub":     pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}),
	} {
		ts.Check(os.WriteFile(filepath.Join(dir, name), text, 0o644))
	}
}

// killLeftovers kills the processes that a failed script leaves: those in its pid files that run in its folder.
func killLeftovers(t *testing.T, dir string) {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".pid") {
			return nil // a file that cannot be read is not a pid file of the script
		}

		b, err := os.ReadFile(path)
		if err != nil {
			return nil
		}

		pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
		if err != nil || pid < 2 {
			return nil
		}

		cwd, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "cwd"))
		if err == nil && strings.HasPrefix(cwd, dir) {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Logf("cannot end leftover %d: %v", pid, err)
			}
		}

		return nil
	})
	if err != nil {
		t.Logf("cannot look for leftovers: %v", err)
	}
}
