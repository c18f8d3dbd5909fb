package mako

import (
	"math"
	"math/big"
)

// Python's powers and logarithms are those of its C library, which are exact to the last digit in nearly all cases. Go's are
// not, so these are computed with more digits and rounded once.

// exactBits is the precision in between.
const exactBits = 160

func newFloat(f float64) *big.Float { return new(big.Float).SetPrec(exactBits).SetFloat64(f) }

// ln2 is the logarithm of 2.
var ln2, _, _ = big.ParseFloat("0.693147180559945309417232121458176568075500134360255254120680009493393621969694715605863", 10, exactBits, big.ToNearestEven)

// bigLog is the logarithm of a number above 0: that of its mantissa by a series, and of its power of two.
func bigLog(x float64) *big.Float {
	mantissa, exponent := math.Frexp(x)
	if mantissa < math.Sqrt2/2 {
		mantissa *= 2
		exponent--
	}
	m := newFloat(mantissa)
	one := newFloat(1)
	z := new(big.Float).Quo(new(big.Float).Sub(m, one), new(big.Float).Add(m, one)) // ln m = 2 atanh z
	square := new(big.Float).Mul(z, z)
	sum, power := newFloat(0), new(big.Float).Set(z)
	for n := 1.0; n < 70; n += 2 { // z is below 0.172: each term has 5 bits more
		sum.Add(sum, new(big.Float).Quo(power, newFloat(n)))
		power.Mul(power, square)
	}
	sum.Mul(sum, newFloat(2))
	return sum.Add(sum, new(big.Float).Mul(ln2, newFloat(float64(exponent))))
}

// bigExp is e to the power of x, as a float.
func bigExp(x *big.Float) float64 {
	rough, _ := x.Float64()
	switch {
	case rough > 710:
		return math.Inf(1)
	case rough < -750:
		return 0
	}
	twos := math.Round(rough / math.Ln2)
	rest := new(big.Float).Sub(x, new(big.Float).Mul(ln2, newFloat(twos)))
	sum, term := newFloat(1), newFloat(1)
	for n := 1.0; n < 40; n++ { // the rest is below 0.35
		term.Mul(term, rest)
		term.Quo(term, newFloat(n))
		sum.Add(sum, term)
	}
	f, _ := sum.SetMantExp(sum, int(twos)).Float64()
	return f
}

func plain(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) && x != 0 }

func exactExp(x float64) float64 {
	if !plain(x) {
		return math.Exp(x)
	}
	return bigExp(newFloat(x))
}

func exactLog(x float64) float64 {
	if !plain(x) || x < 0 {
		return math.Log(x)
	}
	f, _ := bigLog(x).Float64()
	return f
}

// exactLog10 is not rounded once: the C library adds the part of the power of two, in two pieces, to that of the mantissa, and the
// last digit shows it.
func exactLog10(x float64) float64 {
	if !plain(x) || x < 0 {
		return math.Log10(x)
	}
	const (
		high   = 3.01029995663611771306e-01 // of the logarithm of 2, with zeros at its end
		low    = 3.69423907715893078616e-13
		ofLn10 = 4.34294481903251816668e-01 // 1 / ln 10
	)
	mantissa, exponent := math.Frexp(x) // from 1/2 to 1
	twos := float64(exponent)
	if exponent > 0 {
		mantissa, twos = 2*mantissa, twos-1
	}
	ofMantissa := float64(ofLn10 * exactLog(mantissa))
	return float64(float64(twos*low)+ofMantissa) + float64(twos*high)
}

func exactPow(x, y float64) float64 {
	if !plain(x) || !plain(y) || x < 0 && y != math.Trunc(y) {
		return math.Pow(x, y)
	}
	// The error of the logarithm grows with the exponent; this large, the result is infinite, 0, or very near to 1.
	z := bigExp(new(big.Float).Mul(bigLog(math.Abs(x)), newFloat(y)))
	if x < 0 && math.Mod(y, 2) != 0 {
		return -z
	}
	return z
}
