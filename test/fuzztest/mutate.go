package fuzztest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
)

const (
	maxInput = 64 << 10 // bytes of one text after changes: other tests cover long texts
	maxSteps = 6        // changes of one input
)

// odd are pieces of text that parsers often handle wrongly.
var odd = []string{
	"", " ", "\x00", "\n", "\r\n", "\t", "\"", "'", "\\", "\\u0000", "\\ud800", "\xff", "\xc0\x80", "\xef\xbb\xbf",
	"\u202e", "\u2028", "中", "é",
	"null", "true", "false", "0", "-0", "-1", "1", "255", "256", "65535", "2147483647", "2147483648", "4294967296",
	"9223372036854775807", "-9223372036854775808",
	"18446744073709551616", "1e0", "1e309", "1.5", "0x10", "NaN", "{", "}", "[", "]", "{}", "[]", "[[[[[[[[", ",",
	":", "/*", "..", "../", "/", "*", "?", "!", "[!", "[a-", "[1-9]",
	"%00", "%2e", "&", "=", "|", "---\n", "- ", "&a", "*a", "!!str ", "<<: ", "GSETASK:", "gz1.",
}

// mutator makes inputs from seeds.
type mutator struct {
	rnd    *rand.Rand
	seeds  [][]any
	pieces []string
}

var word = regexp.MustCompile(`"[^"\\]{1,40}"|[A-Za-z_][A-Za-z0-9_.-]{1,40}|[0-9]+`)

func newMutator(rnd *rand.Rand, seeds [][]any) *mutator {
	m := &mutator{rnd: rnd, seeds: seeds, pieces: slices.Clone(odd)}
	known := map[string]bool{}
	for _, s := range seeds {
		for _, a := range s {
			for _, w := range word.FindAllString(textOf(a), 200) {
				if !known[w] {
					known[w] = true
					m.pieces = append(m.pieces, w)
				}
			}
		}
	}

	return m
}

func textOf(a any) string {
	switch a := a.(type) {
	case []byte:
		return string(a)
	case string:
		return a
	}
	return ""
}

// next is a changed seed.
func (m *mutator) next() []any {
	if len(m.seeds) == 0 {
		panic("a fuzz target without seeds")
	}
	out := slices.Clone(m.seeds[m.rnd.IntN(len(m.seeds))])
	for i, a := range out {
		out[i] = m.change(i, a)
	}
	return out
}

// change makes another value of the type of a, the argument at index i of a seed.
func (m *mutator) change(i int, a any) any {
	switch a := a.(type) {
	case []byte:
		return m.text(i, slices.Clone(a))
	case string:
		return string(m.text(i, []byte(a)))
	case bool:
		return m.rnd.IntN(2) == 0
	case uint8:
		return uint8(m.rnd.Uint32())
	case uint16:
		return uint16(m.rnd.Uint32())
	case uint32:
		return m.rnd.Uint32()
	case uint64:
		return m.rnd.Uint64() >> m.rnd.IntN(64)
	case int:
		return int(m.number(int64(a)))
	case int32:
		return int32(m.number(int64(a)))
	case int64:
		return m.number(a)
	}

	panic(fmt.Sprintf("a fuzz target with an argument of type %T", a))
}

func (m *mutator) number(n int64) int64 {
	switch m.rnd.IntN(4) {
	case 0:
		return n
	case 1:
		return n + int64(m.rnd.IntN(33)) - 16
	case 2:
		return []int64{0, 1, -1, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64}[m.rnd.IntN(7)]
	}
	return int64(m.rnd.Uint64() >> m.rnd.IntN(64))
}

func (m *mutator) text(i int, b []byte) []byte {
	for range m.rnd.IntN(maxSteps + 1) { // sometimes none: the other arguments change
		b = m.step(i, b)
	}
	return b[:min(len(b), maxInput)]
}

func (m *mutator) step(i int, b []byte) []byte {
	at := m.rnd.IntN(len(b) + 1)
	end := at + m.rnd.IntN(min(len(b)-at, 40)+1)
	switch m.rnd.IntN(8) {
	case 0: // flip a bit
		if at < len(b) {
			b[at] ^= 1 << m.rnd.IntN(8)
		}
		return b
	case 1: // change a byte
		return slices.Insert(b, at, byte(m.rnd.Uint32()))
	case 2: // remove a part
		return slices.Delete(b, at, end)
	case 3: // cut off the end
		return b[:at]
	case 4: // repeat a part
		part := slices.Clone(b[at:end])
		for range 1 + m.rnd.IntN(3)*m.rnd.IntN(20) {
			b = slices.Insert(b, at, part...)
		}
		return b
	case 5: // insert a part of another seed
		other := []byte(textOf(m.seeds[m.rnd.IntN(len(m.seeds))][i]))
		from := m.rnd.IntN(len(other) + 1)
		return slices.Replace(b, at, end, other[from:]...)
	case 6: // replace a word by another
		if spots := word.FindAllIndex(b, 100); len(spots) > 0 {
			s := spots[m.rnd.IntN(len(spots))]
			return slices.Replace(b, s[0], s[1], []byte(m.piece())...)
		}
	}

	return slices.Insert(b, at, []byte(m.piece())...)
}

func (m *mutator) piece() string { return m.pieces[m.rnd.IntN(len(m.pieces))] }
