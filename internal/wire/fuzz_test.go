package wire_test

import (
	"bytes"
	"reflect"
	"testing"

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
