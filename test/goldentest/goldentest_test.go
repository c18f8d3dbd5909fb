package goldentest_test

import (
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"os"
	"testing"

	"github.com/gozzard/gozzard/test/goldentest"
)

// echo answers with what it was asked, and with its request id if it has one.
func echo(id string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if id != "" {
			w.Header().Set("X-Bkapi-Request-Id", id)
		}
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusAccepted)
		_ = json.NewEncoder(w).Encode([]string{r.Method, r.URL.Path, r.Header.Get("X-Key"), string(body), id})
	})
}

func TestSend(t *testing.T) {
	for _, c := range []struct {
		about string
		id    string
		send  goldentest.Case
		want  string
	}{
		{"without a method, and an id", "f00d", goldentest.Case{Path: "/a", Body: json.RawMessage(`1`)},
			`["POST","/a","","1","00000000000000000000000000000000"]`},
		{"a header", "f00d", goldentest.Case{Method: "PUT", Path: "/a", Headers: map[string]string{"X-Key": "k"}},
			`["PUT","/a","k","","00000000000000000000000000000000"]`},
		{"a door without ids", "", goldentest.Case{Method: "GET", Path: "/a"}, `["GET","/a","","",""]`},
	} {
		status, answer := c.send.Send(echo(c.id))
		if status != http.StatusAccepted || string(answer) != c.want {
			t.Errorf("%s: %d %.200s, want %s", c.about, status, answer, c.want)
		}
	}
}

// TestRun writes a golden file with -update, and then compares with it.
func TestRun(t *testing.T) {
	t.Chdir(t.TempDir())
	const file = "testdata/one.json"
	if err := os.Mkdir("testdata", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(`{"about":"one","path":"/one","plane":null,"status":0,"answer":null}`), 0o600); err != nil {
		t.Fatal(err)
	}
	opened := 0
	open := func(*testing.T) (http.Handler, func() any) {
		opened++
		return echo("f00d"), func() any { return []string{"asked & answered"} }
	}

	for _, update := range []string{"true", "false"} {
		if err := flag.Set("update", update); err != nil {
			t.Fatal(err)
		}
		goldentest.Run(t, 1, open)
	}

	var got goldentest.Case
	b, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(b, &got)
	}
	if err != nil || got.Status != http.StatusAccepted || len(got.Answer) == 0 || len(got.Plane) == 0 || opened != 2 {
		t.Errorf("%d doors, %v:\n%s", opened, err, b)
	}
}
