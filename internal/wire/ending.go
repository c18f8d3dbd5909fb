package wire

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/gozzard/gozzard"
)

func appendEnding(b []byte, num protowire.Number, e *gozzard.Ending) []byte {
	b, start := begin(b, num)
	b = appendInt(b, 1, e.At)
	b = appendBool(b, 2, e.Known)
	b = appendInt(b, 3, int64(e.Code))
	b = appendString(b, 4, e.Signal)
	b = appendBool(b, 5, e.Core)
	b = appendBool(b, 6, e.OOM)
	return end(b, start)
}

func decodeEnding(d decoder, e *gozzard.Ending) error {
	for d.next() {
		switch d.num {
		case 1:
			e.At = d.int64()
		case 2:
			e.Known = d.bool()
		case 3:
			e.Code = d.int32()
		case 4:
			e.Signal = d.string()
		case 5:
			e.Core = d.bool()
		case 6:
			e.OOM = d.bool()
		default:
			d.skip()
		}
	}

	return d.err
}

func appendLastRun(b []byte, num protowire.Number, r *gozzard.LastRun) []byte {
	b, start := begin(b, num)
	b = appendInt(b, 1, r.StartedAt)
	if !r.End.IsZero() {
		b = appendEnding(b, 2, &r.End)
	}
	return end(b, start)
}

func decodeLastRun(d decoder, r *gozzard.LastRun) error {
	for d.next() {
		switch d.num {
		case 1:
			r.StartedAt = d.int64()
		case 2:
			d.nested(decodeEnding(d.message("end"), &r.End))
		default:
			d.skip()
		}
	}

	return d.err
}
