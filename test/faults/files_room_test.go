//go:build linux

package faults_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/client"
)

// TestA26NoRoom: a host whose disk is full, has no inode left, or is read-only. The verdict says so, the file keeps its content, and
// nothing is left beside it. When there is room again, the file is written.
func TestA26NoRoom(t *testing.T) {
	r := newFileRig(t)
	tmpfs := func(options string) string {
		dir := t.TempDir()
		command(t, "mount", "-t", "tmpfs", "-o", "mode=755,"+options, "tmpfs", dir)
		t.Cleanup(func() { command(t, "umount", "-l", dir) })
		return dir
	}
	write := func(dir, content string) client.Attempt {
		t.Helper()
		a, err := r.c.WriteFile(t.Context(), client.FileWrite{Namespace: "faults", Path: dir + "/x.conf", Account: "root",
			Hosts: []client.Host{{IP: "127.0.0.1"}}, Content: []byte(content)})
		if err != nil {
			t.Fatal(err)
		}
		task, err := r.c.Wait(t.Context(), a.TaskID, nil)
		if err != nil || len(task.Attempts) != 1 {
			t.Fatalf("%+v %v", task, err)
		}
		return task.Attempts[0]
	}

	old, long := "old\n", strings.Repeat("new\n", 50_000)
	for _, c := range []struct {
		name, options, want string
		spoil, mend         func(dir string)
	}{
		{"full", "size=256k", "no space left on device",
			func(dir string) { fillDisk(t, dir+"/filler") },
			func(dir string) { check(t, os.Remove(dir+"/filler")) }},
		{"no inode", "size=4m,nr_inodes=4", "no space left on device",
			func(dir string) {
				for i := 0; ; i++ {
					if os.WriteFile(fmt.Sprintf("%s/filler%d", dir, i), nil, 0o600) != nil {
						return
					}
				}
			},
			func(dir string) { check(t, os.Remove(dir+"/filler0")) }},
		{"read-only", "size=4m", "read-only file system",
			func(dir string) { command(t, "mount", "-o", "remount,ro", dir) },
			func(dir string) { command(t, "mount", "-o", "remount,rw", dir) }},
	} {
		dir := tmpfs(c.options)
		if a := write(dir, old); a.State != "ok" {
			t.Fatalf("%s: %+v", c.name, a)
		}
		c.spoil(dir)
		a := write(dir, long)
		if a.State != "failed" && a.State != "not_executed" || !strings.Contains(a.Message, c.want) {
			t.Errorf("%s: %s, %q, want %q", c.name, a.State, a.Message, c.want)
		}
		if got, err := os.ReadFile(dir + "/x.conf"); err != nil || string(got) != old {
			t.Errorf("%s: the file has %d bytes, %v", c.name, len(got), err)
		}
		if left, _ := filepath.Glob(dir + "/.gozzard-*"); len(left) > 0 {
			t.Errorf("%s: %v is left", c.name, left)
		}

		c.mend(dir)
		if a := write(dir, long); a.State != "ok" {
			t.Errorf("%s, mended: %+v", c.name, a)
		}
		fmt.Printf("fault A26 %s: %s\n", c.name, a.Message)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
