package gozzard_test

import (
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
)

func TestValidateName(t *testing.T) {
	for _, s := range []string{"a", "_x", "9", "nginx-1.2@blue+green", "two words", "进程名", "é", "e\u0301",
		strings.Repeat("x", gozzard.MaxNameBytes)} {
		if err := gozzard.ValidateName(s); err != nil {
			t.Errorf("%q: %v", s, err)
		}
	}

	for _, s := range []string{"", " a", "a ", "-a", ".a", "..", "a/b", `a\b`, "a:b", "a*", "a>b", "a\nb", "a\x00b",
		"a\x1b[31m", "a\u2028b", "a\u202eb",
		"\u0301a", "a\u200bb", "\xff", "a;b", "$(a)", "a'b", `a"b`, "a\tb",
		strings.Repeat("x", gozzard.MaxNameBytes+1)} {
		if err := gozzard.ValidateName(s); err == nil {
			t.Errorf("%q is taken", s)
		}
	}
}

func TestValidateProcessName(t *testing.T) {
	for _, s := range []string{"a", "_x", "9", "nginx-1.2@blue+green", "two words", "进程名", "é", "nginx:80_1", "java(1)_1",
		"进程（1）_1", "web/api_1", "a[b]_1", "nginx#1_1", "a,b_1", "a&b", "it's", "k=v", "a*", "~a", "$(a)", "100%", "全　角",
		"a/../b", "/etc/passwd", "(a)", "[a]", "#", "-x", "@a", "+a", "①", "→", strings.Repeat("x", gozzard.MaxProcessNameBytes)} {
		if err := gozzard.ValidateProcessName(s); err != nil {
			t.Errorf("%q: %v", s, err)
		}
	}

	for _, s := range []string{"", " a", "a ", " ", "　a", "a　", ".a", "..", ".", `a\b`, "a>b", "a<b", "a|b",
		"a;b", "a`b", `a"b`, "a!b", "a?b", "a{b", "a^b", "a\nb", "a\x00b", "a\x1b[31m", "a\u2028b", "a\u202eb", "\u0301a",
		"a\u200bb", "a\u00a0b", "a\u00adb", "\xff", "a\tb", "a\ue000b", strings.Repeat("x", gozzard.MaxProcessNameBytes+1)} {
		if err := gozzard.ValidateProcessName(s); err == nil {
			t.Errorf("%q is taken", s)
		}
	}
}

func TestClip(t *testing.T) {
	for _, tt := range []struct {
		text string
		n    int
		want string
	}{
		{"abc", 3, "abc"}, {"abcd", 3, "abc"}, {"网关", 5, "网"}, {"网关", 2, ""}, {"a\xffb", 8, "a\uFFFDb"}, {"", 0, ""},
	} {
		if got := gozzard.Clip(tt.text, tt.n); got != tt.want {
			t.Errorf("%q cut to %d bytes is %q, want %q", tt.text, tt.n, got, tt.want)
		}
	}
}
