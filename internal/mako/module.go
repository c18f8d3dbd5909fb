package mako

import (
	"math"
	"math/big"

	"go.starlark.net/starlark"
)

// module is what an import gives.
func (r *run) module(name string) (Value, error) {
	var attrs map[string]Value
	switch name {
	case "math":
		attrs = mathModule()
	case "json":
		attrs = functions(map[string]fn{"dumps": jsonDumps, "loads": jsonLoads})
		attrs["JSONDecodeError"] = exceptions["json.JSONDecodeError"]
	case "datetime":
		attrs = datetimeModule()
	case "time":
		attrs = timeModule()
	case "re":
		attrs = reModule()
	case "random":
		if r.with.Random != nil {
			attrs = randomModule()
		}
	}
	if attrs == nil {
		return nil, raise("ModuleNotFoundError", "No module named '%s'", name)
	}
	return &object{class: "module", text: name, attr: func(name string) (Value, bool) {
		v, ok := attrs[name]
		return v, ok
	}}, nil
}

func functions(all map[string]fn) map[string]Value {
	out := make(map[string]Value, len(all))
	for name, f := range all {
		out[name] = builtin(name, f)
	}
	return out
}

func mathModule() map[string]Value {
	one := func(f func(float64) float64) fn {
		return func(c *call) (Value, error) {
			if err := c.count(1, 1); err != nil {
				return nil, err
			}
			x, err := asFloat(c.args[0])
			if err != nil {
				return nil, err
			}
			y := f(x)
			if math.IsNaN(y) && !math.IsNaN(x) || math.IsInf(y, 0) && !math.IsInf(x, 0) {
				return nil, raise("ValueError", "math domain error")
			}
			return starlark.Float(y), nil
		}
	}
	whole := func(f func(float64) float64) fn {
		return func(c *call) (Value, error) {
			if err := c.count(1, 1); err != nil {
				return nil, err
			}
			if i, ok := c.args[0].(starlark.Int); ok {
				return i, nil
			}
			x, err := asFloat(c.args[0])
			if err != nil && c.name == "trunc" {
				return nil, raise("TypeError", "type %s doesn't define __trunc__ method", typeName(c.args[0]))
			}
			if err != nil {
				return nil, err
			}
			return floatToInt(f(x))
		}
	}

	all := functions(map[string]fn{
		"floor": whole(math.Floor), "ceil": whole(math.Ceil), "trunc": whole(math.Trunc),
		"sqrt": one(math.Sqrt), "exp": one(exactExp), "log2": one(math.Log2), "log10": one(exactLog10),
		"fabs": one(math.Abs), "sin": one(math.Sin), "cos": one(math.Cos), "tan": one(math.Tan), "asin": one(math.Asin),
		"acos": one(math.Acos), "atan": one(math.Atan), "degrees": one(func(x float64) float64 { return x * 180 / math.Pi }),
		"radians": one(func(x float64) float64 { return x * math.Pi / 180 }),
		"log":     mathLog, "pow": mathPow, "fmod": mathPow, "gcd": mathGcd,
		"isnan": func(c *call) (Value, error) {
			x, err := asFloat(c.otherwise(0))
			return starlark.Bool(math.IsNaN(x)), err
		},
	})
	for name, f := range map[string]float64{"pi": math.Pi, "e": math.E, "inf": math.Inf(1), "nan": math.NaN(), "tau": 2 * math.Pi} {
		all[name] = starlark.Float(f)
	}
	return all
}

func mathLog(c *call) (Value, error) {
	if err := c.count(1, 2); err != nil {
		return nil, err
	}
	x, err := asFloat(c.args[0])
	if err != nil {
		return nil, err
	}
	if x <= 0 {
		return nil, raise("ValueError", "math domain error")
	}
	if len(c.args) == 1 {
		return starlark.Float(exactLog(x)), nil
	}
	base, err := asFloat(c.args[1])
	if err != nil || base <= 0 || base == 1 {
		return nil, raise("ValueError", "math domain error")
	}
	return starlark.Float(exactLog(x) / exactLog(base)), nil
}

// mathPow is pow and fmod of two floats.
func mathPow(c *call) (Value, error) {
	if err := c.count(2, 2); err != nil {
		return nil, err
	}
	x, err := asFloat(c.args[0])
	if err != nil {
		return nil, err
	}
	y, err := asFloat(c.args[1])
	if err != nil {
		return nil, err
	}
	z := exactPow(x, y)
	if c.name == "fmod" {
		z = math.Mod(x, y)
	}
	if math.IsNaN(z) || math.IsInf(z, 0) {
		return nil, raise("ValueError", "math domain error")
	}
	return starlark.Float(z), nil
}

func mathGcd(c *call) (Value, error) {
	total := new(big.Int)
	for _, a := range c.args {
		n, _ := asNumber(a)
		i, ok := n.(starlark.Int)
		if !ok {
			return nil, raise("TypeError", "'%s' object cannot be interpreted as an integer", typeName(a))
		}
		total.GCD(nil, nil, total, new(big.Int).Abs(i.BigInt()))
	}
	return starlark.MakeBigInt(total), nil
}

func randomModule() map[string]Value {
	between := func(c *call, low, high Value) (int, error) {
		a, err := asInt(low)
		if err != nil {
			return 0, err
		}
		b, err := asInt(high)
		if err != nil {
			return 0, err
		}
		if a > b || b-a < 0 || b-a == math.MaxInt {
			return 0, raise("ValueError", "empty range for randrange()")
		}
		return a + c.run.with.Random.IntN(b-a+1), nil
	}
	return functions(map[string]fn{
		"random": func(c *call) (Value, error) { return starlark.Float(c.run.with.Random.Float64()), c.count(0, 0) },
		"randint": func(c *call) (Value, error) {
			if err := c.count(2, 2); err != nil {
				return nil, err
			}
			n, err := between(c, c.args[0], c.args[1])
			return starlark.MakeInt(n), err
		},
		"choice": func(c *call) (Value, error) {
			if err := c.count(1, 1); err != nil {
				return nil, err
			}
			items, err := c.items(c.args[0])
			if err != nil {
				return nil, err
			}
			if len(items) == 0 {
				return nil, raise("IndexError", "Cannot choose from an empty sequence")
			}
			return items[c.run.with.Random.IntN(len(items))], nil
		},
	})
}
