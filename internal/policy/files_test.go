package policy_test

import (
	"strings"
	"testing"

	"github.com/gozzard/gozzard/internal/policy"
)

// TestTT5FileRules: by default no file is allowed; the rules bound paths, owners and size.
func TestTT5FileRules(t *testing.T) {
	const accounts = "users: [nobody, daemon]\ndeny_uids: \"\"\n"
	parse := func(text string) *policy.Policy {
		t.Helper()
		p, err := policy.Parse("policy.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, c := range []struct {
		rules, account, path string
		size                 int64
		want                 string // in the error; "" means allowed
	}{
		{"", "nobody", "/data/app/x", 1, `file /data/app/x is not allowed by local policy (files in policy.yaml)`},
		{"", "nobody", "/data/app/x", 1, `files: {paths: ["/data/app"]}`},
		{"", "nobody", "/etc/passwd", 1, `(files in policy.yaml): allow a separate folder for it, not all of /etc`},
		{"files: {paths: [/data/app]}\n", "nobody", "/data/app/x", 1 << 20, ""},
		{"files: {paths: [/data/app/]}\n", "nobody", "/data/app/sub/x", 1, ""},
		{"files: {paths: [/data/app]}\n", "nobody", "/data/app", 1, "file /data/app is not allowed"},
		{"files: {paths: [/data/app]}\n", "nobody", "/data/application/x", 1, "is not allowed"},
		{"files: {paths: [/data/app]}\n", "nobody", "/data/app/../x", 1, "is not the clean path"},
		{"files: {paths: [/data/app]}\n", "nobody", "/data/app/x", 1<<20 + 1, "its max_size is 1048576"},
		{"files: {paths: [/data/app], owners: [daemon]}\n", "nobody", "/data/app/x", 1, "owners do not include"},
		{"files: {paths: [/data/app]}\n", "root", "/data/app/x", 1, "allow_root"},
		{"allow_root: true\nfiles: {paths: [/data/app]}\n", "root", "/data/app/x", 1,
			"its owners do not name root; choose another account: owner of the template, or --account NAME of gozzard file"},
		{"allow_root: true\nfiles: {paths: [/data/app], owners: [\"*\"]}\n", "root", "/data/app/x", 1, "do not name root"},
		{"allow_root: true\nfiles: {paths: [/data/app], owners: [root]}\n", "root", "/data/app/x", 1, ""},
		{"files: {paths: [/data/app]}\nnamespaces: {shop: [daemon]}\n", "nobody", "/data/app/x", 1, "for namespace shop"},
		{"files: {paths: [/]}\n", "bin", "/data/app/x", 1, "account bin is not allowed"},
	} {
		err := parse(accounts+c.rules).File("shop", c.account, c.path, c.size)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s %s %s %d: %v", c.rules, c.account, c.path, c.size, err)
		}
	}

	if err := policy.Everything().File("shop", "", "/data/x", 1); err != nil {
		t.Errorf("gozzard dev: %v", err)
	}
	if err := parse(policy.Permissive).File("shop", "root", "/data/x", 16<<20); err != nil {
		t.Errorf("the permissive policy: %v", err)
	}
}

// TestFileRulesAreParsedStrictly: rules that cannot be understood make the policy an error.
func TestFileRulesAreParsedStrictly(t *testing.T) {
	for text, want := range map[string]string{
		"files: [/etc]":                            "must be a mapping",
		"files: {}":                                "needs paths",
		"files: {owners: [x]}":                     "needs paths",
		"files: {paths: [etc]}":                    "clean absolute paths",
		"files: {paths: [/a/../b]}":                "clean absolute paths",
		"files: {paths: [/a], max_size: 0}":        "max_size",
		"files: {paths: [/a], max_size: 99999999}": "max_size",
		"files: {paths: [/a], owner: [x]}":         "is not a setting of files",
	} {
		if _, err := policy.Parse("policy.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
