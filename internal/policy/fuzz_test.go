package policy_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/policy"
	"github.com/gozzard/gozzard/test/fuzztest"
)

// FuzzParse: any bytes are a policy with absolute and clean paths, or an error that names the file.
func FuzzParse(f *testing.F) {
	z := fuzztest.New(f)
	z.Add([]byte("allow_root: false\nusers: [\"@gozzard\", www, '*']\ndeny_uids: \"1-999, 65534\"\npath_prefixes: [/opt, /srv/]\nshell: true\n" +
		"ops: [start, stop, restart, reload, kill]\nmax_processes: 2000\n"))
	z.Add([]byte("shell: false\nprograms: [/opt/app/bin/*, /usr/sbin/nginx]\nnamespaces: {\"shop*\": [shop], \"pay?\": [pay, '@pay']}\n"))
	z.Add([]byte("# all defaults\n"))
	z.Add([]byte("path_prefixes:\n- /\n- /opt/../etc\nusers: []\nallow_root: yes\n"))

	z.Fuzz(func(t *testing.T, src []byte) {
		p, err := policy.Parse("policy.yaml", src)
		if (p == nil) == (err == nil) {
			t.Fatalf("%v, %v", p, err)
		}

		if err != nil {
			if !strings.Contains(err.Error(), "policy.yaml") {
				t.Fatalf("which file? %v", err)
			}
			return
		}

		for _, path := range p.PathPrefixes {
			if !filepath.IsAbs(path) || filepath.Clean(path) != path {
				t.Fatalf("prefix %q", path)
			}
		}

		if p.Programs != nil && p.Shell {
			t.Fatal("a list of programs with a shell")
		}
		for _, r := range p.Namespaces {
			if r.Pattern == "" || r.Users == nil {
				t.Fatalf("rule %+v", r)
			}
			_ = p.Definition(strings.Repeat(r.Pattern, 3), &gozzard.Spec{})
		}

		for _, r := range p.DenyUIDs {
			if r.First > r.Last {
				t.Fatalf("range %+v", r)
			}
		}

		if p.MaxProcesses < 0 {
			t.Fatalf("%d processes", p.MaxProcesses)
		}
	})
}
