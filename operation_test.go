package gozzard_test

import (
	"testing"
	"time"

	"github.com/gozzard/gozzard"
)

func TestOpID(t *testing.T) {
	a, b := gozzard.NewOpID(), gozzard.NewOpID()
	if a == b {
		t.Error("two ids are the same")
	}

	back, err := gozzard.ParseOpID(a.String())
	if err != nil || back != a {
		t.Errorf("%v is read back as %v: %v", a, back, err)
	}

	for _, s := range []string{"", "00", a.String() + "00", "zz" + a.String()[2:], " " + a.String()} {
		if _, err := gozzard.ParseOpID(s); err == nil {
			t.Errorf("%q is taken", s)
		}
	}
}

func TestTaskID(t *testing.T) {
	at := time.Date(2024, 2, 29, 23, 59, 58, 0, time.FixedZone("", 8*3600))
	id := gozzard.NewTaskID(42, at)
	if id != "20240229155958:42" {
		t.Errorf("task id %q", id)
	}
	if seq, ok := id.Seq(); !ok || seq != 42 {
		t.Errorf("%q has number %d (%v)", id, seq, ok)
	}

	for _, id := range []gozzard.TaskID{"", ":", "20240229155958:", "20240229155958:0",
		"20240229155958:-1",
		"20240229155958:+1", "20240229155958:042", "2024:42", "GSETASK:20240229155958:42", ":20240229155958:42",
		"20240229155958:42 ",
		"20240229155958:99999999999999999999", "20240229155958:42:1"} {
		if seq, ok := id.Seq(); ok {
			t.Errorf("%q has number %d", id, seq)
		}
	}
}

func TestGenerationIsTheTaskNumber(t *testing.T) {
	a := gozzard.Attempt{Ref: gozzard.AttemptRef{Task: 9, Index: 3}}
	if a.Generation() != 9 {
		t.Errorf("generation %d", a.Generation())
	}
}
