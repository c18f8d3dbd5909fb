package mako

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.starlark.net/starlark"
)

// exception is an exception of Python, as a value and as an error.
type exception struct {
	kind *pyType
	user *class // the class of the template, if it is one
	args starlark.Tuple
}

func (e *exception) Type() string          { return e.name() }
func (e *exception) Freeze()               {}
func (e *exception) Truth() starlark.Bool  { return true }
func (e *exception) Hash() (uint32, error) { return 6, nil }
func (e *exception) Error() string         { return e.String() }

func (e *exception) name() string {
	if e.user != nil {
		return e.user.name
	}
	return e.kind.name
}

// String is str() of the exception.
func (e *exception) String() string {
	switch {
	case len(e.args) == 0:
		return ""
	case len(e.args) == 1 && e.kind == exceptions["KeyError"]:
		return repr(e.args[0])
	case len(e.args) == 1:
		return str(e.args[0])
	}
	return repr(e.args)
}

// exceptions has the exception types by name.
var exceptions = makeExceptions()

func makeExceptions() map[string]*pyType {
	all := map[string]*pyType{}
	for _, line := range []string{
		"BaseException", "Exception BaseException", "ArithmeticError Exception", "ZeroDivisionError ArithmeticError",
		"OverflowError ArithmeticError", "LookupError Exception", "KeyError LookupError", "IndexError LookupError",
		"TypeError Exception", "ValueError Exception", "UnicodeError ValueError", "NameError Exception",
		"UnboundLocalError NameError", "AttributeError Exception", "AssertionError Exception", "RuntimeError Exception",
		"NotImplementedError RuntimeError", "RecursionError RuntimeError", "StopIteration Exception",
		"ImportError Exception", "ModuleNotFoundError ImportError", "SyntaxError Exception", "OSError Exception",
		"MemoryError Exception", "SystemExit BaseException", "KeyboardInterrupt BaseException",
		"re.error Exception", "json.JSONDecodeError ValueError", // templates know them by their modules
	} {
		name, base, _ := strings.Cut(line, " ")
		t := &pyType{name: name[strings.LastIndexByte(name, '.')+1:], base: all[base]}
		t.make = func(c *call) (Value, error) { return &exception{kind: t, args: c.args}, nil }
		all[name] = t
	}
	return all
}

// raise makes an exception with a text.
func raise(kind, format string, args ...any) error {
	return &exception{kind: exceptions[kind], args: starlark.Tuple{starlark.String(fmt.Sprintf(format, args...))}}
}

// keyError is the exception for a key that a mapping does not have.
func keyError(key Value) error {
	return &exception{kind: exceptions["KeyError"], args: starlark.Tuple{key}}
}

// limitError ends a render; a template cannot catch it.
type limitError struct{ message string }

func (e *limitError) Error() string { return e.message }

// What Starlark itself reports, and what Python says instead.
var starlarkFaults = []struct {
	pattern *regexp.Regexp
	kind    string
	text    string
}{
	{regexp.MustCompile(`^local variable v_(.*) referenced before assignment$`), "UnboundLocalError",
		"cannot access local variable '$1' where it is not associated with a value"},
	{regexp.MustCompile(`^invalid call of non-function \(str(?:ing)?\)$`), "TypeError", "'str' object is not callable"},
	{regexp.MustCompile(`^invalid call of non-function \((.*)\)$`), "TypeError", "'$1' object is not callable"},
	{regexp.MustCompile(`^unhashable(?: type)?: (.*)$`), "TypeError", "unhashable type: '$1'"},
	{regexp.MustCompile(`^function f\d+ missing (\d+) arguments? \((.*)\)$`), "TypeError",
		"missing $1 required positional arguments: $2"},
	{regexp.MustCompile(`^function f\d+ got an unexpected keyword argument "?v_([^"]*)"?$`), "TypeError",
		"got an unexpected keyword argument '$1'"},
	{regexp.MustCompile(`^function (?:f\d+|lambda) (accepts.*)$`), "TypeError", "function $1"},
}

// asException gives the exception that an error is, if a template may catch it.
func asException(err error) (*exception, bool) {
	var limit *limitError
	if errors.As(err, &limit) {
		return nil, false
	}
	var e *exception
	if errors.As(err, &e) {
		return e, true
	}

	text := err.Error()
	var eval *starlark.EvalError
	if errors.As(err, &eval) {
		text = eval.Msg
	}
	if strings.HasPrefix(text, "Starlark computation cancel") {
		return nil, false
	}
	for _, f := range starlarkFaults {
		if m := f.pattern.FindStringSubmatchIndex(text); m != nil {
			message := string(f.pattern.ExpandString(nil, f.text, text, m))
			return raise(f.kind, "%s", strings.ReplaceAll(message, "v_", "")).(*exception), true
		}
	}
	return raise("TypeError", "%s", text).(*exception), true
}

// matches reports whether an except clause catches an exception. Types is a type, a class, or a tuple of them.
func (e *exception) matches(types Value) bool {
	switch t := types.(type) {
	case *pyType:
		return e.kind.is(t)
	case *class:
		return e.user != nil && e.user.is(t)
	case starlark.Tuple:
		for _, one := range t {
			if e.matches(one) {
				return true
			}
		}
	}
	return false
}

// is reports whether a class is another one or derived from it.
func (c *class) is(other *class) bool { return slices.Contains(c.order, other) }
