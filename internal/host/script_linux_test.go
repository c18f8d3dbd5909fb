package host

import (
	"os"
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
)

// TestTT15ScriptTextIsSealed: nobody can change the text of a script after it was checked.
func TestTT15ScriptTextIsSealed(t *testing.T) {
	texts := []gozzard.ScriptText{{Path: "/tmp/x/a.sh", Content: []byte("echo a")}, {Path: "/tmp/x/b.sh", Content: nil}}
	files, err := openTexts(texts)
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(files)
	if _, err := files[0].WriteAt([]byte("evil"), 0); err == nil {
		t.Error("it was written")
	}
	if err := files[0].Truncate(0); err == nil {
		t.Error("it was emptied")
	}
	if b, err := readAt(files[0], 0, 100); err != nil || string(b) != "echo a" {
		t.Errorf("%q %v", b, err)
	}
	if got := withTexts("sh /tmp/x/b.sh; /tmp/x/a.sh 1", texts); got != "sh /proc/self/fd/4; /proc/self/fd/3 1" {
		t.Error(got)
	}
}

// TestWholeOutput: the output of a script has its start and its end, in whole characters.
func TestWholeOutput(t *testing.T) {
	for _, c := range []struct {
		printed string
		most    int
		want    string
		leftOut int64
	}{
		{"", 8, "", 0},
		{"12345678", 8, "12345678", 0},
		{"123456789", 8, "12346789", 1},
		{"好好好好", 8, "好好", 6},
		{"a\x00b\r\n\xff", 100, "ab\r\n\uFFFD", 0},
		{strings.Repeat("\x80", 20), 8, "\uFFFD\uFFFD", 15},
	} {
		f, err := os.Create(t.TempDir() + "/out")
		if err == nil {
			_, err = f.WriteString(c.printed)
		}
		if err != nil {
			t.Fatal(err)
		}
		o := &output{file: f, want: c.most}
		got, leftOut, err := o.whole(c.most)
		if err != nil || got != c.want || leftOut != c.leftOut {
			t.Errorf("%q: %q, %d left out, %v", c.printed, got, leftOut, err)
		}
		_ = f.Close()
	}
}
