package policy_test

import (
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/policy"
)

// TestTT15ScriptRules: by default no script is allowed; the rules bound accounts, size and time.
func TestTT15ScriptRules(t *testing.T) {
	const accounts = "users: [nobody, daemon]\ndeny_uids: \"\"\n"
	parse := func(text string) *policy.Policy {
		t.Helper()
		p, err := policy.Parse("policy.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	script := func(size, seconds int) *gozzard.ScriptSpec {
		return &gozzard.ScriptSpec{Steps: []gozzard.ScriptStep{{Command: strings.Repeat("x", size), Seconds: seconds}}}
	}
	for _, c := range []struct {
		rules, account string
		size, seconds  int
		want           string // in the error; "" means allowed
	}{
		{"", "nobody", 1, 1, "a script as account nobody is not allowed by local policy (scripts in policy.yaml)"},
		{"", "nobody", 1, 1, `scripts: {accounts: ["nobody"]}`},
		{"scripts: {accounts: [nobody]}\n", "nobody", 64 << 10, 3600, ""},
		{"scripts: {accounts: [nobody]}\n", "nobody", 64<<10 + 1, 1, "its max_size is 65536"},
		{"scripts: {accounts: [nobody]}\n", "nobody", 1, 3601, "its max_seconds is 3600"},
		{"scripts: {accounts: [nobody], max_size: 10, max_seconds: 5}\n", "nobody", 10, 5, ""},
		{"scripts: {accounts: [nobody], max_size: 10, max_seconds: 5}\n", "nobody", 11, 6, "its max_seconds is 5"},
		{"scripts: {accounts: [nobody]}\n", "daemon", 1, 1, "accounts do not include this account"},
		{"scripts: {accounts: [bin]}\n", "bin", 1, 1, "account bin is not allowed"},
		{"scripts: {accounts: [nobody]}\nshell: false\n", "nobody", 1, 1, "a script is run by a shell"},
		{"scripts: {accounts: [nobody]}\nnamespaces: {shop: [nobody]}\n", "nobody", 1, 1, "for namespace gse-task"},
		{"allow_root: true\nscripts: {accounts: [\"*\"]}\n", "root", 1, 1, "do not name root"},
		{"scripts: {accounts: [root]}\n", "root", 1, 1, "allow_root"},
		{"allow_root: true\nscripts: {accounts: [root]}\n", "root", 1, 1, ""},
	} {
		err := parse(accounts+c.rules).Script("gse-task", c.account, script(c.size, c.seconds))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s %s %d %d: %v", c.rules, c.account, c.size, c.seconds, err)
		}
	}
	if err := parse(policy.Permissive).Script("gse-task", "root", script(1, 1)); err != nil {
		t.Errorf("the permissive policy: %v", err)
	}
}

// TestScriptRulesAreParsedStrictly: rules that cannot be understood make the policy an error.
func TestScriptRulesAreParsedStrictly(t *testing.T) {
	for text, want := range map[string]string{
		"scripts: true":                                 "must be a mapping",
		"scripts: {}":                                   "needs accounts",
		"scripts: {max_size: 5}":                        "needs accounts",
		"scripts: {accounts: [x], max_size: 0}":         "max_size must be",
		"scripts: {accounts: [x], max_seconds: 999999}": "max_seconds must be",
		"scripts: {accounts: [x], owners: [x]}":         "is not a setting of scripts",
	} {
		if _, err := policy.Parse("policy.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
