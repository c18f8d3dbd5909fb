package gsekit

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/strictjson"
)

const (
	maxID   = 1 << 53 // what every JSON reader can hold
	maxPage = 1000
	maxList = 100_000
)

// form reads one object of a request. Everything wrong is noted in the grammar that callers know, each bad field as
//
//	Label(field_name): 1.reason
//
// one after the other, those of inner objects after the label of the object. Getters give a zero value when they
// note something; the caller goes on and looks at the end.
type form struct {
	object strictjson.Value
	query  *strictjson.Value // of a POST: page, pagesize and ordering in it win over the body's
	lang   language
	faults strings.Builder
	wrong  []string // expressions, which have a number of their own
}

func newForm(c *blueking.Call) (*form, error) {
	f := &form{object: c.Body, lang: languageOf(c.Request)}
	if c.Request.Method != http.MethodGet && c.Request.URL.RawQuery != "" {
		q, err := c.Query()
		if err != nil {
			return nil, err
		}
		f.query = &q
	}
	return f, nil
}

// err is everything noted as one error, nil when there is nothing.
func (f *form) err() error {
	switch text := f.faults.String(); {
	case text != "":
		return fail(codeInvalid, text+strings.Join(f.wrong, " "))
	case len(f.wrong) > 0:
		return fail(codeExpression, strings.Join(f.wrong, " "))
	}
	return nil
}

func (f *form) sound() bool { return f.faults.Len() == 0 && len(f.wrong) == 0 }

// label is how a field is called: its name with blanks and a capital.
func label(name string) string {
	text := strings.ReplaceAll(name, "_", " ")
	return strings.ToUpper(text[:1]) + text[1:] + "(" + name + "): "
}

// fault notes that a field is wrong.
func (f *form) fault(name, reason string) { f.faults.WriteString(label(name) + "1." + reason + " ") }

func (f *form) get(name string) strictjson.Value {
	if f.query != nil && (name == "page" || name == "pagesize" || name == "ordering") {
		if v := f.query.Get(name); v.Text() != "" {
			return v
		}
	}
	return f.object.Get(name)
}

// nest reads an object inside with its own form; given is false when there is none, which is no fault.
func (f *form) nest(name string, read func(in *form)) (given bool) {
	v := f.get(name)
	switch {
	case !v.Exists():
		return false
	case v.IsNull():
		f.fault(name, f.lang.say(sayNull))
	case !v.IsObject():
		f.fault(name, f.lang.say(sayWantObject, f.lang.show(&v)))
	default:
		in := &form{object: v, lang: f.lang}
		read(in)
		if in.faults.Len() > 0 {
			f.faults.WriteString(label(name) + in.faults.String())
		}
		f.wrong = append(f.wrong, in.wrong...)
	}

	return true
}

// kindOf is a reader of one kind of value: the value, or why it is none.
type kindOf[T any] func(l language, v *strictjson.Value) (T, string)

// must reads a field that is required.
func must[T any](f *form, name string, kind kindOf[T]) T {
	if v := f.get(name); !v.Exists() {
		f.fault(name, f.lang.say(sayRequired))
	}
	x, _ := opt(f, name, kind)
	return x
}

// opt reads a field that may be missing, but not null.
func opt[T any](f *form, name string, kind kindOf[T]) (x T, given bool) {
	v := f.get(name)
	if !v.Exists() {
		return x, false
	}
	x, reason := checked(f.lang, &v, kind)
	if reason != "" {
		f.fault(name, reason)
	}
	return x, true
}

func checked[T any](l language, v *strictjson.Value, kind kindOf[T]) (x T, reason string) {
	if v.IsNull() {
		return x, l.say(sayNull)
	}
	return kind(l, v)
}

// list reads a list that may be missing. A bad element is told by its place, in JSON of plain ASCII as callers know it.
func list[T any](f *form, name string, kind kindOf[T]) []T { return listOf(f, name, maxList, kind) }

// listOf is list with a bound of its own, where every element costs.
func listOf[T any](f *form, name string, most int, kind kindOf[T]) []T {
	v := f.get(name)
	switch n := v.Len(); {
	case !v.Exists():
		return nil
	case v.IsNull():
		f.fault(name, f.lang.say(sayNull))
		return nil
	case !v.IsList():
		f.fault(name, f.lang.say(sayWantList, f.lang.show(&v)))
		return nil
	case n > most:
		f.fault(name, f.lang.say(sayTooMany, n, most))
		return nil
	}

	const maxTold = 20
	var bad strings.Builder
	var out []T
	at, told := 0, 0
	v.List(most, func(e *strictjson.Value) {
		x, reason := checked(f.lang, e, kind)
		if reason != "" {
			if told++; told <= maxTold {
				fmt.Fprintf(&bad, "%d: [%s]", at, asciiJSON(reason))
			}
		}
		out, at = append(out, x), at+1
	})

	if told > 0 {
		f.faults.WriteString(label(name) + bad.String())
		return nil
	}

	return out
}

// pathInt reads an id that is in the path of the app's own form and in the body elsewhere.
func (f *form) pathInt(c *blueking.Call, name string) int64 {
	n, ok := c.Number(name)
	if !ok {
		return must(f, name, integer(1, maxID))
	}
	if n < 1 || n > maxID {
		f.fault(name, f.lang.say(sayRange, 1, int64(maxID), strconv.FormatInt(n, 10)))
	}
	return n
}

// page reads page and pagesize. Too large a page is an error, never a silent cut.
func (f *form) page(required bool) (start, limit int) {
	page, size := int64(1), int64(10)
	if p, given := opt(f, "page", integer(1, math.MaxInt32)); given {
		page = p
	} else if required {
		f.fault("page", f.lang.say(sayRequired))
	}
	if n, given := opt(f, "pagesize", integer(1, maxPage)); given {
		size = n
	} else if required {
		f.fault("pagesize", f.lang.say(sayRequired))
	}
	return int((page - 1) * size), int(size)
}

// integer reads whole numbers, also written as strings or with a fraction of zeros, as the original does.
func integer(low, high int64) kindOf[int64] {
	return func(l language, v *strictjson.Value) (int64, string) {
		text := strings.TrimSpace(v.Text())
		if whole, fraction, ok := strings.Cut(text, "."); ok && strings.Trim(fraction, "0") == "" {
			text = whole
		}

		digits := strings.TrimLeft(text, "+-")
		if digits == "" || len(text) > len(digits)+1 || strings.Trim(digits, "0123456789") != "" {
			return 0, l.say(sayWantInt, l.show(v))
		}

		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < low || n > high {
			return 0, l.say(sayRange, low, high, l.show(v))
		}

		return n, ""
	}
}

// anyInt reads numbers that are only compared.
func anyInt() kindOf[int64] { return integer(-maxID, maxID) }

// boolean reads true and false in the spellings that the original takes.
func boolean(l language, v *strictjson.Value) (bool, string) {
	if v.IsBool() {
		return v.Bool(), ""
	}
	switch strings.ToLower(v.Text()) {
	case "true", "t", "yes", "y", "on", "1":
		return true, ""
	case "false", "f", "no", "n", "off", "0":
		return false, ""
	}
	return false, l.say(sayWantBool, l.show(v))
}

// text reads a string, or a number as its text, without the blanks around it.
func text(l language, v *strictjson.Value) (string, string) {
	if !v.IsString() && !v.IsNumber() {
		return "", l.say(sayWantString, l.show(v))
	}
	return strings.TrimSpace(v.Text()), ""
}

// filled reads a text that is not blank.
func filled(l language, v *strictjson.Value) (string, string) {
	s, reason := text(l, v)
	if reason == "" && s == "" {
		reason = l.say(sayBlank)
	}
	return s, reason
}

// choice reads one of a few words.
func choice(words ...string) kindOf[string] {
	return func(l language, v *strictjson.Value) (string, string) {
		s, _ := text(l, v)
		if !slices.Contains(words, s) {
			return "", l.say(sayChoice, strings.Trim(l.show(v), `"`))
		}
		return s, ""
	}
}

// show is a value as a message can bear it.
func (l language) show(v *strictjson.Value) string {
	switch {
	case v.IsNull():
		return "null"
	case v.IsBool():
		return strconv.FormatBool(v.Bool())
	case v.IsList():
		return l.say(sayAList)
	case v.IsObject():
		return l.say(sayAnObject)
	}

	if v.IsString() {
		return strconv.Quote(strictjson.Clip(v.Text()))
	}

	return strictjson.Clip(v.Text())
}

// asciiJSON is a text as JSON without characters beyond ASCII.
func asciiJSON(s string) string {
	var b strings.Builder
	for _, r := range string(strictjson.AppendString(nil, s)) {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}
