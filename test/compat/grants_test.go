//go:build linux

package compat_test

import (
	"os/exec"
	"strings"
	"testing"
)

// resolve gives the grants of the old program their hosts and accounts. A server that finds such grants does not start:
// it prints one command for each. The accounts are all of them, as before.
func (s *server) resolve(t *testing.T, want int) {
	t.Helper()
	cmd := exec.Command(binaryOf(t), s.args...)
	cmd.Env = environment()
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "grants of an older version would mean something else now") {
		t.Fatalf("the server with grants of an older version ended with %v:\n%s", err, out)
	}

	commands := 0
	for _, line := range strings.Split(string(out), "\n") {
		words := strings.Fields(line)
		if len(words) < 3 || words[0] != "gozzard" || words[1] != "grant" || words[2] != "resolve" {
			continue
		}
		commands++
		for i, word := range words {
			if word == "ACCOUNT" {
				words[i] = "*,root"
			}
		}
		left := must(t, nil, words[1:]...)
		if n := strings.Count(left, "grant resolve"); n != want-commands {
			t.Errorf("after %d of %d grants, %d are left:\n%s", commands, want, n, left)
		}
	}
	if commands != want {
		t.Fatalf("%d commands were printed, not %d:\n%s", commands, want, out)
	}

	must(t, nil, "audit", "verify", "--data", s.data)
	list := must(t, nil, "audit", "list", "--data", s.data)
	if n := strings.Count(list, "grant:resolve"); n != want {
		t.Errorf("%d rows of the audit, not %d:\n%s", n, want, list)
	}
}

// unresolved removes from an answer what resolve has added to the record: the hosts and accounts of grants that had
// none, and the rows of the audit about it. Everything else in the answer is compared.
func unresolved(v any) any {
	switch v := v.(type) {
	case map[string]any:
		_, businesses := v["businesses"]
		_, namespaces := v["namespaces"]
		if _, grant := v["role"]; grant && (businesses || namespaces) {
			delete(v, "hosts")
			delete(v, "accounts")
		}
		for k := range v {
			v[k] = unresolved(v[k])
		}
		if rows, ok := v["rows"].([]any); ok && v["head"] != nil && len(rows) > 0 {
			last, _ := rows[len(rows)-1].(map[string]any)
			v["head"] = map[string]any{"hash": last["hash"], "seq": last["seq"]} // the chain was verified before
		}
	case []any:
		kept := v[:0]
		for _, e := range v {
			row, _ := e.(map[string]any)
			if act, _ := row["act"].(string); !strings.HasPrefix(act, "grant:resolve ") {
				kept = append(kept, unresolved(e))
			}
		}
		return kept
	}
	return v
}
