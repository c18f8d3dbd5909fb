//go:build linux

package fleettest_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// TestTI17ValuesOfTheEnvironment: variables of a definition are often secrets. A viewer and a caller that may only start
// ask for the definition by its names, by patterns and by what a change would do. Only a caller that may change the
// definition gets the values.
func TestTI17ValuesOfTheEnvironment(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	s.StartAgent(t, 1, "")
	grant := func(role string, more ft.J) ft.J {
		g := ft.J{"role": role, "namespaces": []string{"shop"}, "hosts": "any"}
		maps.Copy(g, more)
		return g
	}
	account := []string{"nobody"}
	owner := newTenant(t, s, "owner", grant("admin", ft.J{"accounts": account}))
	document := ft.J{"namespace": "shop", "name": "web", "hosts": []ft.J{{"cloud": 0, "ip": "127.0.0.1"}},
		"command": "sleep 1000", "folder": "/tmp", "user": "nobody", "env": ft.J{"PASSWORD": "tell-no-one"}}
	if text := owner.operate(http.MethodPut, "/api/v1/processes", document); !strings.Contains(text, `"done":1`) {
		t.Fatal(text)
	}
	if _, text := owner.native(http.MethodGet, "/api/v1/definitions?name=web", nil, nil); !strings.Contains(text,
		"tell-no-one") {
		t.Errorf("the owner does not see the definition: %s", text)
	}

	other := maps.Clone(document)
	other["env"], other["dry_run"] = ft.J{"PASSWORD": "guess"}, true
	for name, c := range map[string]*tenant{"viewer": newTenant(t, s, "viewer", grant("viewer", nil)),
		"starter": newTenant(t, s, "starter", grant("operator", ft.J{"accounts": account,
			"actions": []string{"start", "stop"}}))} {
		for _, path := range []string{"?name=web&namespace=shop", "?name=*", "?host=127.0.0.1", ""} {
			_, text := c.native(http.MethodGet, "/api/v1/definitions"+path, nil, nil)
			if strings.Contains(text, "tell-no-one") || !strings.Contains(text, `"PASSWORD":"***"`) {
				t.Errorf("%s, %q: %s", name, path, text)
			}
		}
		if _, text := c.native(http.MethodPut, "/api/v1/processes", other, nil); strings.Contains(text, "tell-no-one") {
			t.Errorf("%s sees the value by a dry run: %s", name, text)
		}
	}
}
