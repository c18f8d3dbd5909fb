package wire

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// appendTag and appendVarint have a fast path for one byte, which is enough for nearly all tags and many numbers.

func appendTag(b []byte, num protowire.Number, typ protowire.Type) []byte {
	if num < 16 {
		return append(b, byte(num)<<3|byte(typ))
	}
	return protowire.AppendTag(b, num, typ)
}

func appendVarint(b []byte, v uint64) []byte {
	if v < 0x80 {
		return append(b, byte(v))
	}
	return protowire.AppendVarint(b, v)
}

// The append functions below write nothing for a zero value.

func appendUint(b []byte, num protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return appendVarint(appendTag(b, num, protowire.VarintType), v)
}

func appendInt(b []byte, num protowire.Number, v int64) []byte {
	return appendUint(b, num, protowire.EncodeZigZag(v))
}

func appendBool(b []byte, num protowire.Number, v bool) []byte {
	if !v {
		return b
	}
	return appendUint(b, num, 1)
}

// appendDouble writes nothing for a value that is not finite: neither the messages nor JSON have a form for it.
func appendDouble(b []byte, num protowire.Number, v float64) []byte {
	bits := math.Float64bits(v)
	if bits == 0 || v-v != 0 {
		return b
	}
	b = appendTag(b, num, protowire.Fixed64Type)
	return protowire.AppendFixed64(b, bits)
}

func appendFloat(b []byte, num protowire.Number, v float32) []byte {
	bits := math.Float32bits(v)
	if bits == 0 || v-v != 0 {
		return b
	}
	b = appendTag(b, num, protowire.Fixed32Type)
	return protowire.AppendFixed32(b, bits)
}

func appendString(b []byte, num protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	return appendText(b, num, s)
}

// appendText writes a string even if it is empty, in a form that a receiver accepts.
func appendText(b []byte, num protowire.Number, s string) []byte {
	if len(s) > MaxString || !utf8.ValidString(s) {
		s = clean(s)
	}
	b = appendTag(b, num, protowire.BytesType)
	return append(appendVarint(b, uint64(len(s))), s...)
}

// clean returns a string as valid UTF-8 of at most MaxString bytes.
func clean(s string) string {
	// Truncate first, so that a huge text is not copied, and remove a character that is cut in two.
	if len(s) > MaxString {
		s = s[:MaxString]
		for cut := 1; cut < utf8.UTFMax; cut++ {
			if i := len(s) - cut; utf8.RuneStart(s[i]) {
				if !utf8.FullRuneInString(s[i:]) {
					s = s[:i]
				}
				break
			}
		}
	}
	return strings.ToValidUTF8(s, "?")
}

func appendBytes(b []byte, num protowire.Number, v []byte) []byte {
	if len(v) == 0 {
		return b
	}
	b = appendTag(b, num, protowire.BytesType)
	return protowire.AppendBytes(b, v)
}

// appendID writes 16 bytes unless all are zero.
func appendID(b []byte, num protowire.Number, id [16]byte) []byte {
	if id == ([16]byte{}) {
		return b
	}
	return appendBytes(b, num, id[:])
}

// begin starts a nested message, and end finishes it with the position that begin returned. begin reserves one byte for
// the length; end moves the body if the length needs more. That is cheaper than to compute every length first.
func begin(b []byte, num protowire.Number) ([]byte, int) {
	b = appendTag(b, num, protowire.BytesType)
	return append(b, 0), len(b) + 1
}

func end(b []byte, start int) []byte {
	n := uint64(len(b) - start)
	if n < 0x80 {
		b[start-1] = byte(n)
		return b
	}
	extra := protowire.SizeVarint(n) - 1
	var pad [9]byte
	b = append(b, pad[:extra]...)
	copy(b[start+extra:], b[start:len(b)-extra])
	protowire.AppendVarint(b[:start-1], n)
	return b
}

// appendLabels writes the entries in the order of their keys, so that equal messages have equal bytes.
func appendLabels(b []byte, num protowire.Number, labels map[string]string) []byte {
	if len(labels) == 0 {
		return b
	}

	var room [16]string
	keys := room[:0]
	for k := range labels {
		keys = append(keys, k)
	}

	slices.Sort(keys)

	for _, k := range keys {
		var start int
		b, start = begin(b, num)
		b = appendString(b, fieldLabelKey, k)
		b = appendString(b, fieldLabelValue, labels[k])
		b = end(b, start)
	}

	return b
}
