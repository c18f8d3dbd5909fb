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
	maxID   = 1 << 53 // the largest number that every client reads exactly
	maxPage = 1000
	maxList = 100_000
)

// form reads one object of a request. It collects all faults in the form that callers know, each wrong field as
//
//	Label(field_name): 1.reason
//
// one after the other; the faults of an inner object follow the label of the object. A getter that finds a fault
// returns a zero value; the caller continues and checks for faults at the end.
type form struct {
	object strictjson.Value
	query  *strictjson.Value // of a POST: its page, pagesize and ordering take precedence over the body
	texts  bool              // all values are texts of a query: a list or an object is one that has its JSON
	lang   speech
	faults strings.Builder
	wrong  []string // wrong expressions, which have their own code
}

func newForm(c *blueking.Call) (*form, error) {
	f := &form{object: c.Body, lang: speech{c.Words}, texts: c.Request.Method == http.MethodGet}
	if !f.texts && c.Request.URL.RawQuery != "" {
		q, err := c.Query()
		if err != nil {
			return nil, err
		}
		f.query = &q
	}
	return f, nil
}

// err is all faults as one error, nil if there are none.
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

// label is the name of a field for people: with blanks and a capital.
func label(name string) string {
	text := strings.ReplaceAll(name, "_", " ")
	return strings.ToUpper(text[:1]) + text[1:] + "(" + name + "): "
}

// fault adds a fault of a field.
func (f *form) fault(name, reason string) { f.faults.WriteString(label(name) + "1." + reason + " ") }

func (f *form) get(name string) strictjson.Value {
	if f.query != nil && (name == "page" || name == "pagesize" || name == "ordering") {
		if v := f.query.Get(name); v.Text() != "" {
			return v
		}
	}
	return f.object.Get(name)
}

// inner is get for a list or an object.
func (f *form) inner(name string) strictjson.Value {
	v := f.get(name)
	if !f.texts || !v.IsString() {
		return v
	}
	doc, err := strictjson.Parse([]byte(`{"v":` + v.Text() + `}`))
	if err != nil {
		return v
	}
	root, err := doc.Root(new(strictjson.Faults))
	if in := root.Get("v"); err == nil && (in.IsList() || in.IsObject()) {
		return in
	}
	return v
}

// nest reads an inner object with its own form. given is false if there is none, which is not a fault.
func (f *form) nest(name string, read func(in *form)) (given bool) {
	v := f.inner(name)
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

// kindOf reads one kind of value: it returns the value, or the reason why it is not one.
type kindOf[T any] func(l speech, v *strictjson.Value) (T, string)

// must reads a required field.
func must[T any](f *form, name string, kind kindOf[T]) T {
	if v := f.get(name); !v.Exists() {
		f.fault(name, f.lang.say(sayRequired))
	}
	x, _ := opt(f, name, kind)
	return x
}

// opt reads an optional field, which must not be null.
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

func checked[T any](l speech, v *strictjson.Value, kind kindOf[T]) (x T, reason string) {
	if v.IsNull() {
		return x, l.say(sayNull)
	}
	return kind(l, v)
}

// list reads an optional list. The fault of an element has its index and is ASCII JSON, as callers know it.
func list[T any](f *form, name string, kind kindOf[T]) []T { return listOf(f, name, maxList, kind) }

// listOf is list with another limit.
func listOf[T any](f *form, name string, most int, kind kindOf[T]) []T {
	v := f.inner(name)
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

	const maxListed = 20
	var bad strings.Builder
	var out []T
	at, wrong := 0, 0
	v.List(most, func(e *strictjson.Value) {
		x, reason := checked(f.lang, e, kind)
		if reason != "" {
			if wrong++; wrong <= maxListed {
				fmt.Fprintf(&bad, "%d: [%s]", at, asciiJSON(reason))
			}
		}
		out, at = append(out, x), at+1
	})

	if wrong > 0 {
		f.faults.WriteString(label(name) + bad.String())
		return nil
	}

	return out
}

// pathInt reads an id that is in the path on the paths of the app and in the body on those of the bus.
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

// page reads page and pagesize. A page that is too large is a fault; it is never cut.
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

// integer reads a whole number. As in GSEKit, it may be a string or have a fraction of zeros.
func integer(low, high int64) kindOf[int64] {
	return func(l speech, v *strictjson.Value) (int64, string) {
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

// anyInt reads a number that is only compared.
func anyInt() kindOf[int64] { return integer(-maxID, maxID) }

// boolean reads true and false in the spellings that GSEKit accepts.
func boolean(l speech, v *strictjson.Value) (bool, string) {
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

// text reads a string or a number as text, without blanks around it. No text has a NUL character.
func text(l speech, v *strictjson.Value) (string, string) {
	if !v.IsString() && !v.IsNumber() {
		return "", l.say(sayWantString, l.show(v))
	}
	if strings.ContainsRune(v.Text(), 0) {
		return "", l.say(sayNUL)
	}
	return strings.TrimSpace(v.Text()), ""
}

// untrimmed reads a text as it is: blanks at the ends of a name belong to it.
func untrimmed(l speech, v *strictjson.Value) (string, string) {
	if _, reason := text(l, v); reason != "" {
		return "", reason
	}
	return v.Text(), ""
}

// filledUntrimmed is untrimmed for a text that is not blank.
func filledUntrimmed(l speech, v *strictjson.Value) (string, string) {
	if _, reason := filled(l, v); reason != "" {
		return "", reason
	}
	return v.Text(), ""
}

// filled reads a text that is not blank.
func filled(l speech, v *strictjson.Value) (string, string) {
	s, reason := text(l, v)
	if reason == "" && s == "" {
		reason = l.say(sayBlank)
	}
	return s, reason
}

// choice reads one of some words.
func choice(words ...string) kindOf[string] {
	return func(l speech, v *strictjson.Value) (string, string) {
		s, _ := text(l, v)
		if !slices.Contains(words, s) {
			return "", l.say(sayChoice, strings.Trim(l.show(v), `"`))
		}
		return s, ""
	}
}

// show is a value for a message.
func (l speech) show(v *strictjson.Value) string {
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
