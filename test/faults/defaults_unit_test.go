//go:build linux

package faults_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// unitIsAsPromised: the packaged unit of the agent has every documented setting.
func unitIsAsPromised(t *testing.T, _ *plainFleet) {
	const promised = `KillMode=process Delegate=yes Restart=always RestartSec=2 OOMScoreAdjust=-900 LimitNOFILE=65536 NoNewPrivileges=no ProtectKernelModules=yes
		ProtectClock=yes RestrictRealtime=yes SystemCallArchitectures=native UMask=0077`
	b, err := os.ReadFile(filepath.Join("..", "..", "packaging", "gozzard-agent.service"))
	if err != nil {
		t.Fatal(err)
	}

	has, section := map[string]string{}, ""
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		key, value, ok := strings.Cut(line, "=")
		switch {
		case strings.HasPrefix(line, "["):
			section = line
		case ok && section == "[Service]" && line[0] != '#':
			if _, twice := has[key]; twice {
				t.Errorf("%s comes twice", key)
			}
			has[key] = value
		}
	}

	for setting := range strings.FieldsSeq(promised) {
		key, want, _ := strings.Cut(setting, "=")
		if got, ok := has[key]; !ok || got != want {
			t.Errorf("%s=%s, want %s", key, got, want)
		}
	}
}
