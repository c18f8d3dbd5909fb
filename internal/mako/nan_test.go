package mako_test

import "testing"

// TestNotANumber: what is not a number has no order and equals nothing; in a list it is the same object. The outputs are those of
// CPython 3.11, also those of other rare forms.
func TestNotANumber(t *testing.T) {
	with := processContext(t, readTree(t, readVectors(t).Tree))
	for text, want := range map[string]string{
		"<% n = float('nan') %>${[5] < [n]} ${5 < n} ${5 > n} ${n >= 5} ${n == n} ${n != n} ${[n] == [n]} ${n in [n]}": "False False False False False True True True",
		"<% n = float('nan') %>${max(1, n)} ${min(n, 1)} ${sorted([3, n, 1])} ${float('inf') > n} ${(1, n) <= (1, 2)}": "1 nan [3, nan, 1] False False",
		"${'%.*f' % (-3, 10)} ${'%.*s|' % (-1, 'abc')} ${'%*d' % (-4, 7)}|":                                            "10 | 7   |",
		"% try:\n<% x = 1.5\ndel x[0] %>\n% except TypeError as e:\n${e}\n% endtry\n":                                  "'float' object does not support item deletion\n",
		"% try:\n${{}['a'][::2]}\n% except KeyError as e:\n${e}\n% endtry\n":                                           "'a'\n",
		"% try:\n${{1: 2}[1:'x']}\n% except TypeError as e:\n${e}\n% endtry\n":                                         "unhashable type: 'slice'\n",
		"<% import re %>\n% try:\n${re.match('a', 'a')[0:1]}\n% except IndexError as e:\n${e}\n% endtry\n":             "\nno such group\n",
		"% try:\n${int('管' * 300)}\n% except ValueError as e:\n${len(str(e))}\n% endtry\n":                             "240\n",
		"<% import math %>${math.log10(11.5)} ${math.log10(1000)} ${math.log10(0.3)} ${math.log10(5e-324)}":            "1.0606978403536118 3.0 -0.5228787452803376 -323.3062153431158",
		"% try:\n<% v = {1: 2}.items()\nv *= [1] %>\n% except TypeError as e:\n${e}\n% endtry\n":                       "unsupported operand type(s) for *=: 'dict_items' and 'list'\n",
		"% try:\n${{1}[0:1]}\n% except TypeError as e:\n${e}\n% endtry\n":                                              "'set' object is not subscriptable\n",
		"% try:\n<% x = (1,)\ndel x[0] %>\n% except TypeError as e:\n${e}\n% endtry\n":                                 "'tuple' object doesn't support item deletion\n",
	} {
		if got, err := render(text, with); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
}
