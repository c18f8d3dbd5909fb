//go:build linux

package fleettest_test

import (
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// TestFileReadsAreAudited: the audit says which contents a caller has seen, at once, by any door and also for former contents. A
// read that the host or the server rejects is not one.
func TestFileReadsAreAudited(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	conf := fileFolder(t, "nobody")
	state := t.TempDir()
	if err := os.WriteFile(state+"/policy.yaml", []byte(filesRules(conf)), 0o600); err != nil {
		t.Fatal(err)
	}
	s.StartAgentIn(t, 1, state, "")
	admin := &tenant{API: s.API, t: t}
	path := conf + "/web.conf"
	for _, content := range []string{"password = one\n", "password = two\n"} {
		if text := admin.put(write(path, "nobody", content, nil)); !strings.Contains(text, `"verdict":"done"`) {
			t.Fatal(text)
		}
	}

	// rows are the reads of an app.
	rows := func(app string) (texts []string) {
		t.Helper()
		var page struct {
			Rows []struct {
				Seq      int64    `json:"seq"`
				Act      string   `json:"act"`
				App      string   `json:"app"`
				Accounts []string `json:"accounts"`
			} `json:"rows"`
		}
		if status, text := admin.native(http.MethodGet, "/api/v1/audit?limit=1000&action=read:file", nil, &page); status != http.StatusOK {
			t.Fatal(text)
		}
		for _, r := range page.Rows {
			if r.App != app {
				continue
			}
			_, text := admin.native(http.MethodGet, "/api/v1/audit/"+strconv.FormatInt(r.Seq, 10), nil, nil)
			texts = append(texts, text)
		}
		return texts
	}
	reader := newTenant(t, s, "reader", ft.J{"role": "operator", "namespaces": []string{"shop"}, "hosts": "any",
		"accounts": []string{"nobody"}, "actions": []string{"configure"}})

	// What is rejected is no read, and a file that is not there has no content.
	reader.file("/etc/shadow", "nobody")
	reader.file(path, "daemon")
	reader.file(conf+"/none", "nobody")
	if got := rows("reader"); len(got) != 0 {
		t.Errorf("rows about nothing: %s", got)
	}

	// The file, and a former content of it.
	for i, c := range []struct{ kept, content string }{{"", "password = two\n"}, {gozzard.FileDigest([]byte("password = one\n")), "password = one\n"}} {
		status, text := reader.file(path, "nobody", "kept", c.kept)
		if status != http.StatusOK {
			t.Fatalf("%d %s", status, text)
		}
		got := rows("reader")
		if len(got) != i+1 {
			t.Fatalf("after %d reads: %s", i+1, got)
		}
		all := strings.Join(got, "\n")
		for _, want := range []string{path, gozzard.FileDigest([]byte(c.content)), "nobody", "127.0.0.1"} {
			if !strings.Contains(all, want) {
				t.Errorf("%q is missing in %s", want, all)
			}
		}
		if strings.Contains(all, "password") {
			t.Errorf("the audit has the content: %s", all)
		}
	}

	// The same again does not fill the audit.
	for range 20 {
		reader.file(path, "nobody")
	}
	if got := rows("reader"); len(got) > 4 { // a minute may end meanwhile
		t.Errorf("%d rows about equal reads", len(got))
	}
}
