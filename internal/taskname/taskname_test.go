package taskname_test

import (
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/taskname"
)

func TestNames(t *testing.T) {
	id := gozzard.NewTaskID(17, time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC))
	name := taskname.Of(id)
	if name != "GSETASK:20240102030405:17" {
		t.Errorf("%q is called %q", id, name)
	}

	for _, text := range []string{name, string(id)} {
		if got := taskname.Parse(text); got != id {
			t.Errorf("%q is read as %q", text, got)
		}
	}

	if taskname.Of("") != "" || taskname.Parse("") != "" {
		t.Error("no id has a name")
	}
}

// TestOneSpelling: every other spelling of the prefix leaves a text that is no id.
func TestOneSpelling(t *testing.T) {
	for _, text := range []string{"gsetask:20240102030405:17", "GSETASK:GSETASK:20240102030405:17",
		" GSETASK:20240102030405:17", "GSETASK20240102030405:17", "TASK:20240102030405:17", "GSETASK:"} {
		if seq, ok := taskname.Parse(text).Seq(); ok {
			t.Errorf("%q is task %d", text, seq)
		}
	}
}
