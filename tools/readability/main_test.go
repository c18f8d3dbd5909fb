package main

import (
	"strings"
	"testing"
)

// TestFigures: a long function counts as dense unless it has a blank line, a short one never counts.
func TestFigures(t *testing.T) {
	body := strings.Repeat("\tx++\n", 20)
	text := "package p\n\nfunc dense() {\n" + body + "}\n\nfunc open() {\n\tx++\n\n" + body + "}\n\nfunc short() {\n\tx++\n}\n\n// " +
		strings.Repeat("é", 120) + "\n"

	var f figures
	if err := f.add("p.go", []byte(text)); err != nil {
		t.Fatal(err)
	}
	if f.functions != 2 || f.dense != 1 || f.long != 1 {
		t.Errorf("%+v", f)
	}
	if err := f.add("q.go", []byte("not Go")); err == nil {
		t.Error("a file that is not Go was counted")
	}
}
