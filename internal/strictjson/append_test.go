package strictjson_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/gozzard/gozzard/internal/strictjson"
	"github.com/gozzard/gozzard/test/fuzztest"
)

// FuzzAppendString: the fast writer writes the same as encoding/json.
func FuzzAppendString(f *testing.F) {
	z := fuzztest.New(f)
	for _, s := range []string{"", "plain", "管控平台.gse_agent", "a\"b\\c\n\r\t", "\x00\x1f\x7f", "\u2028\u2029", "\xff",
		"é\xc3", "<&>", "😀\"é", "�"} {
		z.Add(s)
	}

	z.Fuzz(func(t *testing.T, s string) {
		var want bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(s); err != nil {
			t.Fatal(err)
		}
		if got := strictjson.AppendString([]byte("before"), s); string(got) != "before"+
			string(bytes.TrimSuffix(want.Bytes(), []byte("\n"))) {
			t.Errorf("%q: %s, want %s", s, got, &want)
		}
	})
}
