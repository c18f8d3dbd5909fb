package wire

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/gozzard/gozzard"
)

func appendVitals(b []byte, num protowire.Number, v *gozzard.Vitals) []byte {
	b, start := begin(b, num)
	b = appendInt(b, 1, v.At)
	b = appendInt(b, 2, v.RoundTrip)
	b = appendInt(b, 3, v.Load)
	b = appendInt(b, 4, v.MemFree)
	return end(b, start)
}

func decodeVitals(d decoder, v *gozzard.Vitals) error {
	for d.next() {
		switch d.num {
		case 1:
			v.At = d.int64()
		case 2:
			v.RoundTrip = d.int64()
		case 3:
			v.Load = d.int64()
		case 4:
			v.MemFree = d.int64()
		default:
			d.skip()
		}
	}

	return d.err
}
