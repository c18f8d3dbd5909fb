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

// The policy does not enable an agent to do more than its account can, and what the account can do is not always
// allowed.
func TestReachOfModes(t *testing.T) {
	const all = `{users: ["*"], deny_uids: "", path_prefixes: ["/"]}`
	const root = `{allow_root: true, users: ["*"], deny_uids: "", path_prefixes: ["/"], trusted_paths: false}`
	const outside = "this agent runs as nobody in mode user; name that account, or run the agent as root (gozzard-agent.service) or with capabilities (gozzard-agent-cap.service)"
	for _, tt := range []struct {
		mode              gozzard.AgentMode
		rules, user, want string
	}{
		{gozzard.ModeUser, all, "nobody", ""},
		{gozzard.ModeUser, root, "root", "permission: account root cannot be used: " + outside},
		{gozzard.ModeUser, root, "daemon", "permission: account daemon cannot be used: " + outside},
		{gozzard.ModeUser, root, "no-such\naccount",
			`permission: account "no-such\naccount" cannot be used: ` + outside},
		{gozzard.ModeUser, root, strings.Repeat("é", 4000), outside},
		{gozzard.ModeUser, root, "", "permission: the definition names no account: " + outside},
		{gozzard.ModeUser, `{users: [nobody], path_prefixes: ["/"]}`, "", ""}, // there is no other account
		{gozzard.ModeUser, `{users: ["*"], default_user: daemon}`, "", "account daemon cannot be used: " + outside},
		{gozzard.ModeUser, `{users: [daemon], path_prefixes: ["/"]}`, "nobody",
			"account nobody is not allowed by local policy (users in"},
		{gozzard.ModeCap, all, "daemon", ""},
		{gozzard.ModeCap, all, "root", "account root is not allowed by local policy (allow_root in"},
		{gozzard.ModeCap, all, "", "is not allowed by local policy (default_user in"},
		{gozzard.ModeCap, root, "root", ""},
		{gozzard.ModeCap, root, "", "(default_user in"},
		{gozzard.ModeCap, root, "nobody", "permission: account nobody is the agent's own, in mode cap"},
		{gozzard.ModeCap, `{users: ["@nogroup"], path_prefixes: ["/"]}`, "nobody", "is the agent's own"},
		{gozzard.ModeCap, `{users: [nobody], path_prefixes: ["/"]}`, "nobody", ""}, // the owner has listed it by name
		{gozzard.ModeCap, `{users: [nobody], path_prefixes: ["/"]}`, "", "(default_user in"},
		{gozzard.ModeRoot, root, "", "(default_user in"},
		{gozzard.ModeRoot, all, "nobody", ""},
		{gozzard.ModeRoot, all, "root", "(allow_root in"},
	} {
		r := policy.Reach{Rules: parse(t, "%s", tt.rules), Mode: tt.mode, Account: "nobody", UID: 65534}
		err := r.Definition("gse", spec(tt.user, "/", ""))
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) || err != nil &&
			strings.ContainsRune(err.Error(), '\n') {
			t.Errorf("%s %s as %.20q: %v, want %s", tt.mode, tt.rules, tt.user, err, tt.want)
		}
	}

	self := policy.Reach{Rules: policy.Everything(), Mode: gozzard.ModeUser, Account: "nobody", UID: 65534}

	if err := self.Definition("gse", spec("", "/", "")); err != nil { // Everything: no account means the agent's account
		t.Error(err)
	}

	if err := self.Definition("gse", spec("daemon", "/", "")); err == nil {
		t.Error("another account is out of reach there, too")
	}
}

// In mode cap the policy limits what the agent's account can become, so that account must not be able to change it.
func TestTrust(t *testing.T) {
	needsRoot(t)

	if policy.TrustBounds(gozzard.ModeCap) != policy.TrustRoot ||
		policy.TrustState(gozzard.ModeCap) != policy.TrustOwnWay ||
		policy.TrustBounds(gozzard.ModeUser) != policy.TrustOwn ||
		policy.TrustState(gozzard.ModeRoot) != policy.TrustOwn {
		t.Error("modes trust others than they should")
	}

	dir := t.TempDir()
	path := filepath.Join(dir, "in", policy.FileName)
	if err := errorsJoin(os.Mkdir(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	if err := policy.TrustRoot.Check(path); err != nil {
		t.Errorf("of root: %v", err)
	}

	for _, theirs := range []string{path, filepath.Dir(path), dir} {
		if err := os.Chown(theirs, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		if err := policy.TrustRoot.Check(path); err == nil ||
			!strings.Contains(err.Error(), theirs+" belongs to uid 65534; only root may be able") {
			t.Errorf("%s: %v", theirs, err)
		}
		if err := os.Chown(theirs, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
}
