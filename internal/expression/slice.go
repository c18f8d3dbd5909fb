package expression

import (
	"strconv"
	"strings"
)

// Slice is a part of a list in the notation of Python: nil is an open end, negative numbers count from the end of the
// list.
type Slice struct{ From, To *int }

// ParseSlice parses the slice form of a process id expression, such as [0:2], [:2] or [-1:]; ok is false if text is
// not a slice. Text after the slice is ignored, except that a second slice selects the whole list. GSEKit behaves like
// that.
func ParseSlice(text string) (s Slice, ok bool) {
	s, rest, ok := cutSlice(text)
	if !ok {
		return Slice{}, false
	}
	for i := strings.IndexByte(rest, '['); i >= 0; i = strings.IndexByte(rest, '[') {
		rest = rest[i:]
		if _, _, again := cutSlice(rest); again {
			return Slice{}, true
		}
		rest = rest[1:]
	}
	return s, true
}

// cutSlice parses a slice at the beginning of a text.
func cutSlice(text string) (s Slice, rest string, ok bool) {
	if rest, ok = strings.CutPrefix(text, "["); !ok {
		return Slice{}, "", false
	}
	s.From, rest = cutInt(rest)
	rest = strings.TrimPrefix(rest, " ")
	if rest, ok = strings.CutPrefix(rest, ":"); !ok {
		return Slice{}, "", false
	}
	rest = strings.TrimPrefix(rest, " ")
	s.To, rest = cutInt(rest)
	rest, ok = strings.CutPrefix(rest, "]")
	return s, rest, ok
}

// cutInt reads a signed integer, nil if there is none. A number that is too large becomes the largest integer.
func cutInt(text string) (*int, string) {
	end := 0
	if text != "" && (text[0] == '+' || text[0] == '-') {
		end = 1
	}

	sign := end
	for end < len(text) && text[end] >= '0' && text[end] <= '9' {
		end++
	}

	if end == sign {
		return nil, text
	}

	// The text has digits only. The only error is that of the range; it comes with the largest integer.
	n, _ := strconv.Atoi(text[:end])
	return &n, text[end:]
}

// Bounds are the indexes of the slice in a list of n elements: list[from:to]. They are empty if the slice runs
// backwards.
func (s Slice) Bounds(n int) (from, to int) {
	place := func(end *int, open int) int {
		switch {
		case end == nil:
			return open
		case *end < 0:
			return max(n+*end, 0)
		}
		return min(*end, n)
	}
	from, to = place(s.From, 0), place(s.To, n)
	return from, max(from, to)
}
