package configfile_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// TestApplyLooksAhead: a document that is bound to an unknown process is rejected, also by a dry run. One that cannot be rendered is
// applied with a warning that names the variable and the one that is meant.
func TestApplyLooksAhead(t *testing.T) {
	r := newRig(t, newPlane(t, oneProcess), &hosts{})
	apply := func(content string, process int, dry bool) (record.ConfigApplied, error) {
		return r.files.Apply(t.Context(), admin, &record.ConfigWanted{Content: content,
			Template: record.ConfigTemplate{Biz: 2, Name: "b", FileName: "b.conf", Path: "/etc", Owner: "shop", Group: "shop", Mode: "0644", LineSeparator: "LF"},
			Objects:  []record.ConfigObject{{Kind: record.ConfigOfProcess, ID: 41}, {Kind: record.ConfigOfProcess, ID: process}}}, dry)
	}

	for _, dry := range []bool{true, false} {
		_, err := apply("x", 99, dry)
		var e *gozzard.Error
		if !errors.As(err, &e) || e.Kind != gozzard.ErrInvalid || len(e.Faults) != 1 || e.Faults[0].String() != "bind.processes[1]: business 2 has no process 99" {
			t.Errorf("dry %v: %v", dry, err)
		}
		got, err := apply("a\n${bk_host_inerip}", 41, dry)
		if err != nil || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "process 41") ||
			!strings.Contains(got.Warnings[0], "line 2: ${bk_host_inerip}: Undefined: there is no variable bk_host_inerip, did you mean bk_host_innerip?") {
			t.Errorf("dry %v: %q, %v", dry, got.Warnings, err)
		}
	}
	if got, err := apply("${bk_host_innerip}", 41, true); err != nil || len(got.Warnings) > 0 {
		t.Errorf("%q, %v", got.Warnings, err)
	}
}
