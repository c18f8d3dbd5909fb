package mako

import (
	"math"
	"math/big"
	"strings"

	"go.starlark.net/starlark"
)

// maxBits limits the size of an int.
const maxBits = 1 << 16

// binary is a binary operator.
func (r *run) binary(op string, a, b Value) (Value, error) {
	if op == "%" {
		if format, ok := a.(starlark.String); ok {
			return r.percent(string(format), b)
		}
	}
	x, xok := asNumber(a)
	y, yok := asNumber(b)
	if xok && yok {
		return arithmetic(op, a, b, x, y)
	}

	if v := momentOperation(op, a, b); v != nil {
		return v, nil
	}
	switch op {
	case "+":
		return r.add(a, b)
	case "*":
		return r.multiply(a, b)
	case "-", "&", "|", "^":
		if isSetView(a) || isSetView(b) {
			return r.viewOperation(op, a, b)
		}
		if v, err := r.setOperation(op, a, b); v != nil || err != nil {
			return v, err
		}
	}
	return nil, operandError(op, a, b)
}

func operandError(op string, a, b Value) error {
	op = strings.Replace(op, "**", "** or pow()", 1)
	return raise("TypeError", "unsupported operand type(s) for %s: '%s' and '%s'", op, typeName(a), typeName(b))
}

// arithmetic is an operator on two numbers; a and b are the operands before bools became ints.
func arithmetic(op string, a, b, x, y Value) (Value, error) {
	i, iok := x.(starlark.Int)
	j, jok := y.(starlark.Int)
	if !iok || !jok {
		f, err := asFloat(x)
		if err != nil {
			return nil, err
		}
		g, err := asFloat(y)
		if err != nil {
			return nil, err
		}
		return floats(op, f, g, a, b)
	}

	if _, both := a.(starlark.Bool); both {
		if _, both := b.(starlark.Bool); both && (op == "&" || op == "|" || op == "^") {
			v, err := integers(op, i, j, a, b)
			if err != nil {
				return nil, err
			}
			return v.Truth(), nil
		}
	}
	return integers(op, i, j, a, b)
}

func integers(op string, i, j starlark.Int, a, b Value) (Value, error) {
	zero := j.Sign() == 0
	switch op {
	case "+":
		return bounded(i.Add(j))
	case "-":
		return bounded(i.Sub(j))
	case "*":
		if i.BigInt().BitLen()+j.BigInt().BitLen() > maxBits {
			return nil, tooLarge()
		}
		return i.Mul(j), nil
	case "/":
		if zero {
			return nil, raise("ZeroDivisionError", "division by zero")
		}
		if i.Sign() == 0 && j.Sign() < 0 {
			return starlark.Float(math.Copysign(0, -1)), nil
		}
		f, _ := new(big.Rat).SetFrac(i.BigInt(), j.BigInt()).Float64()
		if math.IsInf(f, 0) {
			return nil, raise("OverflowError", "integer division result too large for a float")
		}
		return starlark.Float(f), nil
	case "//":
		if zero {
			return nil, raise("ZeroDivisionError", "integer division or modulo by zero")
		}
		return i.Div(j), nil
	case "%":
		if zero {
			return nil, raise("ZeroDivisionError", "integer modulo by zero")
		}
		return i.Mod(j), nil
	case "**":
		return power(i, j)
	case "<<", ">>":
		return shift(op, i, j)
	case "&":
		return i.And(j), nil
	case "|":
		return i.Or(j), nil
	case "^":
		return i.Xor(j), nil
	}
	return nil, operandError(op, a, b)
}

func tooLarge() error { return &limitError{"a number of the template is too large"} }

func bounded(i starlark.Int) (Value, error) {
	if i.BigInt().BitLen() > maxBits {
		return nil, tooLarge()
	}
	return i, nil
}

func power(i, j starlark.Int) (Value, error) {
	if j.Sign() < 0 {
		f, _ := asFloat(i)
		g, _ := asFloat(j)
		return floats("**", f, g, i, j)
	}
	base := i.BigInt()
	n, ok := j.Int64()
	if base.BitLen() <= 1 && base.Sign() >= 0 { // 0 and 1
		n, ok = min(n, 1), true
		if j.Sign() > 0 {
			n = 1
		}
	}
	if !ok || n > maxBits || int64(base.BitLen())*n > maxBits {
		return nil, tooLarge()
	}
	return starlark.MakeBigInt(new(big.Int).Exp(base, big.NewInt(n), nil)), nil
}

func shift(op string, i, j starlark.Int) (Value, error) {
	n, ok := j.Int64()
	if j.Sign() < 0 {
		return nil, raise("ValueError", "negative shift count")
	}
	if op == ">>" {
		return i.Rsh(uint(min(n, maxBits))), nil
	}
	if !ok || n > maxBits || i.BigInt().BitLen()+int(n) > maxBits {
		return nil, tooLarge()
	}
	return i.Lsh(uint(n)), nil
}

func floats(op string, f, g float64, a, b Value) (Value, error) {
	switch op {
	case "+":
		return starlark.Float(f + g), nil
	case "-":
		return starlark.Float(f - g), nil
	case "*":
		return starlark.Float(f * g), nil
	case "/":
		if g == 0 {
			return nil, raise("ZeroDivisionError", "float division by zero")
		}
		return starlark.Float(f / g), nil
	case "//", "%":
		if g == 0 {
			return nil, raise("ZeroDivisionError", "%s", map[string]string{"//": "float floor division by zero",
				"%": "float modulo"}[op])
		}
		quotient, rest := floorDivide(f, g)
		if op == "//" {
			return starlark.Float(quotient), nil
		}
		return starlark.Float(rest), nil
	case "**":
		if f == 0 && g < 0 {
			return nil, raise("ZeroDivisionError", "0.0 cannot be raised to a negative power")
		}
		if f < 0 && g != math.Trunc(g) {
			return nil, raise("ValueError", "complex numbers are not supported")
		}
		v := exactPow(f, g)
		if math.IsInf(v, 0) && !math.IsInf(f, 0) && !math.IsInf(g, 0) {
			return nil, raise("OverflowError", "(34, 'Numerical result out of range')")
		}
		return starlark.Float(v), nil
	}
	return nil, operandError(op, a, b)
}

// floorDivide divides as Python does: the rest has the sign of the divisor.
func floorDivide(f, g float64) (quotient, rest float64) {
	rest = math.Mod(f, g)
	quotient = (f - rest) / g
	if rest != 0 && (g < 0) != (rest < 0) {
		rest += g
		quotient--
	} else if rest == 0 {
		rest = math.Copysign(0, g)
	}
	if quotient == 0 {
		return math.Copysign(0, f/g), rest
	}
	floor := math.Floor(quotient)
	if quotient-floor > 0.5 {
		floor++
	}
	return floor, rest
}

func (r *run) add(a, b Value) (Value, error) {
	switch x := a.(type) {
	case starlark.String:
		y, ok := b.(starlark.String)
		if !ok {
			return nil, raise("TypeError", "can only concatenate str (not \"%s\") to str", typeName(b))
		}
		if err := r.spend(len(x) + len(y)); err != nil {
			return nil, err
		}
		return x + y, nil
	case *starlark.List:
		y, ok := b.(*starlark.List)
		if !ok {
			return nil, raise("TypeError", "can only concatenate list (not \"%s\") to list", typeName(b))
		}
		return r.list(append(listItems(x), listItems(y)...))
	case starlark.Tuple:
		y, ok := b.(starlark.Tuple)
		if !ok {
			return nil, raise("TypeError", "can only concatenate tuple (not \"%s\") to tuple", typeName(b))
		}
		if err := r.spendEach(len(x)+len(y), 16); err != nil {
			return nil, err
		}
		return append(append(starlark.Tuple{}, x...), y...), nil
	}
	return nil, operandError("+", a, b)
}

// list makes a list, which counts as memory.
func (r *run) list(items []Value) (Value, error) {
	if err := r.spendEach(len(items), 16); err != nil {
		return nil, err
	}
	return starlark.NewList(items), nil
}

func (r *run) multiply(a, b Value) (Value, error) {
	isSequence := func(v Value) bool {
		switch v.(type) {
		case starlark.String, *starlark.List, starlark.Tuple:
			return true
		}
		return false
	}
	sequence, other := a, b
	if !isSequence(a) {
		sequence, other = b, a
	}
	if !isSequence(sequence) {
		return nil, operandError("*", a, b)
	}
	count, _ := asNumber(other)
	times, isInt := count.(starlark.Int)
	if !isInt {
		return nil, raise("TypeError", "can't multiply sequence by non-int of type '%s'", typeName(other))
	}
	n := 0
	if times.Sign() > 0 {
		i, fits := times.Int64()
		if !fits || i > math.MaxInt32 {
			i = math.MaxInt32
		}
		n = int(i)
	}
	return r.repeat(sequence, n)
}

func (r *run) repeat(sequence Value, n int) (Value, error) {
	if s, ok := sequence.(starlark.String); ok {
		if err := r.spendEach(n, len(s)); err != nil {
			return nil, err
		}
		return starlark.String(strings.Repeat(string(s), n)), nil
	}

	items, err := r.items(sequence)
	if err != nil {
		return nil, err
	}
	if err := r.spendEach(n, len(items)*16); err != nil {
		return nil, err
	}
	all := make([]Value, 0, n*len(items))
	for range n {
		if len(items) == 0 {
			break
		}
		all = append(all, items...)
	}
	if _, ok := sequence.(starlark.Tuple); ok {
		return starlark.Tuple(all), nil
	}
	return starlark.NewList(all), nil
}

// unary is -, + or ~.
func unary(op string, v Value) (Value, error) {
	n, ok := asNumber(v)
	if !ok {
		return nil, raise("TypeError", "bad operand type for unary %s: '%s'", op, typeName(v))
	}
	switch x := n.(type) {
	case starlark.Int:
		switch op {
		case "-":
			return starlark.MakeInt(0).Sub(x), nil
		case "~":
			return x.Not(), nil
		}
		return x, nil
	case starlark.Float:
		switch op {
		case "-":
			return -x, nil
		case "+":
			return x, nil
		}
	}
	return nil, raise("TypeError", "bad operand type for unary %s: '%s'", op, typeName(v))
}
