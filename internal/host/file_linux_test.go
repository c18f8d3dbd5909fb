package host_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/host"
)

const (
	nobody = 65534
	daemon = 1
)

func specOf(path, content string) (*gozzard.FileSpec, []byte) {
	return &gozzard.FileSpec{Path: path, Mode: "0640", SHA256: gozzard.FileDigest([]byte(content)),
		Size: int64(len(content))}, []byte(content)
}

// put writes a file as an account.
func put(h *host.Host, account, path, content string) error {
	f, err := h.OpenFile(account, path, false)
	if err != nil {
		return err
	}
	defer f.Close()
	spec, b := specOf(path, content)
	return f.Replace(spec, b, "mark")
}

// ownFolder makes a folder of an account.
func ownFolder(t *testing.T, path string, uid int, mode os.FileMode) string {
	t.Helper()
	if err := errors.Join(os.MkdirAll(path, 0o755), os.Chown(path, uid, -1), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestReplaceFile: the file is the account's, with its group and mode, and nothing is left beside it.
func TestReplaceFile(t *testing.T) {
	needsRoot(t)
	f := newHost(t)
	dir := ownFolder(t, f.dir+"/conf", nobody, 0o755)
	path := dir + "/x.conf"
	for _, content := range []string{"one", "", "three\n"} {
		if err := put(f.Host, "nobody", path, content); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != content {
			t.Fatalf("%q %v", got, err)
		}
	}

	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil || st.Uid != nobody || st.Mode&0o7777 != 0o640 {
		t.Errorf("uid %d mode %o %v", st.Uid, st.Mode, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v %v", left, err)
	}

	open, err := f.OpenFile("nobody", path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	spec, _ := specOf(path, "three\n")
	if v := open.View(); v.Owner != "nobody" || v.Mode != "0640" || string(v.Content) != "three\n" || !open.Same(spec) {
		t.Errorf("%+v", v)
	}
	spec.Mode = "0644"
	if open.Same(spec) {
		t.Error("another mode is the same")
	}
}

// TestTT5FilesStayWhereTheyBelong: links, foreign owners, hard links, special files and open folders are rejected, and
// nothing is written.
func TestTT5FilesStayWhereTheyBelong(t *testing.T) {
	needsRoot(t)
	f := newHost(t)
	own := ownFolder(t, f.dir+"/own", nobody, 0o755)
	outside := ownFolder(t, f.dir+"/outside", 0, 0o755)
	victim := outside + "/victim"
	must := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(victim, []byte("safe"), 0o600))
	must(os.Symlink(outside, own+"/link"), os.Symlink(victim, own+"/file-link"), os.Link(victim, own+"/hard"),
		unix.Mkfifo(own+"/fifo", 0o600), os.Chown(own+"/fifo", nobody, nobody))
	must(os.WriteFile(own+"/twice", nil, 0o600), os.Chown(own+"/twice", nobody, nobody), os.Link(own+"/twice", own+"/again"))
	ownFolder(t, f.dir+"/open", nobody, 0o777)
	ownFolder(t, f.dir+"/group", nobody, 0o775)
	ownFolder(t, f.dir+"/other", daemon, 0o755)
	ownFolder(t, f.dir+"/other/own", nobody, 0o755)

	for path, want := range map[string]string{
		own + "/link/x":            "is a symbolic link",
		own + "/file-link":         "is a symbolic link",
		own + "/hard":              "belongs to uid 0",
		own + "/twice":             "hard links",
		own + "/fifo":              "not a regular file",
		own + "/none/x":            "does not exist",
		victim:                     "belongs to uid 0",
		outside + "/new":           "permission denied",
		f.dir + "/open/x":          "can be written by others",
		f.dir + "/group/x":         "can be written by others",
		f.dir + "/other/own/x":     "belongs to uid 1",
		own + "/../outside/victim": "not the clean path",
		f.state + "/journal":       "belongs to the agent",
		"/etc/passwd":              "belongs to uid 0",
		"/proc/self/cwd/x":         "symbolic link",
	} {
		if err := put(f.Host, "nobody", path, "evil"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}

	// Root is held out of its own files, too.
	if err := put(f.Host, "root", f.state+"/policy.yaml", "evil"); err == nil || !strings.Contains(err.Error(), "belongs to the agent") {
		t.Errorf("the state folder of the agent: %v", err)
	}
	if b, err := os.ReadFile(victim); err != nil || string(b) != "safe" {
		t.Errorf("the victim has %q %v", b, err)
	}
}

// TestChangedFileIsNotReplaced: a file that changes between the look and the replacement stays as it is.
func TestChangedFileIsNotReplaced(t *testing.T) {
	needsRoot(t)
	f := newHost(t)
	path := ownFolder(t, f.dir+"/conf", nobody, 0o755) + "/x"
	for name, change := range map[string]func() error{
		"rewritten": func() error { return os.WriteFile(path, []byte("by hand"), 0o644) },
		"replaced": func() error {
			return errors.Join(os.WriteFile(path+".new", []byte("by hand"), 0o644), os.Rename(path+".new", path))
		},
		"removed": func() error { return os.Remove(path) },
	} {
		if err := put(f.Host, "nobody", path, "first "+name); err != nil && !errors.Is(err, os.ErrNotExist) {
			_ = os.Remove(path)
			if err = put(f.Host, "nobody", path, "first "+name); err != nil {
				t.Fatal(err)
			}
		}
		open, err := f.OpenFile("nobody", path, false)
		if err != nil {
			t.Fatal(err)
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		spec, b := specOf(path, "second")
		if err := open.Replace(spec, b, "mark"); err == nil || !strings.Contains(err.Error(), "another program changed") {
			t.Errorf("%s: %v", name, err)
		}
		open.Close()
		if got, _ := os.ReadFile(path); string(got) == "second" {
			t.Errorf("%s: it was replaced", name)
		}
		if left, _ := filepath.Glob(filepath.Dir(path) + "/.*"); len(left) > 0 {
			t.Errorf("%s: %v is left", name, left)
		}
		_ = os.Remove(path)
	}
}

// TestTT5SwappedFoldersStayInside: an account swaps its folder and links while files are written there. Nothing is written
// outside of what the account itself can write.
func TestTT5SwappedFoldersStayInside(t *testing.T) {
	needsRoot(t)
	f := newHost(t)
	own := ownFolder(t, f.dir+"/own", nobody, 0o755)
	outside := ownFolder(t, f.dir+"/outside", 0, 0o755)
	if err := os.WriteFile(outside+"/x", []byte("safe"), 0o644); err != nil {
		t.Fatal(err)
	}
	ownFolder(t, own+"/conf", nobody, 0o755)
	if err := os.Symlink(outside, own+"/other"); err != nil {
		t.Fatal(err)
	}

	var ended atomic.Bool
	done := make(chan int)
	go func() {
		n := 0
		for ; !ended.Load(); n++ {
			_ = unix.Renameat2(unix.AT_FDCWD, own+"/conf", unix.AT_FDCWD, own+"/other", unix.RENAME_EXCHANGE)
		}
		done <- n
	}()
	written, rejected := 0, map[string]int{}
	for range 500 {
		if err := put(f.Host, "nobody", own+"/conf/x", "evil"); err == nil {
			written++
		} else {
			rejected[err.Error()]++
		}
	}
	ended.Store(true)
	swaps := <-done

	t.Logf("%d swaps: %d files written, rejected %v", swaps, written, rejected)
	if b, err := os.ReadFile(outside + "/x"); err != nil || string(b) != "safe" {
		t.Errorf("outside has %q %v", b, err)
	}
	if all, err := os.ReadDir(outside); err != nil || len(all) != 1 {
		t.Errorf("outside: %v %v", all, err)
	}
	if written == 0 || len(rejected) == 0 {
		t.Error("the race was not run")
	}
}

// TestTT16Folders: missing folders are made as the account, where it may make them, and never through a link.
func TestTT16Folders(t *testing.T) {
	needsRoot(t)
	f := newHost(t)
	dir := ownFolder(t, f.dir+"/conf", nobody, 0o755)
	foreign := ownFolder(t, f.dir+"/foreign", 0, 0o755)
	if err := os.Symlink(foreign, dir+"/link"); err != nil {
		t.Fatal(err)
	}

	if _, err := f.OpenFile("nobody", dir+"/a/b/x.conf", false); err == nil || !strings.Contains(err.Error(), "make it first") {
		t.Errorf("%v", err)
	}
	open, err := f.OpenFile("nobody", dir+"/a/b/x.conf", true)
	if err != nil {
		t.Fatal(err)
	}
	open.Close()
	var st unix.Stat_t
	if err := unix.Stat(dir+"/a/b", &st); err != nil || st.Uid != nobody || st.Mode&0o022 != 0 {
		t.Errorf("uid %d mode %o %v", st.Uid, st.Mode, err)
	}
	if err := put(f.Host, "nobody", dir+"/a/b/x.conf", "x"); err != nil {
		t.Error(err)
	}

	for path, want := range map[string]string{
		foreign + "/new/x.conf":      "cannot be made",
		dir + "/link/new/x.conf":     "symbolic link",
		dir + "/a/b/x.conf/y/z.conf": "cannot enter",
	} {
		if _, err := f.OpenFile("nobody", path, true); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if left, _ := os.ReadDir(foreign); len(left) != 0 {
		t.Errorf("%v", left)
	}
}
