package job_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TE1: for any path and name that a caller sends, the command that the Job door makes is one call of the script with
// the name as its only argument.
func TestTE1ComposedCommandsAreOneCall(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("has no sh")
	}

	h, plane := newDoor(t)
	text, err := os.ReadFile("../../../testdata/injection.txt")
	if err != nil {
		t.Fatal(err)
	}

	root := t.TempDir()
	refused, ran := 0, 0
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n")[1:] {
		var name string
		if err := json.Unmarshal([]byte(line), &name); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(root, "p"+name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir+"/start.sh",
			[]byte("#!/bin/sh\nprintf '%s\\0' \"$#\" \"$1\" \"$(pwd -P; echo x)\" >got\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		path, err := json.Marshal(dir)
		if err != nil {
			t.Fatal(err)
		}
		if e := send(t, h, http.MethodPost, bus+"operate_proc/",
			operate("setup_path="+string(path), "proc_name="+line)); e.Code != 0 {
			refused++ // with words: such names are not for a fleet
			continue
		}
		ran++
		cmd := exec.Command("/bin/sh", "-c", plane.last.Items[0].Spec.Control.Start+" wait")
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%q: %v %s", name, err, out)
		}
		if got, err := os.ReadFile(dir + "/got"); err != nil || string(got) != "1\x00"+name+"\x00"+dir+"\nx\x00" {
			t.Errorf("%q: the script got %q, %v", name, got, err)
		}
		for _, d := range []string{root, dir} {
			if _, err := os.Stat(d + "/ran"); err == nil {
				t.Fatalf("%q was run", name)
			}
		}
	}

	t.Logf("TE1: %d composed and literal, %d refused", ran, refused)

	if ran < 150 || ran+refused < 200 {
		t.Errorf("%d composed, %d refused", ran, refused)
	}
}
