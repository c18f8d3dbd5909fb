package agentd_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/agentd"
	"github.com/gozzard/gozzard/internal/agentsock"
)

// TestBounds: what an agent would refuse is known before a process is handed over to it.
func TestBounds(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: the policy must belong to the account of the agent")
	}
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte("users: [nobody]\ndeny_uids: \"\"\npath_prefixes: [/opt, /usr]\nops: [stop]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := agentd.FindBounds(agentsock.Status{Mode: "root", PID: os.Getpid(), Policy: agentsock.Policy{File: file}})
	if err != nil {
		t.Fatal(err)
	}

	// Everything that stands against a definition.
	s := &gozzard.Spec{Identity: gozzard.Identity{ProcName: "x", SetupPath: "/var", User: "daemon"},
		Exec: gozzard.Exec{Rlimits: map[string]gozzard.Rlimit{"nofile": {Soft: 1 << 40, Hard: 1 << 40}, "core": {}}}}
	r := b.Check("demo", s)
	if r == nil || !r.Limits {
		t.Fatalf("%+v", r)
	}
	all := strings.Join(r.Reasons, "\n")
	for _, want := range []string{"account daemon is not allowed", "folder /var is not allowed", "operation start is not allowed",
		"nofile 1099511627776 is above the hard limit"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
	want := "gozzard agent policy --policy " + file + " --allow-user daemon --allow-path /var"
	if got := b.Command(r.Flags); got != want || len(r.Lines) != 1 {
		t.Errorf("%s and %q, want %s", got, r.Lines, want)
	}
	if b.Allows("/") || b.Allows("/var") || !b.Allows("/usr/bin") {
		t.Error("folders")
	}

	// The account of the agent is known to a directory such as LDAP only: its number is used, as by the agent.
	const unknown = 4_000_000
	if err := os.Chown(file, unknown, unknown); err != nil {
		t.Fatal(err)
	}
	if _, err := agentd.FindBounds(agentsock.Status{Mode: "user", UID: unknown, PID: os.Getpid()}); err != nil {
		t.Errorf("an account without a name: %v", err)
	}
	if err := os.Chown(file, 0, 0); err != nil {
		t.Fatal(err)
	}

	// Nothing.
	if err := os.WriteFile(file, []byte("users: [daemon]\ndeny_uids: \"\"\npath_prefixes: [/var]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err = agentd.FindBounds(agentsock.Status{Mode: "root", PID: os.Getpid(), Policy: agentsock.Policy{File: file}}); err != nil {
		t.Fatal(err)
	}
	s.Exec.Rlimits = map[string]gozzard.Rlimit{"nofile": {Soft: 64, Hard: 64}}
	if r := b.Check("demo", s); r != nil {
		t.Errorf("%+v", r)
	}
}
