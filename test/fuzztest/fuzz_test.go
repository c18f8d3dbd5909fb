package fuzztest_test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/test/fuzztest"
)

// faulty is the variable that is set in a process in which FuzzFaulty has a fault to find.
const faulty = "FUZZTEST_FAULT"

var sink []byte

// FuzzFaulty fails as the environment says. By default it is a target without faults.
func FuzzFaulty(f *testing.F) {
	z := fuzztest.New(f)
	z.Add([]byte(`{"key":1}`), "text", uint8(3), true, 7)

	z.Fuzz(func(t *testing.T, b []byte, s string, u uint8, yes bool, n int) {
		if !bytes.Contains(b, []byte(`"key"`)) { // only random inputs fail
			switch os.Getenv(faulty) {
			case "panic":
				panic("found")
			case "fatal":
				t.Fatal("found")
			case "work":
				for start := fuzztest.ThreadTime(); fuzztest.ThreadTime()-start <= fuzztest.MaxWork(); {
				}
			case "memory":
				for range 600 {
					sink = make([]byte, 1<<20)
				}
			}
		}
	})
}

// TestFaults: the package finds what is wrong with a target without -fuzz, and reports the input that shows it.
func TestFaults(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}

	for fault, want := range map[string]string{"panic": "found", "fatal": "found", "work": "at most",
		"memory": "MiB, at most"} {
		if fault == "work" && fuzztest.Race {
			continue // the bound is eight times as high, which takes long on a busy machine
		}
		cmd := exec.Command(self, "-test.run=^FuzzFaulty$")
		cmd.Env = append(os.Environ(), faulty+"="+fault, fuzztest.TimeVariable+"=20s")
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) || !strings.Contains(string(out), "go test fuzz v1") ||
			!strings.Contains(string(out), "[]byte(") {
			t.Errorf("%s: %v\n%s", fault, err, out)
		}
	}

	cmd := exec.Command(self, "-test.run=^FuzzFaulty$", "-test.v")
	cmd.Env = append(os.Environ(), fuzztest.TimeVariable+"=50ms")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "random inputs") {
		t.Errorf("%v\n%s", err, out)
	}

	cmd = exec.Command(self, "-test.run=^FuzzFaulty$")
	cmd.Env = append(os.Environ(), fuzztest.TimeVariable+"=soon")
	if out, err = cmd.CombinedOutput(); err == nil ||
		!strings.Contains(string(out), "cannot read "+fuzztest.TimeVariable) {
		t.Errorf("%v\n%s", err, out)
	}
}
