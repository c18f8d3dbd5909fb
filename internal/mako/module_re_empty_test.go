package mako_test

import (
	"strings"
	"testing"
)

// TestEmptyMatches: patterns that may match nothing give what they give in CPython 3.11, also at the end of other matches.
func TestEmptyMatches(t *testing.T) {
	with := processContext(t, readTree(t, readVectors(t).Tree))
	for expression, want := range map[string]string{
		`re.findall(r'a*', 'baac')`:      `['', 'aa', '', '']`,
		`re.findall(r'\s*$', 'ab  ')`:    `['  ', '']`,
		`re.sub(r'x*', '-', 'abxd')`:     `-a-b--d-`,
		`re.split(r'b*', 'abbc')`:        `['', 'a', '', 'c', '']`,
		`re.sub(r'x?y*', '<>', 'xyyaé')`: `<><>a<>é<>`,
		`re.findall(r'(a|b*)', 'abba')`:  `['a', 'bb', 'a', '']`,
		`re.sub(r'^ *', '>', '  a')`:     `>a`,
		`re.findall(r'a*', '')`:          `['']`,
		`re.subn(r'é*', '.', 'aééb')`:    `('.a..b.', 4)`,
		`re.sub(r'x*', '-', 'abxd', 3)`:  `-a-b-d`,
	} {
		if got, err := render("<% import re %>${"+expression+"}", with); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", expression, got, err, want)
		}
	}

	for _, expression := range []string{`re.findall(r'|a', 'aa')`, `re.findall(r'a*?', 'aa')`, `re.findall(r'\b|ab', 'ab')`} {
		if got, err := render("<% import re %>${"+expression+"}", with); err == nil && strings.Contains(got, "a") {
			t.Errorf("%s: %q; Python gives something else, so it must be rejected", expression, got)
		}
	}
}

// TestSortFaults: two values that cannot be compared are those of CPython 3.11, which depends on the order of its comparisons.
func TestSortFaults(t *testing.T) {
	with := processContext(t, readTree(t, readVectors(t).Tree))
	for list, want := range map[string]string{
		`[7, False, 'a']`:        `'str' and 'bool'`,
		`[False, 7, 'a']`:        `'str' and 'int'`,
		`[2.5, 1, 7, 'a', None]`: `'str' and 'float'`,
		`['a', 'b', 1, None]`:    `'int' and 'str'`,
	} {
		if _, err := render("${sorted("+list+")}", with); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", list, err, want)
		}
	}
	if got, err := render("${sorted([3, 1, 2, 1, 5, 4], reverse=True)} ${sorted('banana', key=lambda c: -ord(c))} ${sorted(range(100), key=lambda n: n % 7)[:5]}", with); err != nil ||
		got != "[5, 4, 3, 2, 1, 1] ['n', 'n', 'b', 'a', 'a', 'a'] [0, 7, 14, 21, 28]" {
		t.Errorf("%s, %v", got, err)
	}
}
