package index

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/gozzard/gozzard/internal/expression"
)

// maxIDPatterns limits into how many patterns an expression over process ids is split. Above it every id is tested.
const maxIDPatterns = 4096

// rowSpans is a condition on process ids, as rows: rows are in the order of ids, so a range of ids is a span of rows.
// The spans are sorted and do not touch.
type rowSpans []span

func (l rowSpans) size() int {
	n := 0
	for _, s := range l {
		n += int(s.to - s.from)
	}
	return n
}

func (l rowSpans) has(row uint32) bool {
	i, found := slices.BinarySearchFunc(l, row, func(s span, row uint32) int { return cmp.Compare(s.from, row) })
	return found || i > 0 && row < l[i-1].to
}

// idRange is a range of ids, both ends included.
type idRange struct{ lo, hi int }

// rowsOfIDs returns the rows with an id in one of the ranges. It sorts the ranges.
func (c *columns) rowsOfIDs(ranges []idRange) rowSpans {
	list := make(rowSpans, 0, len(ranges))
	slices.SortFunc(ranges, func(a, b idRange) int { return cmp.Compare(a.lo, b.lo) })

	for _, r := range ranges {
		from, _ := slices.BinarySearch(c.ids, r.lo)
		to := len(c.ids)
		if r.hi < math.MaxInt {
			to, _ = slices.BinarySearch(c.ids, r.hi+1)
		}
		s := span{uint32(from), uint32(to)}
		if last := len(list) - 1; last >= 0 && s.from <= list[last].to {
			list[last].to = max(list[last].to, s.to)
		} else if s.from < s.to {
			list = append(list, s)
		}
	}

	return list
}

// idRanges splits an expression into the ranges of ids that it matches. ok is false when the expression is not made of
// ranges only.
func idRanges(e *expression.Expression) (ranges []idRange, ok bool) {
	patterns, ok := e.Literals()
	if !ok {
		if patterns, ok = e.Patterns(maxIDPatterns); !ok {
			return nil, false
		}
	}

	for _, p := range patterns {
		r, some, ok := patternRange(p)
		if !ok {
			return nil, false
		}
		if some {
			ranges = append(ranges, r)
		}
	}

	return ranges, true
}

// patternRange converts digits and classes of digits, such as 12[3-5][0-9], to the range of numbers that they match.
// After the first class each digit must be [0-9], otherwise it is not one range and ok is false. some is false when no
// id is written that way.
func patternRange(pattern string) (r idRange, some, ok bool) {
	some, ok = true, true
	zero, digits, open := strings.HasPrefix(pattern, "0"), 0, false
	for ; pattern != ""; digits++ {
		lo, hi, rest, valid := cutDigit(pattern)
		if !valid || open && (lo != 0 || hi != 9) {
			return idRange{}, false, false
		}
		open = open || lo < hi

		// Append the digit, within the limits of int.
		if r.lo > (math.MaxInt-lo)/10 { // no id is that large
			some = false
		} else {
			r.lo = r.lo*10 + lo
		}
		if r.hi > (math.MaxInt-hi)/10 {
			r.hi = math.MaxInt
		} else {
			r.hi = r.hi*10 + hi
		}
		pattern = rest
	}

	return r, some && digits > 0 && !(zero && digits > 1), true
}

// cutDigit reads one digit, or one class of digits such as [3-5], from the start of a pattern.
func cutDigit(s string) (lo, hi int, rest string, ok bool) {
	digit := func(i int) (int, bool) { return int(s[i]) - '0', s[i] >= '0' && s[i] <= '9' }
	if lo, ok = digit(0); ok {
		return lo, lo, s[1:], true
	}
	if len(s) < 5 || s[0] != '[' || s[2] != '-' || s[4] != ']' {
		return 0, 0, "", false
	}
	lo, first := digit(1)
	hi, second := digit(3)
	return lo, hi, s[5:], first && second && lo <= hi
}
