//go:build linux && (packages || systemd)

package packages_test

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// build makes the program with a version.
func build(t *testing.T, version string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gozzard")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -X main.version="+version, "-o", path, "./cmd/gozzard")
	cmd.Dir, cmd.Env = repository, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// pack makes the packages and the image of a version, and returns their folder.
func pack(t *testing.T, version string) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command(".ci/packages", version, dir, "amd64")
	cmd.Dir, cmd.Env = repository, append(os.Environ(), "BINARY_amd64="+build(t, version))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf(".ci/packages: %v\n%s", err, out)
	}
	return dir
}

// TestPackages installs, upgrades, removes and purges the deb and the rpm package, with a server and agents that run
// meanwhile.
func TestPackages(t *testing.T) {
	dir := t.TempDir()
	for name, version := range map[string]string{"old": "1.0.0", "new": "1.1.0"} {
		if err := os.Rename(pack(t, version), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, script := range []string{"deb.sh", "rpm.sh"} {
		t.Run(script, func(t *testing.T) { inWorld(t, script, dir) })
	}
}

// TestDebianRoot installs the deb package in a fresh Debian, which debootstrap makes: there is neither systemd nor
// anything else of this machine.
func TestDebianRoot(t *testing.T) {
	dir := pack(t, "1.0.0")
	root := filepath.Join(t.TempDir(), "debian")
	cmd := exec.Command("debootstrap", "--variant=minbase", "bookworm", root)
	if source := os.Getenv("DEBIAN_MIRROR"); source != "" {
		cmd.Args = append(cmd.Args, source)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("debootstrap: %v\n%s", err, out[max(0, len(out)-2000):])
	}
	if err := os.Rename(dir, filepath.Join(root, "dist")); err != nil {
		t.Fatal(err)
	}
	testdata, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"lib.sh", "fresh.sh"} {
		b, err := os.ReadFile(filepath.Join(testdata, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd = exec.Command("unshare", "--mount", "--pid", "--net", "--fork", "--kill-child", "--propagation", "private", "sh", "-c",
		`ip link set lo up; mount -t proc proc "$1/proc"; exec chroot "$1" sh -c '. /lib.sh; . /fresh.sh'`, "sh", root)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "HOME=/root"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// TestImage unpacks the image and runs the program in it, with nothing of this machine.
func TestImage(t *testing.T) {
	dir := pack(t, "1.0.0")
	root := filepath.Join(t.TempDir(), "root")
	config := unpackImage(t, filepath.Join(dir, "gozzard-1.0.0-image.tar"), root)
	if config.Config.User != "65532:65532" || strings.Join(config.Config.Entrypoint, " ") != "/usr/bin/gozzard" ||
		config.Architecture != "amd64" || config.OS != "linux" {
		t.Errorf("the configuration of the image: %+v", config)
	}

	// inside runs a command in the image as its account, in its folder.
	inside := func(script string) string {
		t.Helper()
		cmd := exec.Command("unshare", "--mount", "--pid", "--net", "--fork", "--kill-child", "--propagation", "private", "sh", "-c",
			`set -eu; ip link set lo up; mkdir -p "$1/proc"; mount -t proc proc "$1/proc"
run() { chroot --userspec=65532:65532 "$root" /usr/bin/gozzard "$@"; }
root=$1; `+script, "sh", root)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
		return string(out)
	}
	if out := inside("run version"); !strings.Contains(out, "1.0.0") {
		t.Errorf("gozzard version: %s", out)
	}
	if out := inside(`run server --data /var/lib/gozzard/s >"$root/tmp/log" 2>&1 & 
n=0; until run hosts --credentials /var/lib/gozzard/s/credentials.json; do n=$((n+1)); [ $n -lt 100 ] || { cat "$root/tmp/log"; exit 1; }; sleep 0.2; done`); !strings.Contains(out, "no hosts to show") {
		t.Errorf("gozzard server: %s", out)
	}
	if out := inside(`run dev --data /var/lib/gozzard/dev >"$root/tmp/log" 2>&1 &
n=0; until run hosts --credentials /var/lib/gozzard/dev/dev.json | grep "yes"; do n=$((n+1)); [ $n -lt 100 ] || { cat "$root/tmp/log"; exit 1; }; sleep 0.2; done`); !strings.Contains(out, "yes") {
		t.Errorf("gozzard dev: %s", out)
	}
}

// imageConfig is what the test reads of an image.
type imageConfig struct {
	OS, Architecture string
	Config           struct {
		User       string
		Entrypoint []string
	}
}

// unpackImage unpacks the image of this platform by its manifests, as a container tool would.
func unpackImage(t *testing.T, file, root string) (config imageConfig) {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("tar", "-xf", file, "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("tar: %v\n%s", err, out)
	}
	type descriptor struct {
		MediaType, Digest string
		Platform          struct{ Architecture string }
	}
	read := func(digest string, out any) {
		t.Helper()
		path := filepath.Join(dir, "index.json")
		if digest != "" {
			path = filepath.Join(dir, "blobs", strings.Replace(digest, ":", "/", 1))
		}
		b, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(b, out)
		}
		if err != nil {
			t.Fatal(err)
		}
	}

	var top, index struct{ Manifests []descriptor }
	read("", &top)
	read(top.Manifests[0].Digest, &index)
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	read(index.Manifests[0].Digest, &manifest)
	read(manifest.Config.Digest, &config)
	for _, l := range manifest.Layers {
		unpackLayer(t, filepath.Join(dir, "blobs", strings.Replace(l.Digest, ":", "/", 1)), root)
	}
	return config
}

func unpackLayer(t *testing.T, file, root string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(root, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o755)
		} else {
			var b []byte
			if b, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(path, b, 0o644)
			}
		}
		if err = errors.Join(err, os.Lchown(path, h.Uid, h.Gid), os.Chmod(path, h.FileInfo().Mode())); err != nil {
			t.Fatal(err)
		}
	}
}
