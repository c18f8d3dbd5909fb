package otlp_test

import (
	"bufio"
	"bytes"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/internal/otlp"
	"github.com/gozzard/gozzard/test/fuzztest"
)

func TestParseHeaders(t *testing.T) {
	long := "X-Long: " + strings.Repeat("x", 70_000)
	for text, want := range map[string]http.Header{
		"Authorization: Bearer a:b=\n":                    {"Authorization": {"Bearer a:b="}},
		"# of the collector\r\n\r\n x-scope-orgid :7\r\n": {"X-Scope-Orgid": {"7"}},
		"A: 1\nA: 2\nB: 牧鹅":                               {"A": {"1", "2"}, "B": {"牧鹅"}},
		"A: 1\n" + long + "\nB: 2":                        {"A": {"1"}, "X-Long": {long[8:]}, "B": {"2"}},
		strings.Repeat("A: 1\n", 32):                      {"A": strings.Split(strings.Repeat("1", 32), "")},
	} {
		if h, err := otlp.ParseHeaders([]byte(text)); err != nil || !reflect.DeepEqual(h, want) {
			t.Errorf("%.60q: %v %v", text, h, err)
		}
	}

	for text, want := range map[string]string{
		"": "no header", "# A: b\n": "no header", "A: secret-1\nsecret-2": "line 2 ", "A:": "line 1 ", ": secret": "line 1 ",
		"A B: secret": "line 1 ", "A: sec\x00ret": "line 1 ", "\ufeffA: secret": "line 1 ",
		"\nhost: secret": "line 2: the header Host", "User-Agent: secret": "User-Agent", "accept-encoding: secret": "Accept-Encoding",
		strings.Repeat("A: secret\n", 33): "more than 32",
	} {
		h, err := otlp.ParseHeaders([]byte(text))
		if err == nil || h != nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%.60q: %v %v, expected %q", text, h, err, want)
		}
	}
}

// FuzzHeaders: what is accepted reaches a collector as it is in the file, without a line that was left out, and nothing of a
// request is smuggled in.
func FuzzHeaders(f *testing.F) {
	z := fuzztest.New(f)
	z.Add([]byte("Authorization: Bearer secret\n"))
	z.Add([]byte("# for the collector\r\nX-Scope-OrgID: fleet\r\n\r\nA:b\r\n"))
	z.Add([]byte("A: 1\nA: 2\nB: \t x\ty \t\nContent-Type: x"))
	z.Add([]byte("A: 牧\x85\xa0\xff\nB:\u2028x\nHost: b\n"))
	z.Add([]byte(strings.Repeat("A: b\n", 33)))

	z.Fuzz(func(t *testing.T, file []byte) {
		h, err := otlp.ParseHeaders(file)
		if err != nil {
			if h != nil || len(err.Error()) > 500 {
				t.Fatalf("%v, %v", h, err)
			}
			return
		}

		// Every line that is no remark is a header.
		lines, values := 0, 0
		for line := range strings.SplitSeq(string(file), "\n") {
			if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
				lines++
			}
		}
		for _, list := range h {
			values += len(list)
		}
		if lines != values || values == 0 {
			t.Fatalf("%d lines, %d values: %v", lines, values, h)
		}

		// A server reads what the file has.
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/v1/metrics", strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = h
		var wire bytes.Buffer
		if err := req.Write(&wire); err != nil {
			t.Fatalf("%v: %v", h, err)
		}
		got, err := http.ReadRequest(bufio.NewReader(&wire))
		if err != nil {
			t.Fatalf("%v: %v", h, err)
		}
		if got.ContentLength != 4 || got.Host != "127.0.0.1" {
			t.Fatalf("the request has the length %d and the host %s", got.ContentLength, got.Host)
		}
		for name, list := range h {
			if !reflect.DeepEqual(got.Header[name], list) {
				t.Fatalf("%s: %q became %q", name, list, got.Header[name])
			}
		}
	})
}
