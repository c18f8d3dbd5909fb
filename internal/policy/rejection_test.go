//go:build linux

package policy_test

import (
	"strings"
	"testing"

	"github.com/gozzard/gozzard/internal/policy"
)

// TestAllReasons: a rejection has every reason in one line, and the command that it names allows the same definition.
func TestAllReasons(t *testing.T) {
	const text = "users: [daemon]\ndeny_uids: \"1-999,65534\"\npath_prefixes: [/opt]\nops: [start]\nmax_processes: 3\n"
	p, err := policy.Parse("/etc/gozzard/policy.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}

	s := spec("nobody", "/usr/share", "sleep 1")
	got := p.Definition("demo", s)
	wants(t, "uid", got, "account nobody with uid 65534 is not allowed by local policy (deny_uids in /etc/gozzard/policy.yaml)")
	wants(t, "users", got, "account nobody is not allowed by local policy (users in /etc/gozzard/policy.yaml)")
	wants(t, "folder", got, "folder /usr/share is not allowed by local policy (path_prefixes in /etc/gozzard/policy.yaml)")
	if strings.Contains(got.Error(), "\n") {
		t.Errorf("more than one line: %v", got)
	}

	wants(t, "command", got, "; otherwise, to allow it, the owner of the host runs: "+
		"gozzard agent policy --policy /etc/gozzard/policy.yaml --allow-user nobody --allow-path /usr/share")
	lines := strings.Join(policy.Choice{Users: []string{"nobody"}, Paths: []string{"/usr/share"}}.Missing(p), "\n")
	next, err := policy.Parse("/etc/gozzard/policy.yaml", []byte(lines+"\n"))
	if err != nil {
		t.Fatalf("the lines are not a policy: %v in %s", err, lines)
	}
	if err := next.Definition("demo", s); err != nil {
		t.Errorf("with the lines: %v", err)
	}
	if err := next.Definition("demo", spec("daemon", "/usr/share", "sleep 1")); err == nil {
		t.Error("the lines allow more than they should: uid 1 is denied still")
	}
}

// TestSaferFirst: a rejection names the way that needs no change of the policy before the line that allows more.
func TestSaferFirst(t *testing.T) {
	p, err := policy.Parse("f", []byte("users: ['*']\ndeny_uids: \"1-999\"\npath_prefixes: [/]\ntrusted_paths: false\n"))
	if err != nil {
		t.Fatal(err)
	}

	for name, err := range map[string]error{"root": p.Definition("demo", spec("root", "/opt", "true")),
		"daemon": p.Definition("demo", spec("daemon", "/opt", "true")), "none": p.Unnamed()} {
		if err == nil {
			t.Fatalf("%s is allowed", name)
		}
		safer, riskier := strings.Index(err.Error(), "; choose another account: user in the definition"),
			strings.Index(err.Error(), "; otherwise, to allow it, the owner of the host writes into this file: ")
		if name == "none" {
			safer = strings.Index(err.Error(), "; name its account: user in the definition")
		}
		if safer < 0 || riskier < safer {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReasonsHide: a caller that may not use root learns nothing about files that only root can see.
func TestReasonsHide(t *testing.T) {
	p, err := policy.Parse("/etc/gozzard/policy.yaml", []byte("path_prefixes: [/opt]\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := p.Definition("demo", spec("root", "/tmp", "./x.sh"))
	wants(t, "root", got, "(allow_root in /etc/gozzard/policy.yaml)")
	if strings.Contains(got.Error(), "trusted_paths") {
		t.Errorf("it says which folders of root are open: %v", got)
	}
}

// TestReasonsOfOthers: a text of a caller that is not plain is in no line to write.
func TestReasonsOfOthers(t *testing.T) {
	p := policy.Default()
	got := p.Definition("demo", spec("evil\"]\nallow_root: true #", "/tmp/\"]\nallow_root: true #", "x"))
	if got == nil || strings.Contains(got.Error(), "\n") || strings.Contains(got.Error(), "writes into this file") {
		t.Errorf("%v", got)
	}
}

// TestWholeHostIsNeverProposed: the folder / is the default of a definition that names none. The way out is another folder.
func TestWholeHostIsNeverProposed(t *testing.T) {
	p, err := policy.Parse("/etc/gozzard/policy.yaml", []byte("users: [nobody]\ndeny_uids: \"\"\npath_prefixes: [/opt, /srv]\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"", "/"} {
		got := p.Definition("demo", spec("nobody", folder, "sleep 1"))
		wants(t, folder, got, "folder / (the default if none is given) is not allowed by local policy (path_prefixes in "+
			"/etc/gozzard/policy.yaml); choose a folder below /opt, /srv: folder in the definition, or --dir FOLDER of gozzard run")
		if strings.Contains(got.Error(), "to allow it") {
			t.Errorf("%q: opens the whole host: %v", folder, got)
		}
	}
}

// TestUnknownAccountIsNotProposed: an account that the host does not have is not put into the policy.
func TestUnknownAccountIsNotProposed(t *testing.T) {
	p, err := policy.Parse("/etc/gozzard/policy.yaml", []byte("users: [nobody]\ndeny_uids: \"\"\npath_prefixes: [/]\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := p.Definition("demo", spec("wwwdata", "/", "sleep 1"))
	wants(t, "unknown", got, "account wwwdata is not allowed by local policy (users in /etc/gozzard/policy.yaml): "+
		"this host has no such account; choose another account: user in the definition")
	if strings.Contains(got.Error(), "to allow it") {
		t.Errorf("proposes it: %v", got)
	}
}

// TestCommandIsSafe: what a caller wrote means nothing to the shell that a person gives the command to.
func TestCommandIsSafe(t *testing.T) {
	p, err := policy.Parse("/etc/gozzard/policy.yaml", []byte("users: [nobody]\ndeny_uids: \"\"\npath_prefixes: [/opt]\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"/x;reboot", "/x$(reboot)", "/x,/", "/x`reboot`", "/x'", "/x*"} {
		if got := p.Definition("demo", spec("nobody", folder, "sleep 1")); got == nil || strings.Contains(got.Error(), "gozzard agent policy") {
			t.Errorf("%q is in a command: %v", folder, got)
		}
	}
	one := p.Definition("demo", spec("root", "/usr", "./x"))
	wants(t, "root", one, "the owner of the host runs: gozzard agent policy --policy /etc/gozzard/policy.yaml --allow-root")
	wants(t, "a file", p.File("shop", "nobody", "/srv/web/x", 1),
		"the owner of the host runs: gozzard agent policy --policy /etc/gozzard/policy.yaml --allow-files /srv/web")
	explained := policy.Explain(one)
	if explained == nil || len(explained.Reasons) < 2 || len(explained.Ways) != 2 || len(explained.Flags) != 2 {
		t.Errorf("%+v", explained)
	}
}
