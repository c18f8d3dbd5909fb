package strictjson

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gozzard/gozzard"
)

// maxFaults limits the faults in one answer: a list of 100,000 wrong hosts needs no 100,000 sentences.
const maxFaults = 100

// Faults collects all faults of one request, so that one answer has all of them.
type Faults struct {
	list []gozzard.Fault
	more int
}

// Add adds a fault at a place.
func (f *Faults) Add(path, format string, args ...any) {
	if len(f.list) >= maxFaults {
		f.more++
		return
	}
	f.list = append(f.list, gozzard.Fault{Path: path, Text: fmt.Sprintf(format, args...)})
}

// Len is the number of faults.
func (f *Faults) Len() int { return len(f.list) + f.more }

// Cut removes the faults that came after the first n, and returns them as one error, nil if there are none: for a reader
// that answers for one part of a request by itself.
func (f *Faults) Cut(n int) error {
	if n >= len(f.list) {
		return nil
	}
	cut := Faults{list: slices.Clone(f.list[n:]), more: f.more}
	f.list, f.more = f.list[:n], 0
	return cut.Err()
}

// Err is all faults as one error, nil if there are none.
func (f *Faults) Err() error {
	if len(f.list) == 0 {
		return nil
	}
	list := f.list
	if f.more > 0 {
		list = append(list[:len(list):len(list)], gozzard.Fault{Text: fmt.Sprintf("and %d more", f.more)})
	}
	return &gozzard.Error{Kind: gozzard.ErrInvalid, Faults: list}
}

// Value is one place in a document, which may be missing. A getter that does not find what it reads adds a fault and
// returns a zero value; the caller continues and checks for faults at the end. A getter with Opt in its name returns
// the default for a missing or null value. The other getters reject both; plain decoding would return 0.
type Value struct {
	doc    *Document
	faults *Faults
	at     int // node, -1 if it is missing
	up     *Value
	name   string // in up, when up is an object
	index  int    // in up, when up is a list
}

// Root is the document's object. Another kind of value is an error.
func (d *Document) Root(f *Faults) (Value, error) {
	if k := d.nodes[0].kind; k != kindObject {
		return Value{}, gozzard.Errorf(gozzard.ErrInvalid, "body must be a JSON object, is %s", k)
	}
	return Value{doc: d, faults: f}, nil
}

// Path is the place as text, such as hosts[3].ip.
func (v *Value) Path() string {
	if v.up == nil {
		return v.name
	}
	p := v.up.Path()
	switch {
	case v.name == "":
		return p + "[" + strconv.Itoa(v.index) + "]"
	case p == "":
		return v.name
	}
	return p + "." + v.name
}

// Fault adds a fault at this place.
func (v *Value) Fault(format string, args ...any) { v.faults.Add(v.Path(), format, args...) }

func (v *Value) kind() kind {
	if v.at < 0 {
		return 0
	}
	return v.doc.nodes[v.at].kind
}

// Exists reports whether there is a value, null included.
func (v *Value) Exists() bool { return v.at >= 0 }

// Given reports whether there is a value that is not null.
func (v *Value) Given() bool { return v.kind() > kindNull }

// IsString reports whether the value is a string.
func (v *Value) IsString() bool { return v.kind() == kindString }

// IsObject reports whether the value is an object.
func (v *Value) IsObject() bool { return v.kind() == kindObject }

// IsNull reports whether there is a null.
func (v *Value) IsNull() bool { return v.kind() == kindNull }

// IsNumber reports whether the value is a number.
func (v *Value) IsNumber() bool { return v.kind() == kindNumber }

// IsBool reports whether the value is true or false.
func (v *Value) IsBool() bool { return v.kind() == kindTrue || v.kind() == kindFalse }

// IsList reports whether the value is a list.
func (v *Value) IsList() bool { return v.kind() == kindArray }

// Text is the content of a string or the literal of a number, "" for anything else.
func (v *Value) Text() string {
	if k := v.kind(); k != kindString && k != kindNumber {
		return ""
	}
	return v.doc.text(v.at)
}

// Faults is where this document's faults are collected.
func (v *Value) Faults() *Faults { return v.faults }

// Hollow reports whether the value is missing, null, an empty list, or an object of hollow members.
func (v *Value) Hollow() bool {
	switch v.kind() {
	case 0, kindNull:
		return true
	case kindArray:
		return int(v.doc.nodes[v.at].next) == v.at+1
	case kindObject:
		hollow := true
		v.members(func(_ int, m Value) { hollow = hollow && m.Hollow() })
		return hollow
	}
	return false
}

// Get is a member of an object. If the value is not an object, the member is missing; use Object to check.
func (v *Value) Get(name string) Value {
	m := Value{doc: v.doc, faults: v.faults, at: -1, up: v, name: name}
	if v.kind() != kindObject {
		return m
	}
	nodes := v.doc.nodes
	for i, end := v.at+1, int(nodes[v.at].next); i < end; i = int(nodes[i+1].next) {
		if v.doc.is(i, name) {
			m.at = i + 1
			break
		}
	}
	return m
}

// is compares a name without making a string.
func (d *Document) is(i int, name string) bool {
	n := d.nodes[i]
	if n.esc {
		return d.text(i) == name
	}
	return string(d.src[n.from:n.to]) == name
}

func (v *Value) members(f func(name int, m Value)) {
	nodes := v.doc.nodes
	for i, end := v.at+1, int(nodes[v.at].next); i < end; i = int(nodes[i+1].next) {
		f(i, Value{doc: v.doc, faults: v.faults, at: i + 1, up: v})
	}
}

// want adds the fault that another kind of value is expected.
func (v *Value) want(what string) {
	switch v.kind() {
	case 0:
		v.Fault("required")
	case kindNull:
		v.Fault("required, is null")
	case kindNumber:
		v.Fault("must be %s, is %s", what, "the number "+Clip(v.doc.text(v.at)))
	case kindString:
		v.Fault("must be %s, is %s", what, "the string "+Quote(v.doc.text(v.at)))
	default:
		v.Fault("must be %s, is %s", what, v.kind())
	}
}

// Object reports whether this is an object, and adds a fault if not.
func (v *Value) Object() bool {
	if v.kind() == kindObject {
		return true
	}
	v.want("an object")
	return false
}

// ObjectSuchAs is Object; the fault has an example.
func (v *Value) ObjectSuchAs(example string) bool {
	if v.kind() == kindObject {
		return true
	}
	v.want("an object such as " + example)
	return false
}

// OptObject reports whether this is an object; missing and null are not faults.
func (v *Value) OptObject() bool { return v.Given() && v.Object() }

// Members calls f for every member of an object. A missing value and null have none.
func (v *Value) Members(f func(name string, m Value)) {
	if !v.OptObject() {
		return
	}
	v.members(func(i int, m Value) {
		name := v.doc.text(i)
		if m.name = Clip(name); name == "" {
			m.name = `""`
		}
		f(name, m)
	})
}

// Len is the number of elements of a list, 0 for anything else.
func (v *Value) Len() int {
	if v.kind() != kindArray {
		return 0
	}
	nodes, n := v.doc.nodes, 0
	for i, end := v.at+1, int(nodes[v.at].next); i < end; i = int(nodes[i].next) {
		n++
	}
	return n
}

// List calls f for every element of a list and returns their number. If there are more than max, it adds a fault and
// calls nothing. An element is valid only during its call.
func (v *Value) List(max int, f func(e *Value)) int {
	if v.kind() != kindArray {
		v.want("a list")
		return 0
	}

	nodes := v.doc.nodes
	first, end := v.at+1, int(nodes[v.at].next)
	n := v.Len()
	if n > max {
		v.Fault("has %d elements, at most %d are allowed", n, max)
		return n
	}

	e := Value{doc: v.doc, faults: v.faults, up: v}
	for i := first; i < end; i = int(nodes[i].next) {
		e.at = i
		f(&e)
		e.index++
	}

	return n
}

// OptList is List; missing and null have no elements.
func (v *Value) OptList(max int, f func(e *Value)) int {
	if !v.Given() {
		return 0
	}
	return v.List(max, f)
}

// Str is a string that is not empty.
func (v *Value) Str() string {
	if v.kind() != kindString {
		v.want("a string")
		return ""
	}
	s := v.doc.text(v.at)
	if s == "" {
		v.Fault("required, is empty")
	}
	return s
}

// AnyStr is a string that may be empty, but must be there.
func (v *Value) AnyStr() string {
	if v.kind() != kindString {
		v.want("a string")
		return ""
	}
	return v.doc.text(v.at)
}

// OptStr is a string; missing and null are "".
func (v *Value) OptStr() string {
	if !v.Given() {
		return ""
	}
	return v.AnyStr()
}

// Scalar is the text of a string, or the literal of a number; callers send one for the other in labels.
func (v *Value) Scalar() string {
	if k := v.kind(); k != kindString && k != kindNumber {
		v.want("a string or a number")
		return ""
	}
	return v.doc.text(v.at)
}

// Int is a whole number written as one.
func (v *Value) Int(min, max int64) int64 {
	if v.kind() != kindNumber {
		v.want("a whole number")
		return 0
	}

	lit := v.doc.text(v.at)
	n, err := strconv.ParseInt(lit, 10, 64)
	switch {
	case strings.ContainsAny(lit, ".eE"):
		v.Fault("must be a whole number, is %s", Clip(lit))
	case err != nil || n < min || n > max:
		v.Fault("must be %d to %d, is %s", min, max, Clip(lit))
	default:
		return n
	}

	return 0
}

// OptInt is Int; missing and null are the default.
func (v *Value) OptInt(def, min, max int64) int64 {
	if !v.Given() {
		return def
	}
	return v.Int(min, max)
}

// Float is a number.
func (v *Value) Float(min, max float64) float64 {
	if v.kind() != kindNumber {
		v.want("a number")
		return 0
	}
	lit := v.doc.text(v.at)
	x, err := strconv.ParseFloat(lit, 64)
	if err != nil || math.IsInf(x, 0) || x < min || x > max {
		v.Fault("must be %v to %v, is %s", min, max, Clip(lit))
		return 0
	}
	return x
}

// OptFloat is Float; missing and null are the default.
func (v *Value) OptFloat(def, min, max float64) float64 {
	if !v.Given() {
		return def
	}
	return v.Float(min, max)
}

// Bool is true or false.
func (v *Value) Bool() bool {
	if k := v.kind(); k != kindTrue && k != kindFalse {
		v.want("true or false")
		return false
	}
	return v.kind() == kindTrue
}

// OptBool is Bool; missing and null are the default.
func (v *Value) OptBool(def bool) bool {
	if !v.Given() {
		return def
	}
	return v.Bool()
}

const clipBytes = 64

// Clip shortens what a caller sent so that it fits into a message.
func Clip(s string) string {
	if len(s) <= clipBytes {
		return s
	}
	cut := clipBytes
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// Quote is Clip with quotes and without raw control characters.
func Quote(s string) string { return strconv.Quote(Clip(s)) }
