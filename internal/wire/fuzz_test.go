package wire_test

import (
	"bytes"
	"reflect"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/gozzard/gozzard/internal/wire"
	"github.com/gozzard/gozzard/test/fuzztest"
)

// Every accepted message can be encoded and decoded again without a change, and equal messages have equal bytes.
func FuzzDecodeCommand(f *testing.F) {
	z := fuzztest.New(f)
	for _, c := range commands() {
		z.Add(wire.AppendCommand(nil, c))
	}

	z.Fuzz(func(t *testing.T, in []byte) {
		c, err := wire.DecodeCommand(in)
		if (c == nil) == (err == nil) {
			t.Fatalf("got %v, %v", c, err)
		}
		if err != nil {
			return
		}

		b := wire.AppendCommand(nil, c)
		again, err := wire.DecodeCommand(b)
		if err != nil || !reflect.DeepEqual(c, again) {
			t.Fatalf("first  %+v\nsecond %+v, %v", c, again, err)
		}
		if !bytes.Equal(b, wire.AppendCommand(nil, again)) {
			t.Fatal("two forms of one command")
		}
	})
}

func FuzzDecodeReport(f *testing.F) {
	z := fuzztest.New(f)
	for _, r := range reports() {
		z.Add(wire.AppendReport(nil, r))
	}

	z.Fuzz(func(t *testing.T, in []byte) {
		r, err := wire.DecodeReport(in)
		if (r == nil) == (err == nil) {
			t.Fatalf("got %v, %v", r, err)
		}
		if err != nil {
			return
		}

		b := wire.AppendReport(nil, r)
		again, err := wire.DecodeReport(b)
		if err != nil || !reflect.DeepEqual(r, again) {
			t.Fatalf("first  %+v\nsecond %+v, %v", r, again, err)
		}
		if !bytes.Equal(b, wire.AppendReport(nil, again)) {
			t.Fatal("two forms of one report")
		}
	})
}

// FuzzFileMessages reads the messages about files: their fields inside a command and a report. What is accepted is within the limits,
// and can be encoded and decoded again without a change.
func FuzzFileMessages(f *testing.F) {
	z := fuzztest.New(f)
	z.Add(uint8(0), []byte{})
	for _, c := range commands() {
		if c.File != nil || c.Content != nil {
			z.Add(uint8(0), wire.AppendCommand(nil, c))
		}
	}
	for _, r := range reports() {
		if r.File != nil || r.Content != nil {
			z.Add(uint8(1), wire.AppendReport(nil, r))
		}
	}
	for i, body := range [][]byte{{0x22, 1, '/', 0x40, 1}, {0x12, 2, 0x42, 0}, {0x1a, 1, 'x', 0x28, 7}, {0x10, 1}} {
		z.Add(uint8(2+i), body)
	}

	z.Fuzz(func(t *testing.T, kind uint8, in []byte) {
		// A whole message, or the body of one field of it.
		fields := []struct {
			command bool
			kind    uint8
			number  protowire.Number
		}{{true, 10, 17}, {true, 11, 18}, {false, 9, 19}, {false, 10, 20}}
		command := kind%6 == 0
		if n := int(kind%6) - 2; n >= 0 {
			head := []byte{1 << 3, 1, 2 << 3, fields[n].kind}
			command, in = fields[n].command, protowire.AppendBytes(protowire.AppendTag(head, fields[n].number, protowire.BytesType), in)
		}

		if command {
			c, err := wire.DecodeCommand(in)
			if err != nil {
				return
			}
			if c.Content != nil && len(c.Content.Data) > wire.MaxLogBytes {
				t.Fatalf("a part of %d bytes", len(c.Content.Data))
			}
			if again, err := wire.DecodeCommand(wire.AppendCommand(nil, c)); err != nil || !reflect.DeepEqual(c, again) {
				t.Fatalf("first  %+v\nsecond %+v, %v", c, again, err)
			}
			return
		}
		r, err := wire.DecodeReport(in)
		if err != nil {
			return
		}
		if r.File != nil && (len(r.File.View.Content) > wire.MaxLogBytes || len(r.File.Versions) > wire.MaxVersions) {
			t.Fatalf("%d bytes, %d versions", len(r.File.View.Content), len(r.File.Versions))
		}
		if again, err := wire.DecodeReport(wire.AppendReport(nil, r)); err != nil || !reflect.DeepEqual(r, again) {
			t.Fatalf("first  %+v\nsecond %+v, %v", r, again, err)
		}
	})
}
