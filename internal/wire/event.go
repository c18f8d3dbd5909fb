package wire

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/gozzard/gozzard"
)

func appendEvent(b []byte, num protowire.Number, e *gozzard.Event) []byte {
	b, start := begin(b, num)
	b = appendUint(b, 1, e.Seq)
	b = appendString(b, 2, e.Key.Namespace)
	b = appendString(b, 3, e.Key.Name)
	b = appendString(b, 4, string(e.Kind))
	b = appendInt(b, 5, e.At)
	b = appendInt(b, 6, int64(e.PID))
	b = appendInt(b, 7, int64(e.Code))
	b = appendString(b, 8, e.Signal)
	b = appendBool(b, 9, e.Core)
	b = appendString(b, 10, e.Message)
	b = appendBool(b, 11, e.Known)
	b = appendID(b, 12, e.Cause.Op)
	b = appendInt(b, 13, int64(e.Cause.Ref.Task))
	b = appendInt(b, 14, int64(e.Cause.Ref.Index))
	return end(b, start)
}

func decodeEvent(d decoder, e *gozzard.Event) error {
	for d.next() {
		switch d.num {
		case 1:
			e.Seq = d.uint()
		case 2:
			e.Key.Namespace = d.string()
		case 3:
			e.Key.Name = d.string()
		case 4: // unknown kinds are allowed
			e.Kind = gozzard.EventKind(d.string())
		case 5:
			e.At = d.int64()
		case 6:
			e.PID = d.int()
		case 7:
			e.Code = d.int()
		case 8:
			e.Signal = d.string()
		case 9:
			e.Core = d.bool()
		case 10:
			e.Message = d.string()
		case 11:
			e.Known = d.bool()
		case 12:
			e.Cause.Op = d.id()
		case 13:
			e.Cause.Ref.Task = gozzard.TaskSeq(d.int64())
		case 14:
			e.Cause.Ref.Index = d.int32()
		default:
			d.skip()
		}
	}

	return d.err
}
