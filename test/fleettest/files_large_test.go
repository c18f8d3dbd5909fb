//go:build linux

package fleettest_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// large makes a content of random bytes.
func large(seed uint64, size int) []byte {
	b := make([]byte, size)
	r := rand.NewChaCha8([32]byte{byte(seed)})
	_, _ = r.Read(b)
	return b
}

// TestLargeFiles writes contents that travel in parts, on two hosts, and reads them back. The policy of a host and the server limit
// their size.
func TestLargeFiles(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	conf := fileFolder(t, "nobody")
	for n, size := range []int{4 << 20, 1 << 20} {
		state := t.TempDir()
		rules := fmt.Sprintf("users: [nobody]\ndeny_uids: \"\"\nfiles: {paths: [%s], max_size: %d}\n", conf, size)
		if err := os.WriteFile(state+"/policy.yaml", []byte(rules), 0o600); err != nil {
			t.Fatal(err)
		}
		s.StartAgentIn(t, n+1, state, "")
	}
	admin := &tenant{API: s.API, t: t}
	path := conf + "/large.bin"
	put := func(content []byte, hosts ...int) string {
		t.Helper()
		body := write(path, "nobody", "", ft.J{"content_base64": base64.StdEncoding.EncodeToString(content)})
		delete(body, "content")
		var list []ft.J
		for _, n := range hosts {
			list = append(list, ft.J{"cloud": 0, "ip": fmt.Sprintf("127.0.0.%d", n)})
		}
		body["hosts"] = list
		return admin.put(body)
	}
	has := func(want []byte) {
		t.Helper()
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("the file has %d bytes with sha256 %s, %v; want %d", len(got), gozzard.FileDigest(got), err, len(want))
		}
	}

	// A content of many parts, and one of a part and a byte. The second host is the same machine, so it
	// has the second already.
	first, second := large(1, 3<<20+17), large(2, gozzard.MaxInlineBytes+1)
	if text := put(first, 1); !strings.Contains(text, "the file is new") {
		t.Fatalf("%.2000s", text)
	}
	has(first)
	if text := put(first, 1); !strings.Contains(text, "unchanged") {
		t.Errorf("%.2000s", text)
	}
	if text := put(second, 1); !strings.Contains(text, "replaced the content") {
		t.Errorf("%.2000s", text)
	}
	if text := put(second, 2); !strings.Contains(text, "unchanged") {
		t.Errorf("%.2000s", text)
	}
	has(second)

	// It can be read, and what it replaced can be written again.
	if status, text := admin.file(path, "nobody", "kept", gozzard.FileDigest(first)); status != http.StatusOK ||
		!strings.Contains(text, base64.StdEncoding.EncodeToString(first)) {
		t.Errorf("%d %.300s", status, text)
	}

	// Sizes: of the policy of the second host, and of the server.
	if text := put(first, 2); !strings.Contains(text, "its max_size is 1048576") || strings.Contains(text, `"verdict":"done"`) {
		t.Errorf("%.2000s", text)
	}
	has(second)
	if text := put(large(3, gozzard.MaxFileBytes+1), 1); !strings.Contains(text, "at most 16777216 are allowed") {
		t.Errorf("%.2000s", text)
	}

	// What failed can be repeated: the record has the content.
	if err := os.Chmod(conf, 0o777); err != nil {
		t.Fatal(err)
	}
	var made struct {
		Task string `json:"task_id"`
	}
	body := write(path, "nobody", "", ft.J{"content_base64": base64.StdEncoding.EncodeToString(first)})
	delete(body, "content")
	admin.native(http.MethodPut, "/api/v1/files", body, &made)
	if text := admin.settled(made.Task); !strings.Contains(text, "can be written by others") {
		t.Fatalf("%.2000s", text)
	}
	if err := os.Chmod(conf, 0o755); err != nil {
		t.Fatal(err)
	}
	if text := admin.operate(http.MethodPost, "/api/v1/tasks/"+made.Task+"/retry", ft.J{}); !strings.Contains(text, `"verdict":"done"`) {
		t.Errorf("%.2000s", text)
	}
	has(first)
}
