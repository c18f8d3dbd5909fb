package main

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/internal/policy"
)

// unitFile reads a systemd unit: section, key, values in order.
func unitFile(t *testing.T, name string) map[string]map[string][]string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "packaging", name))
	if err != nil {
		t.Fatal(err)
	}

	key := regexp.MustCompile(`^[A-Z][A-Za-z0-9]+$`)
	unit, section := map[string]map[string][]string{}, ""
	for n, line := range strings.Split(string(b), "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[' && strings.HasSuffix(line, "]"):
			section = strings.Trim(line, "[]")
			if unit[section] != nil {
				t.Errorf("%s:%d: section %s comes twice", name, n+1, section)
			}
			unit[section] = map[string][]string{}
		default:
			k, v, ok := strings.Cut(line, "=")
			if !ok || !key.MatchString(k) || section == "" {
				t.Fatalf("%s:%d: %q is no setting", name, n+1, line)
			}
			if unit[section][k] != nil && k != "ConditionPathExists" { // a list of alternatives
				t.Errorf("%s:%d: %s comes twice", name, n+1, k)
			}
			unit[section][k] = append(unit[section][k], v)
		}
	}

	return unit
}

// agentUnit is the settings that the units of an agent share, with those of one mode added.
func agentUnit(special map[string]string) map[string]string {
	want := map[string]string{
		"Type": "notify", "TimeoutStartSec": "infinity", // a wrong setting fails the start (TestReadyForSystemd)
		"KillMode": "process", "Delegate": "yes", "Restart": "always", "RestartSec": "2", "OOMScoreAdjust": "-900",
		"LimitNOFILE": "65536", "UMask": "0077",
		"ProtectKernelModules": "yes", "ProtectClock": "yes", "RestrictRealtime": "yes",
		"SystemCallArchitectures": "native",
		"ProtectKernelLogs":       "yes", "ProtectKernelTunables": "yes", "ProtectHostname": "yes", "LockPersonality": "yes",
		"KeyringMode": "private", "SystemCallFilter": "~@reboot @swap @raw-io @cpu-emulation @obsolete",
		"SystemCallErrorNumber": "EPERM", "ReadOnlyPaths": "-/etc/gozzard",
		"StateDirectory": "gozzard-agent", "StateDirectoryMode": "0700",
		"ExecReload": "/bin/kill -USR2 $MAINPID", "OOMPolicy": "continue",
	}
	maps.Copy(want, special)
	return want
}

func TestUnits(t *testing.T) {
	const caps = "CAP_SETUID CAP_SETGID CAP_KILL"
	for name, want := range map[string]map[string]string{
		"gozzard-agent.service": agentUnit(map[string]string{"User": "root", "NoNewPrivileges": "no"}),
		"gozzard-agent-cap.service": agentUnit(map[string]string{"User": "gozzard", "NoNewPrivileges": "yes",
			"AmbientCapabilities": caps, "CapabilityBoundingSet": caps,
			"ExecStart": "/usr/bin/gozzard agent --config /etc/gozzard/agent.yaml --data /var/lib/gozzard-agent " +
				"--policy /etc/gozzard/policy.yaml"}),
		"gozzard-agent-user.service": agentUnit(map[string]string{"User": "gozzard", "NoNewPrivileges": "yes",
			"AmbientCapabilities": "", "CapabilityBoundingSet": ""}),
		"gozzard-server.service": {
			"Type": "notify", "TimeoutStartSec": "infinity",
			"Restart": "always", "RestartSec": "2", "LimitNOFILE": "65536", "UMask": "0077", "NoNewPrivileges": "yes",
			"ProtectSystem": "strict",
			"User":          "gozzard-server", "Group": "gozzard-server",
			"StateDirectory": "gozzard", "StateDirectoryMode": "0700", "SystemCallArchitectures": "native",
		},
		"gozzard-relay.service": {
			"Restart": "always", "RestartSec": "2", "LimitNOFILE": "131072", "UMask": "0077", "NoNewPrivileges": "yes",
			"ProtectSystem": "strict", "CapabilityBoundingSet": "",
			"User": "gozzard-relay", "Group": "gozzard-relay",
			"StateDirectory": "gozzard-relay", "StateDirectoryMode": "0700", "SystemCallArchitectures": "native",
		},
	} {
		t.Run(name, func(t *testing.T) {
			unit := unitFile(t, name)
			for k, v := range want {
				if got, ok := unit["Service"][k]; !ok || strings.Join(got, "\n") != v {
					t.Errorf("%s=%s, want %s", k, got, v)
				}
			}

			// It forbids clone3, and then the agent cannot start a command inside of its cgroup (make test-systemd).
			if _, ok := unit["Service"]["RestrictNamespaces"]; ok && strings.HasPrefix(name, "gozzard-agent") {
				t.Error("RestrictNamespaces switches the cgroups of an agent off")
			}

			if unit["Install"]["WantedBy"] == nil || unit["Unit"]["Description"] == nil {
				t.Error("cannot be enabled, or says nothing")
			}

			start := unit["Service"]["ExecStart"]
			if len(start) != 1 || !strings.HasPrefix(start[0], "/usr/bin/gozzard ") {
				t.Fatalf("ExecStart is %q", start)
			}

			cmd, flags, err := newRoot().Find(strings.Fields(start[0])[1:])
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.ParseFlags(flags); err != nil {
				t.Errorf("ExecStart: %v", err)
			}

			verifyUnit(t, name)
			checkExposure(t, name)
		})
	}
}

// The policy beside the units is the one that a host gets by itself.
func TestPackagedPolicy(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "packaging", policy.FileName))
	if err != nil {
		t.Fatal(err)
	}
	got, err := policy.Parse(policy.FileName, b)
	if err != nil {
		t.Fatal(err)
	}
	if want := policy.Default(); got.String() != want.String() || !slices.Equal(got.DenyUIDs, want.DenyUIDs) ||
		got.TrustedPaths != want.TrustedPaths {
		t.Errorf("%s, want %s", got, want)
	}
}

// mostExposed is the largest exposure of each unit by the measure of systemd, in tenths. The agent of root may not do
// less: its services are arbitrary programs. Half a point of the other agents is RestrictNamespaces, which an agent
// cannot have.
var mostExposed = map[string]string{"gozzard-agent.service": "75", "gozzard-agent-cap.service": "54",
	"gozzard-agent-user.service": "49", "gozzard-server.service": "20", "gozzard-relay.service": "20"}

// checkExposure asks systemd, where it is installed, how much a unit leaves open.
func checkExposure(t *testing.T, name string) {
	tool, err := exec.LookPath("systemd-analyze")
	if errors.Is(err, exec.ErrNotFound) {
		t.Log("no systemd-analyze here")
		return
	}
	if help, err := exec.Command(tool, "--help").Output(); err != nil || !strings.Contains(string(help), "--offline") {
		t.Logf("this systemd-analyze cannot read a file: %v", err)
		return
	}

	out, err := exec.Command(tool, "security", "--no-pager", "--offline=true", "--threshold="+mostExposed[name],
		filepath.Join("..", "..", "packaging", name)).CombinedOutput()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		t.Errorf("more exposed than %s tenths: %v %s", mostExposed[name], err, lines[len(lines)-1])
	}
}

// verifyUnit asks systemd itself, where it is installed, with a program in the place of ours that exists here.
func verifyUnit(t *testing.T, name string) {
	tool, err := exec.LookPath("systemd-analyze")
	if errors.Is(err, exec.ErrNotFound) {
		t.Log("no systemd-analyze here")
		return
	}

	b, err := os.ReadFile(filepath.Join("..", "..", "packaging", name))
	if err != nil {
		t.Fatal(err)
	}

	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(b), "/usr/bin/gozzard", "/bin/true")),
		0o644); err != nil {
		t.Fatal(err)
	}

	out, err := exec.Command(tool, "verify", "--recursive-errors=no", path).CombinedOutput()
	for line := range strings.Lines(string(out)) { // other units of the machine are not ours
		if strings.Contains(line, name) {
			t.Errorf("systemd-analyze: %s", line)
		}
	}

	t.Logf("systemd-analyze: %v %s", err, out)
}
