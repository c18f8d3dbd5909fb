//go:build linux

package faults_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// browsersAreHeld: outside of the console and the documentation, an answer allows a browser to run, frame or load nothing. The console runs its
// own files only, cannot be framed, and sets no cookie before a sign-in. The documentation runs nothing. What a browser sends by itself for another site
// gives no access.
func browsersAreHeld(t *testing.T, f *plainFleet) {
	for _, path := range []string{"/", "/console/", "/console/processes"} {
		a := f.ask(t, "GET", path, nil)
		csp := a.header.Get("Content-Security-Policy")
		if !strings.HasPrefix(csp, "default-src 'none'; script-src 'self'; ") || strings.Contains(csp, "unsafe") ||
			!strings.Contains(csp, "frame-ancestors 'none'") || strings.Contains(csp, "*") {
			t.Errorf("GET %s: Content-Security-Policy %q", path, csp)
		}
		if cookie := a.header.Get("Set-Cookie"); cookie != "" || strings.Contains(a.body, "<script>") {
			t.Errorf("GET %s: cookie %q, %.300s", path, cookie, a.body)
		}
	}

	for _, path := range []string{"/docs/en/", "/docs/zh/install", "/docs/en/search?q=%3Cscript%3E", "/docs/en/nothing", "/docs/style.css"} {
		a := f.ask(t, "GET", path, nil)
		csp := a.header.Get("Content-Security-Policy")
		if !strings.HasPrefix(csp, "default-src 'none'; style-src 'self'; img-src 'self'; ") || strings.Contains(csp, "script") ||
			a.header.Get("Set-Cookie") != "" || strings.Contains(a.body, "<script") {
			t.Errorf("GET %s: Content-Security-Policy %q, %.300s", path, csp, a.body)
		}
	}

	for _, path := range []string{"/healthz", "/index.html", "/login/oidc", "/api/v1/hosts",
		"/api/c/compapi/v2/gse/get_agent_status/", "/nothing"} {
		for _, a := range []httpAnswer{f.ask(t, "GET", path, nil), f.admin(t, "GET", path, nil)} {
			if csp := a.header.Get("Content-Security-Policy"); csp != "default-src 'none'; frame-ancestors 'none'" {
				t.Errorf("GET %s: Content-Security-Policy %q", path, csp)
			}
			if kind := a.header.Get("Content-Type"); strings.Contains(kind, "html") || strings.Contains(a.body, "<") {
				t.Errorf("GET %s: %s %.200s", path, kind, a.body)
			}
			if cookie := a.header.Get("Set-Cookie"); cookie != "" {
				t.Errorf("GET %s sets %q", path, cookie)
			}
		}
	}

	secret := strings.TrimSpace(f.gozzard(t, "app", "create", "portal"))
	f.gozzard(t, "user", "create", "alice", "--role", "operator", "--account", "*")
	token := strings.TrimSpace(f.gozzard(t, "user", "token", "create", "alice", "--for-app", "portal"))
	from := func(origin string) string {
		body, err := json.Marshal(map[string]any{"bk_app_code": "portal", "bk_app_secret": secret,
			"meta": map[string]any{"namespace": "gse"},
			"page": map[string]any{"start": 0, "limit": 1}})
		if err != nil {
			t.Fatal(err)
		}
		return f.ask(t, "POST", "/api/c/compapi/v2/gse/sync_proc_status/", strings.NewReader(string(body)), "Cookie",
			"bk_token="+token, "Origin", origin).body
	}

	if a := from(f.cred.URL); !strings.Contains(a, `"result":true`) {
		t.Errorf("a browser's login from this address: %s", a)
	}
	if a := from("https://evil.example.com"); !strings.Contains(a, `"result":false`) ||
		!strings.Contains(a, "another site") {
		t.Errorf("a browser's login from a page of another site: %s", a)
	}
}
