//go:build linux

package faults_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// supplyChain makes a release of a tiny source tree with our release script, and verifies it as a user would.
func supplyChain(t *testing.T, _ *plainFleet) {
	r := newReleaseRig(t)
	dist := r.release(t)

	t.Run("a release is complete and verified", func(t *testing.T) { r.completeAndVerified(t, dist) })
	t.Run("a changed release is rejected", func(t *testing.T) { r.changesAreRejected(t, dist) })
	t.Run("a build that differs is no release", r.differingBuild)
	t.Run("a forbidden licence is no release", r.forbiddenLicence)
	t.Run("known vulnerabilities fail the check", vulnerabilitiesFail)
	t.Run("the NATS server is a maintained one", maintainedNATS)

	t.Run("the security policy says how long a fix may take", func(t *testing.T) {
		b, err := os.ReadFile(repo("SECURITY.md"))
		if err != nil || !strings.Contains(string(b), "90 days") {
			t.Errorf("SECURITY.md does not promise 90 days: %v", err)
		}
	})
}

// repo is a path in this repository.
func repo(path string) string { return filepath.Join("..", "..", filepath.FromSlash(path)) }

// releaseRig is a source tree with a program and one dependency, and two keys.
type releaseRig struct {
	tree string
	keys string
}

// program is the file of the tiny program in a release.
const program = "gozzard-linux-" + runtime.GOARCH

const (
	permissive = "Permission is hereby granted, free of charge, to any person obtaining a copy of this software, " +
		"on one condition: this permission notice shall be included in all copies.\n"
	tinyModule  = "module example.org/tiny\n\ngo 1.26.0\n\nrequire example.org/dep v0.0.0\n\nreplace example.org/dep => ./dep\n"
	tinyProgram = "package main\n\nimport \"example.org/dep\"\n\nvar version = \"none\"\n\n" +
		"func main() { println(dep.Word(), version) }\n"
	copyleft = "GNU GENERAL PUBLIC LICENSE\nVersion 3, 29 June 2007\n"
)

func newReleaseRig(t *testing.T) *releaseRig {
	t.Helper()
	r := &releaseRig{tree: t.TempDir(), keys: t.TempDir()}
	for path, text := range map[string]string{
		"go.mod":              tinyModule,
		"LICENSE":             permissive,
		"NOTICE":              "tiny\n",
		"cmd/gozzard/main.go": tinyProgram,
		"dep/go.mod":          "module example.org/dep\n\ngo 1.26.0\n",
		"dep/dep.go":          "package dep\n\nfunc Word() string { return \"tiny\" }\n",
		"dep/LICENSE":         permissive,
	} {
		r.write(t, path, text)
	}

	if out, err := exec.Command("git", "-C", r.tree, "init", "--quiet").CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}

	for _, name := range []string{"release", "stranger"} {
		makeKeys(t, r.keys, name)
	}

	return r
}

func (r *releaseRig) write(t *testing.T, path, text string) {
	t.Helper()
	path = filepath.Join(r.tree, filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// makeKeys writes NAME.pem and NAME.pub.
func makeKeys(t *testing.T, dir, name string) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}

	privateDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}

	publicDER, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}

	for file, block := range map[string]*pem.Block{
		name + ".pem": {Type: "PRIVATE KEY", Bytes: privateDER}, name + ".pub": {Type: "PUBLIC KEY", Bytes: publicDER},
	} {
		if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// run makes a release in dist. Its second build has an empty cache unless env names one.
func (r *releaseRig) run(t *testing.T, dist string, env ...string) (string, error) {
	t.Helper()
	script, err := filepath.Abs(repo(".ci/release"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), script, "1.2.3", dist, "linux/"+runtime.GOARCH)
	cmd.Dir = r.tree
	cmd.Env = append(os.Environ(), "RELEASE_KEY="+filepath.Join(r.keys, "release.pem"))
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (r *releaseRig) release(t *testing.T) (dist string) {
	t.Helper()
	dist = filepath.Join(t.TempDir(), "dist")
	if out, err := r.run(t, dist); err != nil {
		t.Fatalf("cannot make a release: %v\n%s", err, out)
	}
	return dist
}

// verify runs the script that a user runs.
func (r *releaseRig) verify(t *testing.T, dist, key string) (string, error) {
	t.Helper()
	public := filepath.Join(r.keys, key+".pub")
	cmd := exec.CommandContext(t.Context(), "make", "-C", repo("."), "verify", "DIST="+dist, "RELEASE_PUB="+public)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (r *releaseRig) completeAndVerified(t *testing.T, dist string) {
	entries, err := os.ReadDir(dist)
	if err != nil {
		t.Fatal(err)
	}

	var files []string
	for _, e := range entries {
		files = append(files, e.Name())
	}

	want := []string{
		"LICENSE", "LICENSES.txt", "NOTICE", "SHA256SUMS", "SHA256SUMS.sig", program, program + ".cdx.json",
		"release.json", "release.json.sig",
	}
	if !slices.Equal(files, want) {
		t.Fatalf("the release has %q, want %q", files, want)
	}

	if out, err := r.verify(t, dist, "release"); err != nil {
		t.Errorf("not verified: %v\n%s", err, out)
	}

	out, err := exec.CommandContext(t.Context(), filepath.Join(dist, program)).CombinedOutput()
	if err != nil || string(out) != "tiny 1.2.3\n" {
		t.Errorf("the program says %q, %v", out, err)
	}

	licences, err := os.ReadFile(filepath.Join(dist, "LICENSES.txt"))
	if err != nil || !strings.Contains(string(licences), permissive[:60]) ||
		!strings.Contains(string(licences), "std go1.") {
		t.Errorf("licences are missing: %v\n%.2000s", err, licences)
	}

	checkBill(t, filepath.Join(dist, program))
}

// checkBill: the bill of materials is of that binary, and lists its modules with their licences.
func checkBill(t *testing.T, binary string) {
	t.Helper()
	var bill struct {
		Metadata struct {
			Component struct {
				Version string
				Hashes  []struct{ Content string }
			}
		}
		Components []struct {
			Name     string
			Licenses []struct{ License struct{ ID string } }
		}
	}
	text, err := os.ReadFile(binary + ".cdx.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &bill); err != nil {
		t.Fatal(err)
	}

	built, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}

	sum := sha256.Sum256(built)
	app := bill.Metadata.Component
	if app.Version != "1.2.3" || len(app.Hashes) != 1 || app.Hashes[0].Content != hex.EncodeToString(sum[:]) {
		t.Errorf("the bill is of %+v", app)
	}

	found := map[string]string{}
	for _, c := range bill.Components {
		for _, l := range c.Licenses {
			found[c.Name] += l.License.ID
		}
	}

	if want := map[string]string{"std": "BSD-3-Clause", "./dep": "MIT"}; fmt.Sprint(found) != fmt.Sprint(want) {
		t.Errorf("the bill lists %v, want %v", found, want)
	}
}

// changesAreRejected changes one thing at a time in a copy of the release.
func (r *releaseRig) changesAreRejected(t *testing.T, dist string) {
	flip := func(file string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(dir, file)
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			b[len(b)/2] ^= 1
			if err := os.WriteFile(path, b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}

	remove := func(file string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, file)); err != nil {
				t.Fatal(err)
			}
		}
	}

	for name, c := range map[string]struct {
		change func(*testing.T, string)
		key    string
	}{
		"one bit of a binary":       {flip(program), "release"},
		"one bit of a bill":         {flip(program + ".cdx.json"), "release"},
		"one bit of the licences":   {flip("LICENSES.txt"), "release"},
		"one bit of the manifest":   {flip("release.json"), "release"},
		"one bit of the sums":       {flip("SHA256SUMS"), "release"},
		"one bit of the signature":  {flip("SHA256SUMS.sig"), "release"},
		"no signature":              {remove("SHA256SUMS.sig"), "release"},
		"no signature of the rest":  {remove("release.json.sig"), "release"},
		"no sums":                   {remove("SHA256SUMS"), "release"},
		"a file less":               {remove(program), "release"},
		"the key of another owner":  {func(*testing.T, string) {}, "stranger"},
		"a key that does not exist": {func(*testing.T, string) {}, "missing"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(dist)); err != nil {
				t.Fatal(err)
			}
			c.change(t, dir)
			if out, err := r.verify(t, dir, c.key); err == nil || !strings.Contains(out, "supply: ") {
				t.Errorf("verified: %v\n%s", err, out)
			}
		})
	}
}

// differingBuild uses a compiler whose output differs each time.
func (r *releaseRig) differingBuild(t *testing.T) {
	real, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}

	bin := t.TempDir()
	wrapper := fmt.Sprintf("#!/usr/bin/env bash\n%q \"$@\" || exit\n"+
		"while (($#)); do [[ $1 != -o ]] || echo \"$RANDOM$RANDOM\" >>\"$2\"; shift; done\n", real)
	if err := os.WriteFile(filepath.Join(bin, "go"), []byte(wrapper), 0o755); err != nil {
		t.Fatal(err)
	}

	out, err := r.run(t, filepath.Join(t.TempDir(), "dist"), "PATH="+bin+":"+os.Getenv("PATH"),
		"RELEASE_CACHE="+goCache(t))
	if err == nil || !strings.Contains(out, "differs when it is built again") {
		t.Errorf("got %v\n%s", err, out)
	}
}

func (r *releaseRig) forbiddenLicence(t *testing.T) {
	r.write(t, "dep/LICENSE", copyleft)
	defer r.write(t, "dep/LICENSE", permissive)
	out, err := r.run(t, filepath.Join(t.TempDir(), "dist"), "RELEASE_CACHE="+goCache(t))
	if err == nil || !strings.Contains(out, "GPL, which is not allowed") {
		t.Errorf("got %v\n%s", err, out)
	}
}

// goCache is the normal build cache, for cases in which time matters more than proof.
func goCache(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// vulnerabilitiesFail: `make check` runs the scanner, and a finding fails it.
func vulnerabilitiesFail(t *testing.T) {
	plan, err := exec.Command("make", "-C", repo("."), "--dry-run", "check").CombinedOutput()
	if err != nil || !strings.Contains(string(plan), ".ci/vulncheck go tool -modfile=tools/pinned/go.mod govulncheck ./...") {
		t.Errorf("make check does not scan: %v\n%s", err, plan)
	}

	for name, c := range map[string]struct {
		scanner string
		ok      bool
	}{
		"nothing found":           {"echo 'No vulnerabilities found.'", true},
		"something found":         {"echo 'Vulnerability #1: GO-1'; exit 3", false},
		"another error":           {"echo 'cannot parse'; exit 1", false},
		"the database is away":    {"echo 'dial tcp: no such host'; exit 1", true},
		"found, and a word of it": {"echo 'Vulnerability #1: a timeout in dial tcp'; exit 3", false},
	} {
		out, err := exec.Command(repo(".ci/vulncheck"), "sh", "-c", c.scanner).CombinedOutput()
		if (err == nil) != c.ok {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// maintainedNATS reads the version of the built-in NATS server from the program itself.
func maintainedNATS(t *testing.T) {
	info, err := buildinfo.ReadFile(ft.Binary(t))
	if err != nil {
		t.Fatal(err)
	}

	for _, d := range info.Deps {
		if d.Path != "github.com/nats-io/nats-server/v2" {
			continue
		}
		var minor int
		if _, err := fmt.Sscanf(d.Version, "v2.%d.", &minor); err != nil || minor < 15 {
			t.Errorf("the NATS server is %s, want v2.15 or later: %v", d.Version, err)
		}
		return
	}

	t.Error("the program has no NATS server")
}
