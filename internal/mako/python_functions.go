package mako

import (
	"math"
	"math/big"
	"strconv"

	"go.starlark.net/starlark"
)

// python has the functions of Python that templates may call, and the types.
var python = makePython()

func makePython() map[string]Value {
	all := map[string]Value{}
	for name, f := range map[string]fn{
		"len":        pyLen,
		"abs":        pyAbs,
		"sum":        pySum,
		"min":        func(c *call) (Value, error) { return pyExtreme(c, -1) },
		"max":        func(c *call) (Value, error) { return pyExtreme(c, 1) },
		"round":      pyRound,
		"divmod":     pyDivmod,
		"pow":        pyPow,
		"sorted":     pySorted,
		"reversed":   pyReversed,
		"enumerate":  pyEnumerate,
		"zip":        pyZip,
		"map":        pyMap,
		"filter":     pyFilter,
		"any":        func(c *call) (Value, error) { return pyAny(c, true) },
		"all":        func(c *call) (Value, error) { return pyAny(c, false) },
		"repr":       func(c *call) (Value, error) { return c.shown(repr) },
		"ascii":      func(c *call) (Value, error) { return c.shown(func(v Value) string { return ascii(repr(v)) }) },
		"chr":        pyChr,
		"ord":        pyOrd,
		"hex":        func(c *call) (Value, error) { return pyBase(c, "0x", 16) },
		"oct":        func(c *call) (Value, error) { return pyBase(c, "0o", 8) },
		"bin":        func(c *call) (Value, error) { return pyBase(c, "0b", 2) },
		"format":     pyFormat,
		"isinstance": pyIsInstance,
		"type":       pyTypeOf,
		"callable":   pyCallable,
		"getattr":    pyGetattr,
		"hasattr":    pyHasattr,
	} {
		all[name] = builtin(name, f)
	}
	for name, t := range pyTypes {
		if name != "NoneType" && name != "function" {
			all[name] = t
		}
	}
	for name, t := range exceptions {
		all[name] = t
	}
	return all
}

func pyLen(c *call) (Value, error) {
	if err := c.count(1, 1); err != nil {
		return nil, err
	}
	n, err := c.run.length(c.args[0])
	return starlark.MakeInt(n), err
}

func pyAbs(c *call) (Value, error) {
	if err := c.count(1, 1); err != nil {
		return nil, err
	}
	n, _ := asNumber(c.args[0])
	switch x := n.(type) {
	case starlark.Float:
		return starlark.Float(math.Abs(float64(x))), nil
	case starlark.Int:
		if x.Sign() < 0 {
			return unary("-", x)
		}
		return x, nil
	}
	return nil, raise("TypeError", "bad operand type for abs(): '%s'", typeName(c.args[0]))
}

func pySum(c *call) (Value, error) {
	if err := c.count(1, 2); err != nil {
		return nil, err
	}
	items, err := c.items(c.args[0])
	if err != nil {
		return nil, err
	}
	var total Value = starlark.MakeInt(0)
	if v := c.arg(1, "start"); v != nil {
		total = v
	}
	if _, ok := total.(starlark.String); ok {
		return nil, raise("TypeError", "sum() can't sum strings [use ''.join(seq) instead]")
	}
	for _, item := range items {
		if total, err = c.run.binary("+", total, item); err != nil {
			return nil, err
		}
	}
	return total, nil
}

// pyExtreme is min and max.
func pyExtreme(c *call, want int) (Value, error) {
	items := []Value(c.args)
	if len(c.args) == 0 {
		return nil, raise("TypeError", "%s expected at least 1 argument, got 0", c.name)
	}
	if len(c.args) == 1 {
		var err error
		if items, err = c.items(c.args[0]); err != nil {
			return nil, err
		}
	}
	if len(items) == 0 {
		if v := c.kw["default"]; v != nil {
			return v, nil
		}
		return nil, raise("ValueError", "%s() arg is an empty sequence", c.name)
	}

	var best, bestKey Value
	op := map[int]string{-1: "<", 1: ">"}[want]
	for _, item := range items {
		key := item
		if f := c.kw["key"]; f != nil && f != starlark.None {
			k, err := c.invoke(f, item)
			if err != nil {
				return nil, err
			}
			key = k
		}
		if best != nil {
			n, err := c.run.order(op, key, bestKey, 0)
			if err != nil {
				return nil, err
			}
			if n != want {
				continue
			}
		}
		best, bestKey = item, key
	}
	return best, nil
}

func pyRound(c *call) (Value, error) {
	if err := c.count(1, 2); err != nil {
		return nil, err
	}
	n, ok := asNumber(c.args[0])
	if !ok {
		return nil, raise("TypeError", "type %s doesn't define __round__ method", typeName(c.args[0]))
	}
	digits := c.arg(1, "ndigits")
	f, isFloat := n.(starlark.Float)
	if digits == nil || digits == starlark.None {
		if isFloat {
			return floatToInt(math.RoundToEven(float64(f)))
		}
		return n, nil
	}
	d, err := asInt(digits)
	if err != nil {
		return nil, err
	}
	if !isFloat {
		return roundInt(n.(starlark.Int), d), nil
	}
	switch {
	case d > 300 || math.IsInf(float64(f), 0) || math.IsNaN(float64(f)):
		return f, nil
	case d < -300:
		return starlark.Float(0), nil
	case d < 0:
		scale := math.Pow10(-d)
		return starlark.Float(math.RoundToEven(float64(f)/scale) * scale), nil
	}
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(float64(f), 'f', d, 64), 64)
	return starlark.Float(rounded), err
}

// roundInt rounds an int to tens, hundreds and so on; halves go to the even one.
func roundInt(i starlark.Int, digits int) Value {
	if digits >= 0 {
		return i
	}
	if digits < -4000 {
		return starlark.MakeInt(0)
	}
	scale, err := power(starlark.MakeInt(10), starlark.MakeInt(-digits))
	if err != nil {
		return starlark.MakeInt(0)
	}
	s := scale.(starlark.Int)
	quotient, rest := i.Div(s), i.Mod(s)
	switch double := rest.Add(rest).BigInt().Cmp(s.BigInt()); {
	case double > 0, double == 0 && quotient.Mod(starlark.MakeInt(2)).Sign() != 0:
		quotient = quotient.Add(starlark.MakeInt(1))
	}
	return quotient.Mul(s)
}

func pyDivmod(c *call) (Value, error) {
	if err := c.count(2, 2); err != nil {
		return nil, err
	}
	_, xok := asNumber(c.args[0])
	if _, yok := asNumber(c.args[1]); !xok || !yok {
		return nil, operandError("divmod()", c.args[0], c.args[1])
	}
	if f, err := asFloat(c.args[1]); err == nil && f == 0 && (typeName(c.args[0]) == "float" || typeName(c.args[1]) == "float") {
		return nil, raise("ZeroDivisionError", "float divmod()")
	}
	q, err := c.run.binary("//", c.args[0], c.args[1])
	if err != nil {
		return nil, err
	}
	m, err := c.run.binary("%", c.args[0], c.args[1])
	return starlark.Tuple{q, m}, err
}

func pyPow(c *call) (Value, error) {
	if err := c.count(2, 3); err != nil {
		return nil, err
	}
	if len(c.args) == 2 || c.args[2] == starlark.None {
		return c.run.binary("**", c.args[0], c.args[1])
	}
	var n [3]*big.Int
	for i, a := range c.args {
		number, _ := asNumber(a)
		v, ok := number.(starlark.Int)
		if _, float := number.(starlark.Float); !ok && !float {
			return nil, raise("TypeError", "unsupported operand type(s) for ** or pow(): '%s', '%s', '%s'", typeName(c.args[0]),
				typeName(c.args[1]), typeName(c.args[2]))
		}
		if !ok {
			return nil, raise("TypeError", "pow() 3rd argument not allowed unless all arguments are integers")
		}
		n[i] = v.BigInt()
	}
	if n[2].Sign() == 0 {
		return nil, raise("ValueError", "pow() 3rd argument cannot be 0")
	}
	if n[1].BitLen() > 4096 || n[2].BitLen() > 4096 { // longer ones take seconds
		return nil, tooLarge()
	}

	m := new(big.Int).Abs(n[2])
	out := new(big.Int).Exp(new(big.Int).Mod(n[0], m), n[1], m)
	if out == nil {
		return nil, raise("ValueError", "base is not invertible for the given modulus")
	}
	if out.Mod(out, m); n[2].Sign() < 0 && out.Sign() > 0 { // the result has the sign of the modulus
		out.Add(out, n[2])
	}
	return starlark.MakeBigInt(out), nil
}
