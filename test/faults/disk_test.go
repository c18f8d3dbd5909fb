//go:build linux

package faults_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
	"github.com/gozzard/gozzard/test/ledger"
)

// ext4 mounts a small file system from an image and returns its mount point and the image.
func ext4(t *testing.T, mib int) (dir, image string) {
	t.Helper()

	if os.Getuid() != 0 {
		t.Skip("mounting needs root")
	}

	image = filepath.Join(t.TempDir(), "disk.img")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, int64(mib)<<20); err != nil {
		t.Fatal(err)
	}

	command(t, "mkfs.ext4", "-q", image)
	return mount(t, image), image
}

func mount(t *testing.T, image string) string {
	t.Helper()
	dir := t.TempDir()
	command(t, "mount", "-o", "loop", image, dir)

	t.Cleanup(func() {
		for range 50 { // the program that used it is still ending
			if exec.Command("umount", dir).Run() == nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Errorf("cannot unmount %s", dir)
	})

	return dir
}

func command(t *testing.T, args ...string) {
	t.Helper()
	if b, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, b)
	}
}

// V2: a power cut. The server is frozen and the image below its file system is copied: data that the kernel has not
// written is lost, as in a power cut.
func TestV2PowerCut(t *testing.T) {
	ft.FileOnly(t, "it cuts the power of the disk with the file")
	dir, image := ext4(t, 128)
	data := filepath.Join(dir, "data")
	s := ft.StartServer(t, data)
	s.StartAgent(t, 1, "")
	l := ledger.New(t, s.API)
	stop := l.Load(8, 1, 3000**scale)
	acked, lost := 0, 0
	for range 2 * *scale {
		time.Sleep(700 * time.Millisecond)
		ft.Until(t, time.Minute, func() string { return "nothing is acknowledged" }, func() bool { return len(l.Tasks()) > 0 })
		s.Kill(syscall.SIGSTOP)
		tasks := l.Tasks()
		after := filepath.Join(t.TempDir(), "after.img")
		copyFile(t, image, after)
		s.Kill(syscall.SIGCONT)
		t.Run("after", func(t *testing.T) {
			s2 := ft.StartServer(t, filepath.Join(mount(t, after), "data"))
			for mark, task := range tasks {
				acked++
				if ans, err := s2.Try("get_proc_operate_result", ft.J{"task_id": task}); err != nil || ans.Code != 0 {
					lost++
					t.Logf("%s: task %s: %v %s", mark, task, err, ans.Raw)
				}
			}
			s2.Kill(syscall.SIGKILL)
		})
	}

	stop()
	fmt.Printf("fault V2: %d acknowledged tasks looked up after a power cut, %d lost\n", acked, lost)

	if lost > 0 || acked == 0 {
		t.Errorf("%d of %d lost", lost, acked)
	}

	l.Afterwards(8, 1)
	l.Judge("V2", ledger.Floor{OK: 30, Percent: 50})
	s.Kill(syscall.SIGKILL)
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}

	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}

	defer out.Close()

	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
}

// K1: the disk of the record is full. Writes are rejected with a clear error, reads go on, nothing acknowledged is
// lost, and work resumes when there is space.
func TestK1DiskFull(t *testing.T) {
	ft.FileOnly(t, "it fills the disk with the file; TestV17PostgresDiskFull fills that of PostgreSQL")
	dir, _ := ext4(t, 32)
	s := ft.StartServer(t, filepath.Join(dir, "data"))
	s.StartAgent(t, 1, "")
	l := ledger.New(t, s.API)
	never := make(chan struct{})
	for i := range 20 {
		l.Send(fmt.Sprintf("before-%d", i), 1, i%4, never)
	}

	fill := filepath.Join(dir, "fill")
	fillDisk(t, fill)
	refused := 0
	var words string
	for i := range 400 { // the record has a few free pages
		ans, err := s.Try("operate_proc_v2", ft.J{"meta": ft.J{"namespace": "faults", "name": "full"}, "op_type": 2,
			"spec":  ft.J{"identity": ft.J{"proc_name": "gzledger"}},
			"hosts": []ft.J{{"ip": "127.0.0.1", "bk_cloud_id": 0}}, "x": strings.Repeat("x", i)})
		if err != nil {
			t.Fatal(err)
		}
		if ans.Code != 0 {
			refused, words = refused+1, ans.Message
		}
		fillDisk(t, fill)
	}

	if refused == 0 || !strings.Contains(words, "is full") {
		t.Errorf("%d refusals, the last one says %q", refused, words)
	}
	if rows := s.Status("faults", "p0", ft.Host(1)); len(rows) != 1 {
		t.Errorf("reads: %v", rows)
	}
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}

	ft.Until(t, time.Minute, func() string { return "service does not resume" }, func() bool {
		ans, err := s.Try("operate_proc_v2", ft.J{"meta": ft.J{"namespace": "faults", "name": "after"}, "op_type": 2,
			"spec": ft.J{"identity": ft.J{"proc_name": "x"}}, "hosts": []ft.J{{"ip": "127.0.0.1", "bk_cloud_id": 0}}})
		return err == nil && ans.Code == 0
	})

	for i := range 20 {
		l.Send(fmt.Sprintf("after-%d", i), 1, i%4, never)
	}

	fmt.Printf("fault K1: %d operations refused while the disk was full: %q\n", refused, words)
	l.Judge("K1", ledger.Floor{OK: 40, Percent: 100})
	s.Kill(syscall.SIGKILL)
}

// fillDisk appends to a file until the disk is full.
func fillDisk(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		if errors.Is(err, syscall.ENOSPC) {
			return
		}
		t.Fatal(err)
	}

	defer f.Close()

	for size := 1 << 20; size >= 512; size /= 2 {
		for {
			if _, err := f.Write(make([]byte, size)); err != nil {
				break
			}
		}
	}

	_ = f.Sync()
}
