//go:build linux

package policy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/policy"
)

// TE18: a definition without an account runs as the default account of the host, within all other settings, and never as
// root because an agent of root runs it.
func TestTE18DefaultAccountIsBounded(t *testing.T) {
	for _, tt := range []struct {
		rules, want string
	}{
		{`{users: [nobody], path_prefixes: ["/"]}`,
			"it names no account (user), and this host has no default account; name its account: user in the definition; " +
				"otherwise, to allow it, the owner of the host writes into this file: default_user: nobody"},
		{`{allow_root: true, users: ["*"], path_prefixes: ["/"]}`, "(default_user in"},
		{`{users: ["*"], default_user: nobody, path_prefixes: ["/"]}`, ""},
		{`{users: [daemon], default_user: nobody, path_prefixes: ["/"]}`, "account nobody is not allowed by local policy (users in"},
		{`{users: [nobody], default_user: nobody, deny_uids: "65534", path_prefixes: ["/"]}`, "(deny_uids in"},
		{`{users: ["*"], default_user: root, path_prefixes: ["/"]}`, "account root is not allowed by local policy (allow_root in"},
		{`{users: ["*"], default_user: root, allow_root: true, path_prefixes: ["/"]}`, ""},
		{`{users: ["*"], default_user: nobody, path_prefixes: ["/"], namespaces: {gse: [daemon]}}`, "(namespaces in"},
	} {
		p := parse(t, "%s", tt.rules)
		wants(t, tt.rules, p.Definition("gse", spec("", "/usr", "")), tt.want)
		r := policy.Reach{Rules: p, Mode: gozzard.ModeRoot, Account: "root"}
		wants(t, "in reach: "+tt.rules, r.Definition("gse", spec("", "/usr", "")), tt.want)
		wants(t, "named: "+tt.rules, r.Definition("gse", spec("bin", "/usr", "")), "account bin")
	}
}

// What definitions keep: the default account, but not the only account that the agent has.
func TestKeptAccount(t *testing.T) {
	for _, tt := range []struct {
		mode             gozzard.AgentMode
		rules, own       string
		account, keptAcc string
	}{
		{gozzard.ModeRoot, `users: ["*"]`, "root", "", ""},
		{gozzard.ModeRoot, `default_user: www`, "root", "www", "www"},
		{gozzard.ModeRoot, `default_user: root`, "root", "root", ""},
		{gozzard.ModeUser, `users: [me]`, "me", "me", ""},
		{gozzard.ModeUser, `users: ["*"]`, "me", "", ""},
		{gozzard.ModeCap, `users: [me]`, "me", "", ""},
		{gozzard.ModeCap, `default_user: me`, "me", "me", "me"},
	} {
		r := policy.Reach{Rules: parse(t, "%s", tt.rules), Mode: tt.mode, Account: tt.own, UID: 4242}
		if a, kept := r.DefaultAccount(), r.KeptAccount(); a != tt.account || kept != tt.keptAcc {
			t.Errorf("%s %s of %s: %q, kept %q", tt.mode, tt.rules, tt.own, a, kept)
		}
	}
}

func TestDefaultUserIsOneAccount(t *testing.T) {
	for _, text := range []string{`"*"`, `"@web"`, `""`, "[www]", "true", `"a b"`, `"a,b"`, `"a/b"`, "null"} {
		if _, err := policy.Parse("x", []byte("default_user: "+text+"\n")); err == nil ||
			!strings.Contains(err.Error(), "line 1: default_user must be the name of one account") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The choice of a person: the account is allowed with it, root only with the word for root.
func TestChosenDefaultAccount(t *testing.T) {
	path := filepath.Join(t.TempDir(), policy.FileName)
	for _, c := range []struct {
		choice policy.Choice
		want   string
	}{
		{policy.Choice{Default: "no-such-account"}, "--default-user no-such-account: this host has no such account"},
		{policy.Choice{Default: "root"}, "add --allow-root"},
		{policy.Choice{Default: "root", AllowRoot: true}, ""},
		{policy.Choice{Default: "nobody"}, ""},
	} {
		if err := c.choice.Check(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.choice, err)
		}
	}

	// The first policy has it, and a policy without it is made to fit.
	for _, c := range []policy.Choice{{}, {Default: "nobody"}} {
		if made, err := policy.Fit(path, c); err != nil || !made {
			t.Fatal(made, err)
		}
	}
	p, err := policy.Load(path, policy.TrustOwn)
	if err != nil || p.DefaultUser != "nobody" || !p.Names("nobody") {
		t.Errorf("%+v %v", p, err)
	}

	// One that a person has changed stays as it is, and the line is named.
	if err := os.WriteFile(path, []byte("users: [nobody]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := policy.Fit(path, policy.Choice{Default: "nobody"}); err == nil ||
		!strings.HasSuffix(err.Error(), "policy.yaml:\ndefault_user: nobody") {
		t.Error(err)
	}
}
