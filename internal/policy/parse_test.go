package policy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/policy"
)

var ignoreFile = cmpopts.IgnoreUnexported(policy.Policy{})

func TestParse(t *testing.T) {
	p, err := policy.Parse("/etc/policy.yaml", []byte(`# what
allow_root: true
users: [deploy, "@web", "*"]
deny_uids: "1-99, 65534"
path_prefixes:
  - /opt/
  - /data/app
trusted_paths: false
shell: false
ops: [start, query]
max_processes: 7
agent_restart: false
`))
	if err != nil {
		t.Fatal(err)
	}

	want := &policy.Policy{
		AllowRoot: true, Users: []string{"deploy", "@web", "*"},
		DenyUIDs:     []policy.UIDRange{{First: 1, Last: 99}, {First: 65534, Last: 65534}},
		PathPrefixes: []string{"/opt", "/data/app"}, Ops: []gozzard.Action{gozzard.ActionStart, gozzard.ActionQuery},
		MaxProcesses: 7,
	}
	if d := cmp.Diff(want, p, ignoreFile); d != "" {
		t.Error(d)
	}
}

// A setting that is not in the file has the documented default. The default rejects root.
func TestParseNothingIsTheDefault(t *testing.T) {
	for _, src := range []string{"", "# only words\n", "{}"} {
		p, err := policy.Parse("x", []byte(src))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(policy.Default(), p, ignoreFile); d != "" {
			t.Error(d)
		}
	}

	want := "root refused; other accounts: @gozzard; folders: /opt, /srv, /data, /usr/local, /home; all operations; shell commands; at most 2000 processes"
	if got := policy.Default().String(); got != want {
		t.Errorf("%s", got)
	}
}

func TestPermissiveIsEverything(t *testing.T) {
	p, err := policy.Parse("x", []byte(policy.Permissive))
	if err != nil {
		t.Fatal(err)
	}
	want := policy.Everything()
	want.DefaultUser = "root" // of an agent of root; Everything means the account of the agent
	if d := cmp.Diff(want, p, ignoreFile); d != "" {
		t.Error(d)
	}
}

func TestParseRefusesWithLines(t *testing.T) {
	for _, tt := range []struct {
		src   string
		words []string
	}{
		{"allow_root: yes\n", []string{"line 1: allow_root must be true or false"}},
		{"allow_root: \"true\"\n", []string{"line 1: allow_root must be true or false"}},
		{"shell:\n", []string{"line 1: shell must be true or false"}},
		{"# a\nalow_root: true\n", []string{`line 2: "alow_root" is not a setting; the settings are allow_root, default_user, users,`}},
		{"agent_restart: maybe\n", []string{"line 1: agent_restart must be true or false"}},
		{"release_key: release.pub\nallow_downgrade: 1\n",
			[]string{"line 1: release_key must be the clean absolute path of a file", "line 2: allow_downgrade must be true or false"}},
		{"users: root\n", []string{"line 1: users must be a list, is a text"}},
		{"users:\n", []string{"line 1: users must be a list, is nothing"}},
		{"users:\n  - a b\n  - '@'\n  - '@*'\n  - true\n",
			[]string{"line 2: users must", "line 3: users must", "line 4: users must", "line 5: users must"}},
		{"path_prefixes: [opt, /a/../b, '']\n", []string{"line 1: path_prefixes must be clean absolute paths of folders"}},
		{"ops: [start, register, fly]\n", []string{"line 1: ops can have start, stop, restart"}},
		{"deny_uids: 999-1\n", []string{"line 1: deny_uids must be"}},
		{"deny_uids: [1]\n", []string{"line 1: deny_uids must be"}},
		{"deny_uids: '1-'\n", []string{"line 1: deny_uids must be"}},
		{"deny_uids: '-5'\n", []string{"line 1: deny_uids must be"}},
		{"deny_uids: '4294967296'\n", []string{"line 1: deny_uids must be"}},
		{"max_processes: -1\n", []string{"line 1: max_processes must be"}},
		{"max_processes: 1e9\n", []string{"line 1: max_processes must be"}},
		{"shell: true\nshell: false\n", []string{"line 2", "given twice"}},
		{"a: &x 1\n", []string{"line 1: anchors"}},
		{"- allow_root\n", []string{"line 1: the policy must be a mapping"}},
		{"allow_root: 1\nmax_processes: x\n", []string{"line 1: allow_root", "line 2: max_processes"}},
		{strings.Repeat("#", policy.MaxSize+1), []string{"at most 65536 are allowed"}},
	} {
		_, err := policy.Parse("/p.yaml", []byte(tt.src))
		if err == nil {
			t.Errorf("%q was taken", tt.src)
			continue
		}
		for _, w := range append(tt.words, "policy /p.yaml") {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q: %v, want %q", tt.src, err, w)
			}
		}
	}
}
