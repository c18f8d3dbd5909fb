package expression

import (
	"cmp"
	"math/big"
	"strings"
	"unicode"
)

// numbers is a range of integers with both ends included. The ends are decimal texts without leading zeros, because an
// expression may contain numbers of any length.
type numbers struct{ lo, hi string }

// numberRange parses two numbers in decimal digits of any script; nil if they are not a range.
func numberRange(left, right []rune) *numbers {
	lo, ok := decimal(left)
	if !ok {
		return nil
	}
	hi, ok := decimal(right)
	if !ok || compareDecimal(lo, hi) >= 0 {
		return nil
	}
	return &numbers{lo: lo, hi: hi}
}

// decimal converts digits of any script to decimal text without leading zeros; ok is false for anything else.
func decimal(digits []rune) (string, bool) {
	var b strings.Builder
	for _, r := range digits {
		d, ok := digit(r)
		if !ok {
			return "", false
		}
		if b.Len() > 0 || d > 0 {
			b.WriteByte('0' + d)
		}
	}

	if len(digits) > 0 && b.Len() == 0 {
		return "0", true
	}

	return b.String(), len(digits) > 0
}

// digit is the value of a decimal digit. In Unicode the ten digits of each script are consecutive, so each range of the
// table begins with a zero.
func digit(r rune) (byte, bool) {
	if r < unicode.MaxASCII {
		return byte(r - '0'), r >= '0' && r <= '9'
	}

	for _, x := range unicode.Nd.R16 {
		if r >= rune(x.Lo) && r <= rune(x.Hi) {
			return byte((r - rune(x.Lo)) % 10), true
		}
	}

	for _, x := range unicode.Nd.R32 {
		if r >= rune(x.Lo) && r <= rune(x.Hi) {
			return byte((r - rune(x.Lo)) % 10), true
		}
	}

	return 0, false
}

func compareDecimal(a, b string) int {
	if c := cmp.Compare(len(a), len(b)); c != 0 {
		return c
	}
	return strings.Compare(a, b)
}

// widths returns the lengths, from first to last, of all prefixes of s that are numbers in the range; last < first if
// there is none.
func (n *numbers) widths(s string) (first, last int) {
	digits := 0
	for digits < len(s) && digits < len(n.hi) && s[digits] >= '0' && s[digits] <= '9' {
		digits++
	}

	if digits > 1 && s[0] == '0' {
		digits = 1
	}

	first, last = len(n.lo), digits
	if first <= last && s[:first] < n.lo {
		first++
	}
	if last == len(n.hi) && s[:last] > n.hi {
		last--
	}

	return first, last
}

// texts lists the numbers, if they are at most limit.
func (n *numbers) texts(limit int) ([]string, bool) {
	lo, hi := n.bounds()
	if count := new(big.Int).Sub(hi, lo); !count.IsInt64() || count.Int64() >= int64(limit) {
		return nil, false
	}
	var list []string
	for one := big.NewInt(1); lo.Cmp(hi) <= 0; lo.Add(lo, one) {
		list = append(list, lo.String())
	}
	return list, true
}

func (n *numbers) bounds() (lo, hi *big.Int) {
	lo, _ = new(big.Int).SetString(n.lo, 10)
	hi, _ = new(big.Int).SetString(n.hi, 10)
	return lo, hi
}

// patterns writes the range as patterns of digits: 1-100 as [1-9], [1-9][0-9] and 100. It splits the range into pieces
// in which each digit varies independently: after numbers that end in nines, and before numbers that end in zeros.
func (n *numbers) patterns(size int) ([]string, bool) {
	var list []string
	written := 0
	lo, hi := n.bounds()
	for lo.Cmp(hi) <= 0 {
		end := pieceEnd(lo, hi)
		pattern := digitPattern(lo.String(), end.String())
		if written += len(pattern); written > size {
			return nil, false
		}
		list = append(list, pattern)
		lo = end.Add(end, big.NewInt(1))
	}

	return list, true
}

// pieceEnd is the end of the piece that begins with lo: the greatest number up to hi that differs from lo only in its
// trailing zeros and in one digit before them.
func pieceEnd(lo, hi *big.Int) *big.Int {
	zeros := len(lo.String()) - len(strings.TrimRight(lo.String(), "0"))
	if lo.Sign() == 0 {
		zeros = 0
	}

	one, ten := big.NewInt(1), big.NewInt(10)
	for ; zeros >= 0; zeros-- {
		// lo is ...d000: up to ...9999 if that is within the range, else as many steps of 1000 as fit.
		unit := new(big.Int).Exp(ten, big.NewInt(int64(zeros)), nil)
		end := new(big.Int).Mul(unit, ten)
		end.Sub(end, new(big.Int).Mod(lo, end))
		end.Add(end, lo).Sub(end, one)
		if end.Cmp(hi) <= 0 {
			return end
		}
		steps := new(big.Int).Sub(hi, lo)
		if steps.Add(steps, one).Div(steps, unit); steps.Sign() > 0 {
			return end.Mul(steps, unit).Add(end, lo).Sub(end, one)
		}
	}

	return new(big.Int).Set(hi)
}

func digitPattern(lo, hi string) string {
	var b strings.Builder
	for i := range len(lo) {
		if lo[i] == hi[i] {
			b.WriteByte(lo[i])
			continue
		}
		b.WriteString("[" + lo[i:i+1] + "-" + hi[i:i+1] + "]")
	}
	return b.String()
}
