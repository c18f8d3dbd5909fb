package host_test

import (
	"strings"
	"testing"

	"github.com/gozzard/gozzard/internal/host"
)

func TestSupportedOn(t *testing.T) {
	for _, system := range []string{"linux", "windows"} {
		if err := host.SupportedOn(system); err != nil {
			t.Errorf("%s: %v", system, err)
		}
	}

	for _, system := range []string{"darwin", "freebsd"} {
		err := host.SupportedOn(system)
		if err == nil {
			t.Errorf("%s is supported", system)
			continue
		}
		for _, want := range []string{system, "Linux and Windows only", "run the server and the command line here"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("no %q in %q", want, err)
			}
		}
	}
}
