package strictjson_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/strictjson"
	"github.com/gozzard/gozzard/test/fuzztest"
)

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", "body is empty"},
		{" \n\t", "body is empty"},
		{"\xef\xbb\xbf{}", "byte order mark"},
		{"{} {}", "line 1, column 4: '{' after the end of the document"},
		{"{}null", "after the end"},
		{"{\"a\":1,}", "line 1, column 7: a comma before '}' is not allowed"},
		{"{\n \"a\": [1,\n  2,\n ]}", "line 3, column 4: a comma before ']' is not allowed"},
		{"{\"a\":1 // note\n}", "comments are not allowed"},
		{"{/* x */}", "comments are not allowed"},
		{"# x\n{}", "comments are not allowed"},
		{"{\n  \"h\": {}\n  \"flag\": 1\n}", "line 3, column 3: '\"' where a comma or '}' is expected"},
		{`{"a":1,"a":2}`, `duplicate key "a"`},
		{`{"a":1,"\u0061":2}`, `duplicate key "a"`},
		{`{"x":{"b":[{"k":1,"k":1}]}}`, `duplicate key "k"`},
		{`{a:1}`, "'a' where a name in double quotes is expected"},
		{`{'a':1}`, "where a name in double quotes is expected"},
		{`{"a" 1}`, "where a colon is expected"},
		{`{"a":}`, "where a value is expected"},
		{`{"a":01}`, "a number that JSON does not know"},
		{`{"a":+1}`, "where a value is expected"},
		{`{"a":1.}`, "a number that JSON does not know"},
		{`{"a":.5}`, "where a value is expected"},
		{`{"a":1e}`, "a number that JSON does not know"},
		{`{"a":-}`, "a number that JSON does not know"},
		{`{"a":NaN}`, "where a value is expected"},
		{`{"a":nul}`, "where a value is expected"},
		{`{"a":True}`, "where a value is expected"},
		{`{"a":"x`, "a string without end"},
		{"{\"a\":\"x\ny\"}", "control character 0x0a inside a string"},
		{"{\"a\":\"\xff\"}", "not valid UTF-8"},
		{"{\"a\":\"\xed\xa0\x80\"}", "not valid UTF-8"},
		{"{\xff", "not valid UTF-8"},
		{`{"a":"\x41"}`, "an escape that JSON does not know"},
		{`{"a":"\u12g4"}`, "an escape that JSON does not know"},
		{`{"a":"\ud800"}`, "half of a surrogate pair"},
		{`{"a":"\udc00\ud800"}`, "half of a surrogate pair"},
		{`{"a":"\ud83dA"}`, "half of a surrogate pair"},
		{`{"a":[1`, "the body ends before ']'"},
		{`{"a":`, "the body ends where a value is expected"},
		{`{`, "the end of the body where a name"},
		{strings.Repeat("[", 33), "nested deeper than 32"},
		{`{"a":` + strings.Repeat("[", 1<<20), "nested deeper than 32"},
	} {
		_, err := strictjson.Parse([]byte(c.in))
		if err == nil {
			t.Errorf("%.60q: accepted", c.in)
			continue
		}
		if gozzard.KindOf(err) != gozzard.ErrInvalid || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q: %v, want %q", c.in, err, c.want)
		}
	}
}

func TestParseBoundsValues(t *testing.T) {
	body := []byte(`{"a":[` + strings.Repeat("1,", strictjson.MaxValues) + `1]}`)
	if _, err := strictjson.Parse(body); err == nil || !strings.Contains(err.Error(), "more than 2000000 values") {
		t.Fatalf("%v", err)
	}
}

func TestParseAccepts(t *testing.T) {
	many := map[string]int{}
	for i := range 40 {
		many[fmt.Sprint("k", i)] = i
	}

	manyText, _ := json.Marshal(many)
	for _, in := range []string{
		" {} \r\n", `{"a":{"a":{"a":1}},"b":{"a":1}}`, `{"a":-0,"b":0.5e-3,"c":1E+9,"":null}`, string(manyText),
		`{"a":"` + "网关服\u202e\U0001F600" + `","b":"\ud83d\ude00\/\b\f\n\r\t\"\\"}`,
		strings.Repeat("[", 32) + strings.Repeat("]", 32),
	} {
		if _, err := strictjson.Parse([]byte(in)); err != nil {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func root(t *testing.T, in string) (strictjson.Value, *strictjson.Faults) {
	t.Helper()
	doc, err := strictjson.Parse([]byte(in))
	if err != nil {
		t.Fatal(err)
	}
	var f strictjson.Faults
	v, err := doc.Root(&f)
	if err != nil {
		t.Fatal(err)
	}
	return v, &f
}

func TestGetters(t *testing.T) {
	v, f := root(t, `{"s":"网\u0000\ud83d\ude00\n","e":"","i":-42,"n":null,"f":1.5,"b":true,"l":[1,[2]],"o":{"x":{},"y":null,"z":[]},"\u0061":"esc"}`)
	get := func(n string) *strictjson.Value { m := v.Get(n); return &m }
	if s := get("s").Str(); s != "网\x00😀\n" {
		t.Errorf("s: %q", s)
	}
	if s := get("a").Str(); s != "esc" {
		t.Errorf("a: %q", s)
	}
	if s := get("e").AnyStr() + get("n").OptStr() + get("missing").OptStr(); s != "" {
		t.Errorf("%q", s)
	}
	if i := get("i").Int(-100, 0); i != -42 {
		t.Errorf("i: %d", i)
	}
	if get("n").OptInt(7, 0, 9) != 7 || get("missing").OptInt(8, 0, 9) != 8 || get("n").OptFloat(2, 0, 9) != 2 ||
		!get("n").OptBool(true) {
		t.Error("defaults")
	}

	if get("f").Float(0, 2) != 1.5 || !get("b").Bool() || get("i").Scalar() != "-42" {
		t.Error("scalars")
	}
	if !get("o").Hollow() || !get("n").Hollow() || !get("missing").Hollow() || get("l").Hollow() || get("e").Hollow() {
		t.Error("hollow")
	}

	n := 0
	if get("l").List(2, func(e *strictjson.Value) { n++ }) != 2 || n != 2 || get("n").OptList(2, nil) != 0 {
		t.Error("list")
	}

	var names []string
	get("o").Members(func(name string, m strictjson.Value) { names = append(names, name+"="+m.Path()) })

	if fmt.Sprint(names) != "[x=o.x y=o.y z=o.z]" {
		t.Error(names)
	}
	if err := f.Err(); err != nil {
		t.Error(err)
	}
}

func TestFaultsAreReportedTogetherWithTheirPaths(t *testing.T) {
	v, f := root(t, `{"A":1,"i":1.5,"e":1e0,"s":"0","t":true,"big":100000000000000000000,"n":null,"h":[{"ip":"x"},{"ip":7},null],"o":[],"lab":{"a":{},"":1}}`)
	get := func(n string) *strictjson.Value { m := v.Get(n); return &m }
	get("a").Int(0, 9)

	for _, n := range []string{"i", "e", "s", "t", "big", "n"} {
		get(n).Int(0, 9)
	}

	get("h").List(9, func(e *strictjson.Value) {
		if e.Object() {
			ip := e.Get("ip")
			ip.Str()
		}
	})

	get("h").List(2, func(*strictjson.Value) { t.Error("called beyond the limit") })
	get("o").Object()
	get("lab").Members(func(_ string, m strictjson.Value) { _ = m.Scalar(); m.Bool() })
	want := `a: required; i: must be a whole number, is 1.5; e: must be a whole number, is 1e0; s: must be a whole number, is the string "0"; ` +
		`t: must be a whole number, is true; big: must be 0 to 9, is 100000000000000000000; n: required, is null; ` +
		`h[1].ip: must be a string, is the number 7; h[2]: required, is null; h: has 3 elements, at most 2 are allowed; o: must be an object, is a list; ` +
		`lab.a: must be a string or a number, is an object; lab.a: must be true or false, is an object; lab."": must be true or false, is the number 1`
	if got := f.Err().Error(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestFaultsAreBounded(t *testing.T) {
	v, f := root(t, `{"h":[`+strings.Repeat("null,", 5000)+`null]}`)
	h := v.Get("h")
	h.List(10000, func(e *strictjson.Value) { e.Object() })
	if text := f.Err().Error(); f.Len() != 5001 || len(text) > 10000 || !strings.HasSuffix(text, "and 4901 more") {
		t.Fatalf("%d faults, %d bytes", f.Len(), len(text))
	}
	v, f = root(t, `{"s":"`+strings.Repeat("网", 1<<16)+`"}`)
	s := v.Get("s")
	s.Int(0, 1)
	if text := f.Err().Error(); len(text) > 300 {
		t.Fatalf("a fault of %d bytes", len(text))
	}
}

// TestCut: faults of one part can be taken back, and the others stay.
func TestCut(t *testing.T) {
	var f strictjson.Faults
	f.Add("a", "first")
	if err := f.Cut(1); err != nil || f.Len() != 1 {
		t.Fatalf("%v, %d", err, f.Len())
	}
	f.Add("b", "second")
	f.Add("c", "third")
	if err := f.Cut(1); err == nil || err.Error() != "b: second; c: third" || f.Len() != 1 || f.Err().Error() != "a: first" {
		t.Errorf("%v, then %v", err, f.Err())
	}

	for range 150 {
		f.Add("d", "many")
	}
	if err := f.Cut(1); err == nil || !strings.Contains(err.Error(), "and 51 more") || f.Len() != 1 {
		t.Errorf("%v, then %d", err, f.Len())
	}
}

// TestAgreesWithTheStandardLibrary compares the scanner with encoding/json on mutated documents: encoding/json accepts
// everything that the scanner accepts, with the same strings.
func TestAgreesWithTheStandardLibrary(t *testing.T) {
	seed := `{"meta":{"namespace":"gse","name":"网关-1","labels":{"a":"b\u00e9\ud83d\ude00"}},"hosts":[{"ip":"10.0.0.1","bk_cloud_id":0,"x":[-1.5e3,true,null]}]}`
	alphabet := `{}[]",:0123456789.-+eEtrufalsn\ /` + "\n\x00\xff网"
	rng := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		b := []byte(seed)
		for range 1 + rng.IntN(3) {
			i := rng.IntN(len(b))
			switch rng.IntN(3) {
			case 0:
				b[i] = alphabet[rng.IntN(len(alphabet))]
			case 1:
				b = append(b[:i], b[i+1:]...)
			case 2:
				b = append(b[:i+1], b[i:]...)
				b[i] = alphabet[rng.IntN(len(alphabet))]
			}
		}
		if _, err := strictjson.Parse(b); err == nil && !json.Valid(b) {
			t.Fatalf("accepted %q, which is not JSON", b)
		} else if err != nil && json.Valid(b) && !excused(err) {
			t.Fatalf("refused %q: %v", b, err)
		}
	}
}

// excused are the faults that encoding/json accepts and the scanner rejects on purpose.
func excused(err error) bool {
	for _, s := range []string{"duplicate key", "not valid UTF-8", "surrogate"} {
		if strings.Contains(err.Error(), s) {
			return true
		}
	}
	return false
}

func FuzzParse(f *testing.F) {
	z := fuzztest.New(f)
	for _, s := range []string{`{}`, `{"a":[1,{"b":"\ud83d\ude00"}]}`, "{\"a\":1,}", `[[[[`, "\xef\xbb\xbf{}"} {
		z.Add([]byte(s))
	}

	z.Fuzz(func(t *testing.T, b []byte) {
		_, err := strictjson.Parse(b)
		if err == nil && !json.Valid(b) {
			t.Fatalf("accepted what is not JSON")
		}
		if err != nil && json.Valid(b) && !excused(err) && !strings.Contains(err.Error(), "nested deeper") {
			t.Fatalf("refused JSON: %v", err)
		}
	})
}

func hostsBody(n int) []byte {
	var b strings.Builder
	b.WriteString(`{"hosts":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"ip":"10.%d.%d.%d","bk_cloud_id":0,"bk_supplier_id":0}`, i>>16, i>>8&255, i&255)
	}
	b.WriteString(`]}`)
	return []byte(b.String())
}

func BenchmarkParse100kHosts(b *testing.B) {
	body := hostsBody(100_000)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()

	for b.Loop() {
		doc, err := strictjson.Parse(body)
		if err != nil {
			b.Fatal(err)
		}
		var f strictjson.Faults
		root, _ := doc.Root(&f)
		hosts := root.Get("hosts")
		hosts.List(100_000, func(e *strictjson.Value) {
			ip, cloud := e.Get("ip"), e.Get("bk_cloud_id")
			_, _ = ip.Str(), cloud.Int(0, 1<<31)
		})
		if f.Len() > 0 {
			b.Fatal(f.Err())
		}
	}
}
