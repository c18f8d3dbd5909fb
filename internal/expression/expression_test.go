package expression_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/expression"
)

// TestExpressionVectors checks what was observed on the original. One answer differs on purpose: for a class that runs
// backwards the original has an internal error.
func TestExpressionVectors(t *testing.T) {
	raw, err := os.ReadFile("testdata/expressions.json")
	if err != nil {
		t.Fatal(err)
	}

	var file struct {
		Vectors []struct {
			Expression string          `json:"expression"`
			Candidates []string        `json:"candidates"`
			Patterns   []string        `json:"patterns"`
			Matches    []string        `json:"matches"`
			Error      json.RawMessage `json:"error"`
		} `json:"vectors"`
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Vectors) == 0 {
		t.Fatal("no vectors")
	}

	for _, v := range file.Vectors {
		t.Run(v.Expression, func(t *testing.T) {
			e, err := expression.Parse(v.Expression)

			if v.Error != nil {
				var wrong *expression.Error
				if !errors.As(err, &wrong) {
					t.Fatalf("got %v, want an expression error", err)
				}
				return
			}

			if err != nil {
				t.Fatal(err)
			}

			patterns, ok := e.Patterns(100)
			if !ok || !slices.Equal(patterns, v.Patterns) {
				t.Errorf("patterns %q, %v, want %q", patterns, ok, v.Patterns)
			}
			if got := matches(e, v.Candidates); !slices.Equal(got, v.Matches) {
				t.Errorf("matches %q, want %q", got, v.Matches)
			}

			if list, ok := e.Literals(); ok {
				for _, c := range v.Candidates {
					if slices.Contains(list, c) != e.Match(c) {
						t.Errorf("literals %q, but %q fits: %v", list, c, e.Match(c))
					}
				}
			}
		})
	}
}

func matches(e *expression.Expression, candidates []string) []string {
	var fit []string
	for _, c := range candidates {
		if e.Match(c) {
			fit = append(fit, c)
		}
	}
	return fit
}

func mustParse(t testing.TB, text string) *expression.Expression {
	t.Helper()
	e, err := expression.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// numbersOf is the texts of all integers from lo to hi.
func numbersOf(lo, hi int) []string {
	var list []string
	for n := lo; n <= hi; n++ {
		list = append(list, strconv.Itoa(n))
	}
	return list
}

func TestExpressionMatch(t *testing.T) {
	tests := []struct {
		expression string
		patterns   []string // nil: not checked
		yes, no    []string
	}{
		{"*", []string{"*"}, []string{"", "a", "a\nb"}, nil},
		{"?", []string{"?"}, []string{"a", "平", "\n"}, []string{"", "ab", "平台"}},
		{"gse*", nil, []string{"gse", "gse_agent", "gse-agent"}, []string{"a_gse"}},
		{"gse?agent", nil, []string{"gse_agent", "gse-agent"}, []string{"gseagent", "gse__agent"}},
		{"[管控平台, PaaS平台]", []string{"PaaS平台", "管控平台"}, []string{"管控平台", "PaaS平台"}, []string{"paas平台"}},
		{"*[平台,agent]", []string{"*agent", "*平台"}, []string{"管控平台", "作业平台", "gse_agent"}, []string{"agents"}},
		{"4[6, 8, 9]", []string{"46", "48", "49"}, []string{"46", "48", "49"}, []string{"4", "47", "4 8"}},
		{"[46]", []string{"46"}, []string{"46"}, []string{"4", "6"}},
		{"*[46]", []string{"*46"}, []string{"46", "146"}, []string{"4", "6"}},
		{"[1-3]", []string{"[1-3]"}, []string{"1", "2", "3"}, []string{"01", "0", "4", "1-3"}},
		{"[1-10]", []string{"10", "[1-9]"}, numbersOf(1, 10), []string{"0", "11", "010"}},
		{"[01-03]", []string{"[1-3]"}, []string{"1", "2", "3"}, []string{"01"}},
		{"[1-3, 46, 48-49]", []string{"46", "4[8-9]", "[1-3]"}, []string{"1", "2", "3", "46", "48", "49"},
			[]string{"47", "50"}},
		{"[9-101]", []string{"10[0-1]", "9", "[1-9][0-9]"}, []string{"9", "10", "46", "99", "100", "101"},
			[]string{"8", "102", "009"}},
		{"[10-11][0-1]", []string{"1[0-1][0-1]"}, []string{"100", "101", "110", "111"}, []string{"10", "102", "120"}},
		{"[3-1]", []string{"3-1"}, []string{"3-1"}, []string{"2"}},
		{"[ 1-3 ]", []string{" 1-3 "}, []string{" 1-3 "}, []string{"1", "2"}},
		{"[1 - 3]", []string{"1 - 3"}, []string{"1 - 3"}, []string{"2"}},
		{"[5-5]", []string{"5-5"}, []string{"5-5"}, []string{"5"}},
		{"[1-3-5]", nil, []string{"1-3-5"}, []string{"2"}},
		{"[ab-cd]", nil, []string{"ab-cd"}, []string{"b"}},
		{"[a-c]", []string{"[a-c]"}, []string{"a", "b", "c"}, []string{"d", "B", "a-c"}},
		{"[A-c]", []string{"A-c"}, []string{"A-c"}, []string{"B", "a"}},
		{"[一-龥]", []string{"[一-龥]"}, []string{"平", "一", "龥"}, []string{"a", "平台"}},
		{"[１-３]", nil, []string{"1", "2", "3"}, []string{"１", "4"}},
		{"[a,b][1,2]", []string{"a1", "a2", "b1", "b2"}, []string{"a1", "a2", "b1", "b2"}, []string{"a", "1a", "a12"}},
		{"a[!1]", []string{"a[!1]"}, []string{"a2", "ab"}, []string{"a1", "a12", "a"}},
		{"[!1,2]", []string{"[!1,2]"}, []string{"3", "a"}, []string{"1", ",", "2", "34"}},
		{"[a,!b]1", []string{"[!b]1", "a1"}, []string{"a1", "A1", "c1"}, []string{"b1"}},
		{"4[6,!7]", []string{"46", "4[!7]"}, []string{"46", "48", "49"}, []string{"47"}},
		{"gse[_-]agent", []string{"gse_-agent"}, []string{"gse_-agent"}, []string{"gse_agent", "gse-agent"}},
		{"gse[_,-]agent", []string{"gse-agent", "gse_agent"}, []string{"gse_agent", "gse-agent"}, []string{"gseagent"}},
		{"[g*, a]", []string{"a", "g*"}, []string{"gse", "g", "a"}, []string{"ag"}},
		{"[a,]", []string{"", "a"}, []string{"a", ""}, []string{","}},
		{"a, b", []string{"a, b"}, []string{"a, b"}, []string{"a", "b"}},
		{"1-3", []string{"1-3"}, []string{"1-3"}, []string{"2"}},
		{"[[a,b]]", []string{"[a]", "b]"}, []string{"a", "b]"}, []string{"b", "[a]"}},
		{"[a[b]c]", []string{"a[bc]"}, []string{"ab", "ac"}, []string{"abc", "a[bc]"}},
		{"br[1]x", []string{"br1x"}, []string{"br1x"}, []string{"br[1]x"}},
		{"br?1?x", nil, []string{"br[1]x"}, nil},
		{"a+b(c)", nil, []string{"a+b(c)"}, []string{"aab(c)"}},
		{"m|x", nil, []string{"m|x"}, []string{"m", "x"}},
		{"s^$", nil, []string{"s^$"}, []string{"s"}},
		{"p.{1}", nil, []string{"p.{1}"}, []string{"pa"}},
		{`a\*`, nil, []string{`a\`, `a\b`}, []string{"a*"}},
		{"[^a]", []string{"^a"}, []string{"^a"}, []string{"b"}},
		{"[0:2]", nil, []string{"0:2"}, []string{"0"}},
		{"[]", []string{""}, []string{""}, []string{"[]"}},
		{"[,]", []string{""}, []string{""}, []string{","}},
		{"]", nil, []string{"]"}, []string{""}},
		{"[!]", []string{"[!]"}, []string{"[!]"}, []string{"", "a", "!"}},
		{"[!]x]", []string{"[!]x]"}, []string{"a"}, []string{"x", "]"}},
		{"[!a-c-e]", nil, []string{"d", "x"}, []string{"a", "b", "c", "-", "e"}},
		{"[!a-]", nil, []string{"b"}, []string{"a", "-"}},
		{`[!\d^]`, nil, []string{"1", "["}, []string{`\`, "d", "^"}},
		{"[[][1-3]", []string{"[[1-3]"}, []string{"[", "2"}, []string{"[2"}},
		{"a[[]1]", []string{"a[1]"}, []string{"a1"}, []string{"a[1]"}},
		{"[a,[b]1", []string{"[b1", "a1"}, []string{"a1", "[b1"}, []string{"b1"}},
		{"*[1-100]x*", nil, []string{"1x", "a100x", "0001xz", "101x"}, []string{"x", "0x", "a0x"}},
		{"[1-12][1-12]", nil, []string{"11", "111", "1112", "1211"}, []string{"1", "0101", "1300", "12012"}},
		{"[0-105]", nil, numbersOf(0, 105), []string{"106", "00", "", "1000"}},
		{"[99999999999999999998-100000000000000000001]", nil,
			[]string{"99999999999999999998", "100000000000000000000"}, []string{"99999999999999999997"}},
		{"module-[a-d].proc[!2].[10-19, 30-39]", nil, []string{"module-a.proc1.10", "module-c.proc3.30"},
			[]string{"module-a.proc2.10", "module-e.proc1.10"}},
		// The facts that the tests of the original check.
		{"[1-100]", []string{"100", "[1-9]", "[1-9][0-9]"}, numbersOf(1, 100), []string{"0", "101"}},
		{"[1-105]", []string{"10[0-5]", "[1-9]", "[1-9][0-9]"}, numbersOf(1, 105), []string{"0", "106"}},
		{"[a-z, 1-100, 1-9]", []string{"100", "[1-9]", "[1-9][0-9]", "[a-z]"}, []string{"a", "z", "1", "100"},
			[]string{"0", "A"}},
		{"module[1-3].proc[a-c].[1-100]",
			[]string{"module[1-3].proc[a-c].100", "module[1-3].proc[a-c].[1-9]", "module[1-3].proc[a-c].[1-9][0-9]"},
			[]string{"module2.procb.77"}, nil},
		{"module[1-3, 1-3].proc[a-c].[1-100]",
			[]string{"module[1-3].proc[a-c].100", "module[1-3].proc[a-c].[1-9]", "module[1-3].proc[a-c].[1-9][0-9]"},
			[]string{"module2.procb.77"}, nil},
		{"module-[a-c].proc[1-10].[1-9999]", nil, []string{"module-a.proc1.99"},
			[]string{"module-d.proc1.99", "module-a.proc01.99"}},
		{"module-[!a].proc[1-10].[1-9999]", nil, []string{"module-b.proc1.99"}, []string{"module-a.proc1.99"}},
		{"[module,module]", []string{"module"}, []string{"module"}, nil},
		{"测试集群-[1-2]", nil, []string{"测试集群-1", "测试集群-2"}, []string{"测试集群-3", "测试集群-12"}},
		{"12", nil, []string{"12"}, []string{"127.0.0.1", "127"}},
	}
	for _, tt := range tests {
		t.Run(tt.expression, func(t *testing.T) {
			e := mustParse(t, tt.expression)
			if patterns, ok := e.Patterns(100); tt.patterns != nil && (!ok || !slices.Equal(patterns, tt.patterns)) {
				t.Errorf("patterns %q, %v, want %q", patterns, ok, tt.patterns)
			}

			for _, s := range tt.yes {
				if !e.Match(s) {
					t.Errorf("%q does not fit", s)
				}
			}

			for _, s := range tt.no {
				if e.Match(s) {
					t.Errorf("%q fits", s)
				}
			}
		})
	}
}

func TestExpressionMetaSample(t *testing.T) {
	e := mustParse(t, "string[1-100].[集群1, 集群2].server.word[a-z]-[1.1, 1.2]*")
	if patterns, ok := e.Patterns(100); len(patterns) != 12 || !ok {
		t.Errorf("%d patterns, %v, want 12", len(patterns), ok)
	}
	for _, s := range []string{"string1.集群1.server.worda-1.1.111", "string100.集群2.server.worda-1.2A"} {
		if !e.Match(s) {
			t.Errorf("%q does not fit", s)
		}
	}
}

func TestExpressionErrors(t *testing.T) {
	pairs := strings.Repeat("[a,b]", 10)
	tests := []struct {
		expression string
		pos        int
		text       string
	}{
		{"[a", 0, `expression "[a": [ without a ] after it at character 1`},
		{"平台4[6", 3, `expression "平台4[6": [ without a ] after it at character 4`},
		{"[....", 0, "[ without a ]"},
		{"a]b[", 3, "[ without a ]"},
		{"4[!9-1]", 3, "from the greater to the smaller at character 4"},
		{"4[6, !ac-b]", 7, "from the greater to the smaller at character 8"},
		{"a[[]9-1]", 2, "from the greater to the smaller"},
		{"ab\xffc", 2, "not valid UTF-8"},
		{pairs, 45, "more than 1000 alternatives"},
		{"[" + strings.Repeat("a,b,c,[d", 3) + "]" + strings.Repeat("[*,?]", 7) + strings.Repeat("*a", 200), 7,
			"bytes of alternatives"},
		{strings.Repeat("*", 1025), 64, "at most 1024"},
		{strings.Repeat("平", 400), 21, "at most 1024"},
	}
	for _, tt := range tests {
		_, err := expression.Parse(tt.expression)
		var wrong *expression.Error
		if !errors.As(err, &wrong) {
			t.Errorf("%.40q: got %v, want an expression error", tt.expression, err)
			continue
		}
		if wrong.Pos != tt.pos || !strings.Contains(err.Error(), tt.text) || len(err.Error()) > 2*expression.MaxBytes {
			t.Errorf("%.40q: got %v (position %d), want %q at %d", tt.expression, err, wrong.Pos, tt.text, tt.pos)
		}
	}
}

func TestExpressionAll(t *testing.T) {
	for text, want := range map[string]bool{"*": true, "***": true, "[*]": true, "*[*]*": true, "[*,a]": false,
		"": false, "?*": false, "[]*": true} {
		if got := mustParse(t, text).All(); got != want {
			t.Errorf("%q: all %v, want %v", text, got, want)
		}
	}
}

func TestExpressionLiterals(t *testing.T) {
	tests := []struct {
		expression string
		want       []string
		ok         bool
	}{
		{"gse", []string{"gse"}, true},
		{"", []string{""}, true},
		{"4[6, 8, 9]", []string{"46", "48", "49"}, true},
		{"[b,a][9-10]", []string{"a10", "a9", "b10", "b9"}, true},
		{"[1-1000]", numbersOf(1, 1000), true},
		{"[1-1001]", nil, false},
		{"[1-100][1-100]", nil, false},
		{"[a-c]", nil, false},
		{"a*", nil, false},
	}
	for _, tt := range tests {
		got, ok := mustParse(t, tt.expression).Literals()
		slices.Sort(tt.want)
		if ok != tt.ok || !slices.Equal(got, tt.want) {
			t.Errorf("%q: got %q, %v, want %q, %v", tt.expression, got, ok, tt.want, tt.ok)
		}
	}
}

func TestExpressionPatternsLimit(t *testing.T) {
	e := mustParse(t, "[a,b,c][1,2]")
	if got, ok := e.Patterns(6); !ok || len(got) != 6 {
		t.Errorf("got %q, %v", got, ok)
	}
	if got, ok := e.Patterns(5); ok || len(got) != 5 {
		t.Errorf("got %q, %v", got, ok)
	}
	// A range of many digits in many combinations is rejected before it is expanded.
	long := strings.Repeat("[1-9"+strings.Repeat("8", 30)+",a]", 9)
	if _, ok := mustParse(t, long).Patterns(1000); ok {
		t.Errorf("%q was written out", long)
	}
}

// TestExpressionNumbers compares every small range with the integers that it names, as numbers and as patterns of
// digits.
func TestExpressionNumbers(t *testing.T) {
	var candidates []string
	for n := range 1205 {
		candidates = append(candidates, strconv.Itoa(n), "0"+strconv.Itoa(n))
	}

	for _, lo := range []int{0, 1, 5, 9, 10, 11, 19, 20, 46, 98, 99, 100, 101, 109, 110, 199, 200, 987, 999, 1000} {
		for _, hi := range []int{1, 2, 9, 10, 12, 20, 35, 46, 99, 100, 101, 105, 110, 189, 200, 350, 999, 1000, 1001,
			1200} {
			if lo >= hi {
				continue
			}
			text := fmt.Sprintf("[%d-%d]", lo, hi)
			e := mustParse(t, text)
			inText := mustParse(t, "*"+text+"?")
			patterns, ok := e.Patterns(100)
			if !ok {
				t.Fatalf("%s: too many patterns", text)
			}
			for i, c := range candidates {
				want := i%2 == 0 && i/2 >= lo && i/2 <= hi
				if got := e.Match(c); got != want {
					t.Fatalf("%s: %q fits: %v", text, c, got)
				}
				if got := slices.ContainsFunc(patterns, func(p string) bool {
					return naiveGlob([]rune(p),
						[]rune(c))
				}); got != want {
					t.Fatalf("%s as %q: %q fits: %v", text, patterns, c, got)
				}
				if want && !inText.Match("平"+c+"x") {
					t.Fatalf("*%s?: %q does not fit", text, "平"+c+"x")
				}
			}
		}
	}
}

// TestExpressionHostile checks that a caller cannot cause much work. The limit is far above the normal time and far
// below the time of backtracking.
func TestExpressionHostile(t *testing.T) {
	expressions := []string{
		strings.Repeat("*", 1000),
		strings.Repeat("a*", 500) + "b",
		strings.Repeat("?*", 500) + "b",
		strings.Repeat("*[!b]", 200) + "b",
		strings.Repeat("*[1-99999999]", 70) + "b",
		strings.Repeat("[*a,*aa]", 9) + strings.Repeat("*a", 400) + "b",
		"[" + strings.Repeat("*a*a,", 200) + "]b",
		"[[]" + strings.Repeat("[*,?]", 5) + strings.Repeat("*a", 50) + "b",
		"[" + strings.Repeat(",", 999) + "]",
		strings.Repeat("[", 511) + "]" + strings.Repeat("]", 512),
	}
	texts := []string{strings.Repeat("a", 4096), strings.Repeat("1", 4096), strings.Repeat("平", 1365)}
	for _, text := range expressions {
		begin := time.Now()
		e := mustParse(t, text)
		for _, s := range texts {
			e.Match(s)
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("%.30q took %v", text, took)
		}
	}
}

func TestSlice(t *testing.T) {
	list := []int{10, 11, 12, 13, 14}
	tests := []struct {
		text string
		want []int
		ok   bool
	}{
		{"[0:2]", []int{10, 11}, true},
		{"[:2]", []int{10, 11}, true},
		{"[-1:]", []int{14}, true},
		{"[+1:+3]", []int{11, 12}, true},
		{"[0 : 2]", []int{10, 11}, true},
		{"[:]", list, true},
		{"[5:1]", nil, true},
		{"[3:1]", nil, true},
		{"[-100:2]", []int{10, 11}, true},
		{"[2:-100]", nil, true},
		{"[1:-1]", []int{11, 12, 13}, true},
		{"[3:99999999999999999999999]", []int{13, 14}, true},
		{"[-99999999999999999999999:1]", []int{10}, true},
		{"[0:2]zzz", []int{10, 11}, true},
		{"[0:1][1:2]", list, true},
		{"[0:1][1,2]", []int{10}, true},
		{"[ 0:2 ]", nil, false},
		{"[0  :2]", nil, false},
		{"x[0:2]", nil, false},
		{"[0:2", nil, false},
		{"[0-2]", nil, false},
		{"[+:2]", nil, false},
		{"[1:2:3]", nil, false},
		{"", nil, false},
	}
	for _, tt := range tests {
		s, ok := expression.ParseSlice(tt.text)
		if ok != tt.ok {
			t.Errorf("%q: slice %v, want %v", tt.text, ok, tt.ok)
			continue
		}
		if !ok {
			continue
		}
		if from, to := s.Bounds(len(list)); !slices.Equal(list[from:to], tt.want) {
			t.Errorf("%q: got %v, want %v", tt.text, list[from:to], tt.want)
		}
		if from, to := s.Bounds(0); from != 0 || to != 0 {
			t.Errorf("%q of nothing: %d to %d", tt.text, from, to)
		}
	}
}

func BenchmarkExpressionMatch(b *testing.B) {
	for _, text := range []string{"gse*", "*_gse_agent", "4[6, 8, 9]", "gse_[1-100]", "[管控平台, *agent]"} {
		e := mustParse(b, text)
		b.Run(text, func(b *testing.B) {
			for b.Loop() {
				e.Match("127.0.0.1_gse_agent")
			}
		})
	}
}
