package wire

import (
	"fmt"
	"math"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	fieldVersion    protowire.Number = 1
	fieldLabelKey   protowire.Number = 1
	fieldLabelValue protowire.Number = 2
)

// decoder reads the fields of one message. The first error ends the message: from then on next returns false, and the
// functions for values return zero.
type decoder struct {
	rest []byte
	text *arena
	what string // name of the message in errors
	num  protowire.Number
	typ  protowire.Type
	err  error
	own  bool // the labels so far are in a map that is not shared
}

// next reads the tag of the next field and reports whether there is one.
func (d *decoder) next() bool {
	if d.err != nil || len(d.rest) == 0 {
		return false
	}
	if c := d.rest[0]; c >= 1<<3 && c < 0x80 { // a tag of one byte, as nearly all are
		d.num, d.typ, d.rest = protowire.Number(c>>3), protowire.Type(c&7), d.rest[1:]
		return true
	}
	return d.longTag()
}

func (d *decoder) longTag() bool {
	num, typ, n := protowire.ConsumeTag(d.rest)
	if n < 0 {
		d.err = fmt.Errorf("%s: %w", d.what, protowire.ParseError(n))
		return false
	}
	d.num, d.typ, d.rest = num, typ, d.rest[n:]
	return true
}

// skip skips an unknown field. The messages have no groups.
func (d *decoder) skip() {
	if d.typ == protowire.StartGroupType || d.typ == protowire.EndGroupType {
		d.fail("is a group")
		return
	}
	n := protowire.ConsumeFieldValue(d.num, d.typ, d.rest)
	if n < 0 {
		d.err = d.wrap(protowire.ParseError(n))
		return
	}
	d.rest = d.rest[n:]
}

func (d *decoder) wrap(err error) error { return fmt.Errorf("%s: field %d: %w", d.what, d.num, err) }

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = d.wrap(fmt.Errorf(format, args...))
	}
}

// nested records the error of a nested message.
func (d *decoder) nested(err error) {
	if err != nil && d.err == nil {
		d.err = err
	}
}

func (d *decoder) uint() uint64 {
	if d.typ != protowire.VarintType {
		d.fail("has wire type %d", d.typ)
		return 0
	}

	if len(d.rest) > 0 && d.rest[0] < 0x80 {
		v := d.rest[0]
		d.rest = d.rest[1:]
		return uint64(v)
	}

	v, n := protowire.ConsumeVarint(d.rest)
	if n < 0 {
		d.err = d.wrap(protowire.ParseError(n))
		return 0
	}

	d.rest = d.rest[n:]
	return v
}

// atMost reads a number with an upper limit: for small types, and for enumerations without unknown values.
func (d *decoder) atMost(limit uint64) uint64 {
	v := d.uint()
	if v > limit {
		d.fail("%d is more than %d", v, limit)
		return 0
	}
	return v
}

// orNone reads a number whose larger values only later versions know: they count as 0.
func (d *decoder) orNone(limit uint64) uint64 {
	if v := d.uint(); v <= limit {
		return v
	}
	return 0
}

func (d *decoder) uint32() uint32 { return uint32(d.atMost(math.MaxUint32)) }

func (d *decoder) int64() int64 { return protowire.DecodeZigZag(d.uint()) }

func (d *decoder) int32() int32 {
	v := d.int64()
	if v != int64(int32(v)) {
		d.fail("%d does not fit into 32 bits", v)
		return 0
	}
	return int32(v)
}

func (d *decoder) int() int {
	v := d.int64()
	if v != int64(int(v)) {
		d.fail("%d does not fit into this machine's integer", v)
		return 0
	}
	return int(v)
}

func (d *decoder) bool() bool { return d.atMost(1) == 1 }

func (d *decoder) double() float64 {
	if d.typ != protowire.Fixed64Type {
		d.fail("has wire type %d", d.typ)
		return 0
	}

	bits, n := protowire.ConsumeFixed64(d.rest)
	if n < 0 {
		d.err = d.wrap(protowire.ParseError(n))
		return 0
	}

	d.rest = d.rest[n:]
	v := math.Float64frombits(bits)
	if v-v != 0 {
		d.fail("is not a finite number")
		return 0
	}

	return v
}

func (d *decoder) float() float32 {
	if d.typ != protowire.Fixed32Type {
		d.fail("has wire type %d", d.typ)
		return 0
	}

	bits, n := protowire.ConsumeFixed32(d.rest)
	if n < 0 {
		d.err = d.wrap(protowire.ParseError(n))
		return 0
	}

	d.rest = d.rest[n:]
	v := math.Float32frombits(bits)
	if v-v != 0 {
		d.fail("is not a finite number")
		return 0
	}

	return v
}

// bytes returns a part of the input, not a copy.
func (d *decoder) bytes() []byte {
	if d.typ != protowire.BytesType {
		d.fail("has wire type %d", d.typ)
		return nil
	}

	if len(d.rest) > 0 && d.rest[0] < 0x80 && int(d.rest[0]) < len(d.rest) {
		end := 1 + int(d.rest[0])
		v := d.rest[1:end:end]
		d.rest = d.rest[end:]
		return v
	}

	v, n := protowire.ConsumeBytes(d.rest)
	if n < 0 {
		d.err = d.wrap(protowire.ParseError(n))
		return nil
	}

	d.rest = d.rest[n:]
	return v
}

func (d *decoder) string() string {
	v := d.bytes()
	if len(v) > MaxString {
		d.fail("has %d bytes, at most %d are allowed", len(v), MaxString)
		return ""
	}
	if !utf8.Valid(v) {
		d.fail("is not valid UTF-8")
		return ""
	}
	return d.text.keep(v)
}

func (d *decoder) id() (id [16]byte) {
	v := d.bytes()
	if d.err == nil && len(v) != len(id) {
		d.fail("an id has %d bytes, has %d", len(id), len(v))
		return id
	}
	copy(id[:], v)
	return id
}

// message returns a decoder of the nested message in the current field.
func (d *decoder) message(what string) decoder {
	return decoder{rest: d.bytes(), text: d.text, what: what, err: d.err}
}

// label reads one entry into labels, and makes the map if it is nil.
func (d *decoder) label(labels map[string]string) map[string]string {
	e := d.message("label")
	var key, value string
	for e.next() {
		switch e.num {
		case fieldLabelKey:
			key = e.string()
		case fieldLabelValue:
			value = e.string()
		default:
			e.skip()
		}
	}

	if d.nested(e.err); d.err != nil {
		return labels
	}
	if labels == nil {
		labels = make(map[string]string)
	}

	labels[key] = value
	if len(labels) > MaxLabels {
		d.fail("more than %d labels", MaxLabels)
	}

	return labels
}

// grow adds one element to a list. The first time it counts the elements that follow, so that the list is allocated
// once, and only if it is within the limit.
func grow[T any](d *decoder, list []T, limit int) ([]T, *T) {
	if list == nil {
		n := 1 + d.ahead()
		if n > limit {
			d.fail("more than %d elements", limit)
			n = 1 // the caller needs an element to write to; decoding ends with it
		}
		list = make([]T, 0, n)
	}

	if len(list) == limit {
		d.fail("more than %d elements", limit)
		return list, new(T)
	}

	var zero T
	list = append(list, zero)
	return list, &list[len(list)-1]
}

// ahead counts how often the current field occurs again later. The count ends at a fault, which decoding finds again.
func (d *decoder) ahead() int {
	rest, count := d.rest, -1 // rest still has the current one
	num, typ := d.num, d.typ
	for {
		n := protowire.ConsumeFieldValue(num, typ, rest)
		if n < 0 || typ == protowire.StartGroupType {
			return max(count, 0)
		}
		if num == d.num {
			count++
		}
		if rest = rest[n:]; len(rest) == 0 {
			return max(count, 0)
		}
		if num, typ, n = protowire.ConsumeTag(rest); n < 0 {
			return max(count, 0)
		}
		rest = rest[n:]
	}
}
