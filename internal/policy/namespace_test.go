//go:build linux

package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/policy"
)

func TestNamespaces(t *testing.T) {
	const rest = `, default_user: root, users: ["*"], deny_uids: "", allow_root: true, trusted_paths: false, path_prefixes: ["/"]}`
	for _, tt := range []struct {
		rules, namespace, user string
		good                   bool
	}{
		{`{"shop*": [nobody], "pay?": [daemon, bin]}`, "shop", "nobody", true},
		{`{"shop*": [nobody], "pay?": [daemon, bin]}`, "shop-eu", "nobody", true},
		{`{"shop*": [nobody], "pay?": [daemon, bin]}`, "pay1", "bin", true},
		{`{"shop*": [nobody], "pay?": [daemon, bin]}`, "shop", "daemon", false},
		{`{"shop*": [nobody], "pay?": [daemon, bin]}`, "pay", "daemon", false},
		{`{"shop*": [nobody], "pay?": [daemon, bin]}`, "pay12", "daemon", false},
		{`{"shop*": [nobody], "pay?": [daemon, bin]}`, "Shop", "nobody", false},
		{`{"shop*": [nobody], "pay?": [daemon, bin]}`, "", "nobody", false},
		{`{"shop*": [nobody], "pay?": [daemon, bin]}`, "shop", "root", false},
		{`{"shop*": [nobody], "pay?": [daemon, bin]}`, "shop", "", false}, // the default account, which is root here
		{`{"shop*": [nobody], "pay?": [daemon, bin]}`, "shop", "65534", false},
		{`{"shop*": [nobody], "pay?": [daemon, bin]}`, "shop", "nobody ", false},
		{`{"shop*": [nobody], "s*p": [daemon]}`, "shop", "daemon", true}, // all patterns that match
		{`{"shop*": [nobody], "s*p": [daemon]}`, "shop", "nobody", true},
		{`{"*": [daemon], shop: [nobody]}`, "shop", "daemon", false}, // * is for the rest only
		{`{"*": [daemon], shop: [nobody]}`, "other", "daemon", true},
		{`{"*": [daemon], shop: [nobody]}`, "other", "nobody", false},
		{`{shop: ["*"]}`, "shop", "nobody", true},
		{`{shop: ["*"]}`, "shop", "root", false}, // root only by its name
		{`{shop: ["*"]}`, "shop", "", false},
		{`{shop: [root]}`, "shop", "root", true},
		{`{shop: [root]}`, "shop", "", true},
		{`{shop: ["@nogroup"]}`, "shop", "nobody", true},
		{`{shop: []}`, "shop", "nobody", false},
		{`{}`, "shop", "nobody", false},
	} {
		want := ""
		if !tt.good {
			want = fmt.Sprintf("is not allowed by local policy (%s in", "namespaces")
		}
		p := parse(t, "{namespaces: %s%s", tt.rules, rest)
		wants(t, fmt.Sprintf("%s: %s as %q", tt.rules, tt.namespace, tt.user),
			p.Definition(tt.namespace, spec(tt.user, "/opt", "")), want)
	}

	// The other settings count too.
	p := parse(t, `{namespaces: {"*": [nobody, daemon, root]}, users: [nobody, daemon]}`)
	wants(t, "root", p.Definition("a", spec("root", "/opt", "")), "(allow_root in")
	wants(t, "daemon", p.Definition("a", spec("daemon", "/opt", "")), "(deny_uids in")
	wants(t, "nobody", p.Definition("a", spec("nobody", "/opt", "")), "")
	if s := parse(t, `namespaces: {"shop*": [shop], "pay?": [pay, pay2]}`).String(); !strings.HasSuffix(s,
		"; namespaces: shop* as shop, pay? as pay or pay2") {
		t.Error(s)
	}
}

func TestNamespacesAreParsedStrictly(t *testing.T) {
	var many, users strings.Builder
	for i := range 1025 {
		fmt.Fprintf(&many, "  n%d: [a]\n", i)
		fmt.Fprintf(&users, "a%d, ", i)
	}

	for src, want := range map[string]string{
		"namespaces:\n":                                      "line 1: namespaces must be a mapping from patterns",
		"namespaces: [shop]\n":                               "line 1: namespaces must be a mapping from patterns",
		"namespaces:\n  shop: web\n":                         "line 2: shop must be a list",
		"namespaces:\n  shop:\n":                             "line 2: shop must be a list",
		"namespaces:\n  shop: ['a b']\n":                     "line 2: shop must be accounts",
		"namespaces:\n  shop: [{user: a}]\n":                 "line 2: shop must be accounts",
		"namespaces:\n  shop: [a]\n  shop: [b]\n":            "given twice",
		"namespaces:\n  'a b': [a]\n":                        "line 2: namespaces has a pattern",
		"namespaces:\n  'a**': [a]\n":                        "line 2: namespaces has a pattern",
		"namespaces:\n  '': [a]\n":                           "line 2: namespaces has a pattern",
		"namespaces: {" + strings.Repeat("x", 65) + ": [a]}": "line 1: namespaces has a pattern",
		"namespaces:\n" + many.String():                      "has 1025 patterns, at most 1024 are allowed",
		"namespaces: {a: [" + users.String() + "b]}":         "has 1026 entries, at most 1024 are allowed",
	} {
		if _, err := policy.Parse("/p.yaml", []byte(src)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %s", src, err, want)
		}
	}

	p := parse(t, "namespaces:\n  z: [a]\n  a: [b, c]\n  '*': ['@d']\n")
	if len(p.Namespaces) != 3 || p.Namespaces[0].Pattern != "z" || p.Namespaces[1].Pattern != "a" ||
		len(p.Namespaces[1].Users) != 2 {
		t.Errorf("not in the order of the file: %+v", p.Namespaces)
	}
}

// A definition without an account means the default account, for the namespaces too.
func TestNamespacesWithinReach(t *testing.T) {
	r := policy.Reach{Rules: parse(t, `{namespaces: {shop: [nobody], pay: [root]}, users: ["*"], allow_root: true, default_user: root,
		path_prefixes: ["/"]}`), Mode: gozzard.ModeCap, Account: "daemon", UID: 1}
	wants(t, "root by nothing", r.Definition("shop", spec("", "/usr", "")), "account root for namespace shop")
	wants(t, "root", r.Definition("pay", spec("", "/usr", "")), "")
}
