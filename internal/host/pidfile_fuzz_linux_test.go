package host_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/internal/host"
	"github.com/gozzard/gozzard/test/fuzztest"
)

// FuzzPIDFile: a text is accepted only if its first line is the plain decimal of a pid that a service can have.
func FuzzPIDFile(f *testing.F) {
	z := fuzztest.New(f)
	for _, s := range []string{"4437\n", " 4437 ", "1", "0", "-1", "+4437", "004437", "4194304", "4194305", "4437\n1",
		"4437\x00", "0x1155", "٤٤٣٧", "99999999999999999999", ""} {
		z.Add([]byte(s))
	}

	z.Fuzz(func(t *testing.T, text []byte) {
		pid, ok := host.ParsePID(text)
		if !ok {
			return
		}
		line, _, _ := strings.Cut(strings.TrimLeft(string(text), " \t\r\n"), "\n")
		if pid < 2 || pid > 4194304 || strconv.Itoa(pid) != strings.TrimRight(line, " \t\r") {
			t.Fatalf("%q is pid %d", text, pid)
		}
	})
}

// FuzzEnvFile: whatever a file has, only names that can be variables come out, none of Gozzard's own, and no NUL.
func FuzzEnvFile(f *testing.F) {
	z := fuzztest.New(f)
	for _, s := range []string{"A=1\n", "export A='x y'\n# no\n\nB=\"\"\n", "=x", "A", "A =1", "GOZZARD_RUN=1", "A=\x00", "Ä=1",
		"A=1\r\nB=2\r\n", "1A=2", "A=\"", "export =", "A=B=C"} {
		z.Add([]byte(s))
	}

	z.Fuzz(func(t *testing.T, text []byte) {
		all := map[string]string{}
		if host.ParseEnvFile(text, all) != nil {
			return
		}
		for name, value := range all {
			if !variable.MatchString(name) || strings.HasPrefix(name, "GOZZARD_") || strings.ContainsAny(value, "\x00\n") {
				t.Fatalf("%q: %q=%q", text, name, value)
			}
		}
	})
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
