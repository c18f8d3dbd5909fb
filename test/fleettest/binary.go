//go:build linux

package fleettest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// build builds the program under test, with the race detector if the tests have it. crowd is the same program without
// the detector: thousands of simulated hosts in one process are there to load a server, and under the detector they
// would mostly load the machine. They run the agent, which other tests check with the detector.
var (
	build = sync.OnceValues(func() (string, error) { return buildProgram(raceBuild) })
	crowd = sync.OnceValues(func() (string, error) { return buildProgram(false) })
)

// asShipped makes every program of this test process one without the race detector.
var asShipped bool

// AsShipped makes all tests of this process run the program without the race detector, as people have it. TestMain
// calls it.
func AsShipped() { asShipped = true }

// leftovers are folders that Main removes.
var leftovers struct {
	sync.Mutex
	folders []string
}

// RemoveAtEnd makes Main remove a folder.
func RemoveAtEnd(dir string) {
	leftovers.Lock()
	defer leftovers.Unlock()
	leftovers.folders = append(leftovers.folders, dir)
}

func buildProgram(race bool) (string, error) {
	if shared := os.Getenv("GOZZARD_BUILDS"); shared != "" {
		return sharedBuild(shared, race)
	}

	dir, err := os.MkdirTemp("", "gozzard-bin-")
	if err != nil {
		return "", err
	}

	RemoveAtEnd(dir)
	out := filepath.Join(dir, "gozzard")
	return out, buildAt(out, race)
}

// sharedBuild builds the program into a folder that all packages of one run of `make test` share: whichever package
// needs the program first builds it, the others wait for it. The folder is new for each run, so what is in it is of
// this source.
func sharedBuild(dir string, race bool) (string, error) {
	dir = filepath.Join(dir, "race-"+strconv.FormatBool(race))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}

	defer lock.Close() // this also unlocks it
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return "", fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	out := filepath.Join(dir, "gozzard")
	if _, err := os.Stat(out); err == nil {
		return out, nil
	}

	part := out + ".part" // a build that was interrupted is not taken for a program
	if err := buildAt(part, race); err != nil {
		return "", err
	}
	return out, os.Rename(part, out)
}

func buildAt(out string, race bool) error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	return goBuild(root, race, "-tags=failpoint", "-o", out)
}

// goBuild builds the program in one of two ways, so that a machine compiles everything at most twice: with the race
// detector, exactly as the tests are compiled, or as in a release, which is also how the benchmarks build it.
func goBuild(root string, race bool, flags ...string) error {
	args, cgo := []string{"build", "-trimpath"}, "CGO_ENABLED=0"
	if race {
		args, cgo = append([]string{"build", "-race"}, compilerFlags()...), "CGO_ENABLED=1"
	}
	cmd := exec.Command("go", append(append(args, flags...), "./cmd/gozzard")...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), cgo)
	if b, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, b)
	}
	return nil
}

// compilerFlags are the flags of the compiler with which this test was built.
func compilerFlags() (flags []string) {
	info, _ := debug.ReadBuildInfo()
	for _, s := range info.Settings {
		if s.Key == "-gcflags" {
			flags = append(flags, "-gcflags="+s.Value)
		}
	}
	return flags
}

// BuildVersion builds the program with a given version, as in a release.
func BuildVersion(t testing.TB, version, out string) {
	t.Helper()
	root, err := moduleRoot()
	if err == nil {
		err = goBuild(root, false, "-ldflags", "-s -w -X main.version="+version, "-o", out)
	}
	if err != nil {
		t.Fatalf("cannot build version %s of the program: %v", version, err)
	}
}

// Binary builds the program once per test process. GOZZARD_BINARY names a program to use instead.
func Binary(t testing.TB) string {
	if asShipped || os.Getenv("GOZZARD_TEST_PROGRAM") == "shipped" {
		return binary(t, crowd)
	}
	return binary(t, build)
}

func binary(t testing.TB, build func() (string, error)) string {
	t.Helper()
	if p := os.Getenv("GOZZARD_BINARY"); p != "" {
		return p
	}
	p, err := build()
	if err != nil {
		t.Fatalf("cannot build the program: %v", err)
	}
	return p
}

// Main runs tests and removes the built program afterwards. TestMain calls it.
func Main(m *testing.M) { Finish(m.Run()) }

// Finish removes the built program and ends the tests with an exit code. A TestMain that does not call Main calls it.
func Finish(code int) {
	postgres.end()
	leftovers.Lock()
	defer leftovers.Unlock()
	for _, dir := range leftovers.folders {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

func moduleRoot() (string, error) {
	b, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(b))), nil
}
