package wire

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/gozzard/gozzard"
)

const (
	fieldVersion    protowire.Number = 1
	fieldLabelKey   protowire.Number = 1
	fieldLabelValue protowire.Number = 2
)

// decoder walks over the fields of one message. The first error ends the walk: next is false from then on and the
// value funcs return zero.
type decoder struct {
	rest []byte
	text *arena
	what string // the message's name in errors
	num  protowire.Number
	typ  protowire.Type
	err  error
	own  bool // the labels read so far are in a map that nobody shares
}

// next moves to the next field.
func (d *decoder) next() bool {
	if d.err != nil || len(d.rest) == 0 {
		return false
	}
	if c := d.rest[0]; c >= 1<<3 && c < 0x80 { // one byte, as nearly all tags are
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

// skip passes over a field that this build does not know. Groups do not exist in these messages.
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

// adopt takes over the error of a nested message.
func (d *decoder) adopt(err error) {
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

// atMost is a number with an upper bound: small types and enumerations whose unknown values the domain must never see.
func (d *decoder) atMost(limit uint64) uint64 {
	v := d.uint()
	if v > limit {
		d.fail("%d is more than %d", v, limit)
		return 0
	}
	return v
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

// bytes is a part of the input, not a copy.
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

// message opens the nested message of the current field.
func (d *decoder) message(what string) decoder {
	return decoder{rest: d.bytes(), text: d.text, what: what, err: d.err}
}

// label reads one entry into labels, which is made when it is nil.
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

	if d.adopt(e.err); d.err != nil {
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

// grow makes room for one more element of a list. The first time it counts how many there are, so that a list is
// allocated once and the bound holds before anything is allocated.
func grow[T any](d *decoder, list []T, limit int) ([]T, *T) {
	if list == nil {
		n := 1 + d.ahead()
		if n > limit {
			d.fail("more than %d elements", limit)
			n = 1 // the caller has an element to write to; the walk ends with it
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

// ahead counts how often the current field comes again after the current place. What cannot be parsed ends the
// count; the walk finds it again.
func (d *decoder) ahead() int {
	rest, count := d.rest, -1 // the current one is still in rest
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

// version reads the first field of a message, so that a newer message is known as such before any other byte is judged.
func (d *decoder) version() uint32 {
	if !d.next() {
		d.adopt(fmt.Errorf("%s: empty", d.what))
		return 0
	}

	if d.num != fieldVersion {
		d.err = fmt.Errorf("%s: %w", d.what, errors.New("does not begin with its version"))
		return 0
	}

	v := d.uint32()
	switch {
	case d.err != nil:
	case v == 0:
		d.fail("no version")
	case v > gozzard.ProtocolVersion:
		d.err = fmt.Errorf("%s: %w", d.what, &NewerError{Version: v})
	}

	return v
}

// arena holds the strings of one message in few pieces of memory. A piece is small, because it lives as long as any
// of its strings does.
type arena struct {
	piece strings.Builder
	left  int // bytes of input that may still become strings
	last  lastLabels
}

const arenaPiece = 4 << 10

func (a *arena) keep(v []byte) string {
	if len(v) == 0 {
		return ""
	}
	if len(v) > arenaPiece/4 {
		return string(v)
	}
	if a.piece.Cap()-a.piece.Len() < len(v) {
		a.piece = strings.Builder{}
		a.piece.Grow(min(max(a.left, len(v)), arenaPiece))
	}

	start := a.piece.Len()
	a.piece.Write(v)
	a.left -= len(v)
	return a.piece.String()[start:]
}
