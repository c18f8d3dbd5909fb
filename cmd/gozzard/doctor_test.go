package main

import (
	"bytes"
	"errors"
	"testing"

	"github.com/gozzard/gozzard/internal/doctor"
)

func TestDoctorReport(t *testing.T) {
	var out bytes.Buffer
	if err := report(&out, nil, []doctor.Finding{{Level: doctor.OK, Check: "a", Text: "good"},
		{Level: doctor.Warn, Check: "b", Text: "less"}}); err != nil {
		t.Errorf("warnings are not failures: %v", err)
	}

	var ex *exitError
	err := report(&out, nil, []doctor.Finding{{Level: doctor.Fail, Check: "c", Text: "bad\x1b[31m"}})
	if !errors.As(err, &ex) || ex.code != exitFailed {
		t.Errorf("%v", err)
	}
	want := "OK    a             good\nWARN  b             less\nFAIL  c             bad[31m\n"
	if out.String() != want {
		t.Errorf("%q", out.String())
	}
}
