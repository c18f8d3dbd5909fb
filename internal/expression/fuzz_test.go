package expression_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/gozzard/gozzard/internal/expression"
	"github.com/gozzard/gozzard/test/fuzztest"
)

// FuzzExpression compares the matcher with the simplest one: it lists all combinations and tries each as a shell
// pattern.
func FuzzExpression(f *testing.F) {
	z := fuzztest.New(f)
	for _, seed := range [][2]string{
		{"4[6, 8, 9]", "48"},
		{"*[平台,agent]", "管控平台"},
		{"[1-12][0-3]x*", "123x"},
		{"[a,!b-d]?[!]x]", "zyx"},
		{"[[a,b]]", "a"},
		{"[a[b]c]*[,]", "ab"},
		{"[!a-]", "-"},
		{"[-a,A-c,01-03]", "3"},
		{"*a*a*[a,]b", "aaaab"},
		{"[0-10]*[5-7]", "1006"},
	} {
		z.Add(seed[0], seed[1])
	}

	z.Fuzz(func(t *testing.T, text, s string) {
		e, err := expression.Parse(text)

		if len(text) > 64 || len(s) > 64 {
			return // it must only not fail; the simple matcher is too slow
		}

		patterns, plain := naivePatterns(text)
		if !plain {
			return
		}

		backwards := slices.ContainsFunc(patterns, func(p string) bool { return naiveBackwards([]rune(p)) })

		if closed := naiveClosed(text); err != nil {
			// equal ones count too, and so do their parts
			tooMany := len(patterns) > 1 && strings.Contains(err.Error(), "alternatives")
			if closed && !backwards && !tooMany {
				t.Fatalf("%q: %v", text, err)
			}
			return
		} else if !closed || backwards {
			t.Fatalf("%q was accepted", text)
		}

		want := slices.ContainsFunc(patterns, func(p string) bool { return naiveGlob([]rune(p), []rune(s)) })
		if got := e.Match(s); got != want {
			t.Fatalf("%q on %q: %v, want %v by %q", text, s, got, want, patterns)
		}
		if list, ok := e.Literals(); ok && slices.Contains(list, s) != want {
			t.Fatalf("%q on %q: literals %q, want %v", text, s, list, want)
		}
		if e.All() && !want {
			t.Fatalf("%q fits all, but not %q", text, s)
		}
	})
}

func naiveClosed(text string) bool {
	if !validText(text) {
		return false
	}

	for {
		_, rest, open := strings.Cut(text, "[")
		if !open {
			return true
		}
		_, after, closed := strings.Cut(rest, "]")
		if !closed {
			return false
		}
		text = after
	}
}

func validText(s string) bool { return strings.ToValidUTF8(s, "") == s }

// naivePatterns lists all combinations, integers one by one. It gives up on very many integers, and on ranges of
// integers beside brackets inside of brackets, where the digits become part of a class.
func naivePatterns(text string) (list []string, ok bool) {
	list = []string{""}
	numeric, nested := false, false
	for text != "" {
		head, rest, open := strings.Cut(text, "[")
		body, after, closed := strings.Cut(rest, "]")
		if !open || !closed {
			head, after = text, ""
		}
		items := []string{""}
		if open && closed {
			items = strings.Split(body, ",")
			if strings.HasPrefix(body, "!") || len(items) == 1 {
				items = []string{body}
			} else {
				for i := range items {
					items[i] = strings.TrimFunc(items[i], unicode.IsSpace)
				}
			}
		}
		var ends []string
		for _, item := range items {
			if !open || !closed {
				ends = []string{""}
				break
			}
			some, numbers := naiveItem(item)
			numeric = numeric || numbers
			nested = nested || item == "!" || strings.Contains(item, "[")
			ends = append(ends, some...)
		}
		if len(list)*len(ends) > 5000 {
			return nil, false
		}
		var next []string
		for _, a := range list {
			for _, b := range ends {
				next = append(next, a+head+b)
			}
		}
		slices.Sort(next)
		list = slices.Compact(next)
		text = after
	}

	return list, !(numeric && nested)
}

func naiveItem(item string) (list []string, numeric bool) {
	if strings.HasPrefix(item, "!") {
		return []string{"[" + item + "]"}, false
	}

	left, right, ok := strings.Cut(item, "-")
	if !ok || strings.Contains(right, "-") || left == "" || right == "" {
		return []string{item}, false
	}

	l, r := []rune(left), []rune(right)
	if len(l) == 1 && len(r) == 1 && unicode.IsLetter(l[0]) && unicode.IsLetter(r[0]) && l[0] < r[0] &&
		isLower(l[0]) == isLower(r[0]) {
		return []string{"[" + item + "]"}, false
	}

	lo, err1 := strconv.Atoi(asciiDigits(left))
	hi, err2 := strconv.Atoi(asciiDigits(right))
	if errors.Is(err1, strconv.ErrRange) || errors.Is(err2, strconv.ErrRange) {
		return make([]string, 6000), true // beyond what can be counted here
	}
	if err1 != nil || err2 != nil || lo >= hi {
		return []string{item}, false
	}
	if hi-lo > 2000 {
		return make([]string, 6000), true // beyond what is compared
	}

	return numbersOf(lo, hi), true
}

func isLower(r rune) bool { return unicode.IsLower(r) || unicode.Is(unicode.Other_Lowercase, r) }

// asciiDigits converts digits of any script to ASCII; "-" if there is anything else.
func asciiDigits(s string) string {
	var b strings.Builder
	for _, r := range s {
		if !unicode.IsDigit(r) {
			return "-"
		}
		zero := r
		for unicode.IsDigit(zero-1) && r-zero < 9 {
			zero--
		}
		b.WriteRune('0' + r - zero)
	}
	return b.String()
}

// naiveGlob tries a shell pattern on the whole of s.
func naiveGlob(p, s []rune) bool { return naiveTry(p, s, map[[2]int]bool{}) }

// naiveTry remembers failures, so that many stars do not take for ever.
func naiveTry(p, s []rune, failed map[[2]int]bool) bool {
	at := [2]int{len(p), len(s)}
	if failed[at] {
		return false
	}

	ok := false
	switch {
	case len(p) == 0:
		ok = len(s) == 0
	case p[0] == '*':
		ok = naiveTry(p[1:], s, failed) || len(s) > 0 && naiveTry(p, s[1:], failed)
	case len(s) == 0:
	default:
		if body, rest, class := naiveClass(p); p[0] == '[' && class {
			ok = naiveHas(body, s[0]) && naiveTry(rest, s[1:], failed)
		} else {
			ok = (p[0] == '?' || p[0] == s[0]) && naiveTry(p[1:], s[1:], failed)
		}
	}

	failed[at] = !ok
	return ok
}

func naiveClass(p []rune) (body, rest []rune, ok bool) {
	first := 1
	if len(p) > 1 && p[1] == '!' {
		first = 2
	}
	for end := first + 1; end < len(p); end++ {
		if p[end] == ']' {
			return p[1:end], p[end+1:], true
		}
	}
	return nil, nil, false
}

func naiveHas(body []rune, r rune) bool {
	if body[0] == '!' {
		return !naiveIn(body[1:], r)
	}
	return naiveIn(body, r)
}

func naiveIn(body []rune, r rune) bool {
	if len(body) == 0 {
		return false
	}
	if len(body) > 2 && body[1] == '-' {
		return body[0] <= r && r <= body[2] || naiveIn(body[3:], r)
	}
	return body[0] == r || naiveIn(body[1:], r)
}

// naiveBackwards reports whether a class of the pattern has a range that runs backwards.
func naiveBackwards(p []rune) bool {
	for len(p) > 0 {
		if p[0] == '[' {
			if body, rest, ok := naiveClass(p); ok {
				if body[0] == '!' {
					body = body[1:]
				}
				for len(body) > 2 {
					if body[1] != '-' {
						body = body[1:]
						continue
					}
					if body[0] > body[2] {
						return true
					}
					body = body[3:]
				}
				p = rest
				continue
			}
		}
		p = p[1:]
	}
	return false
}
