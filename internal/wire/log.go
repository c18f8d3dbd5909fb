package wire

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/gozzard/gozzard"
)

func appendGroup(b []byte, num protowire.Number, g *gozzard.Group) []byte {
	b, start := begin(b, num)
	b = appendString(b, 1, g.Namespace)
	b = appendString(b, 2, g.ID)
	b = appendDouble(b, 3, g.CPULimit)
	b = appendDouble(b, 4, g.MemLimit)
	b = appendInt(b, 5, int64(g.CPUWeight))
	b = appendInt(b, 6, int64(g.MemWeight))
	return end(b, start)
}

func decodeGroup(d decoder, g *gozzard.Group) error {
	for d.next() {
		switch d.num {
		case 1:
			g.Namespace = d.string()
		case 2:
			g.ID = d.string()
		case 3:
			g.CPULimit = d.double()
		case 4:
			g.MemLimit = d.double()
		case 5:
			g.CPUWeight = d.int()
		case 6:
			g.MemWeight = d.int()
		default:
			d.skip()
		}
	}
	return d.err
}

func appendLogQuery(b []byte, num protowire.Number, q *gozzard.LogQuery) []byte {
	b, start := begin(b, num)
	b = appendID(b, 1, q.ID)
	b = appendString(b, 2, q.Key.Namespace)
	b = appendString(b, 3, q.Key.Name)
	b = appendInt(b, 4, int64(q.Lines))
	b = appendInt(b, 5, q.Offset)
	b = appendInt(b, 6, int64(q.Max))
	return end(b, start)
}

func decodeLogQuery(d decoder, q *gozzard.LogQuery) error {
	for d.next() {
		switch d.num {
		case 1:
			q.ID = d.id()
		case 2:
			q.Key.Namespace = d.string()
		case 3:
			q.Key.Name = d.string()
		case 4:
			q.Lines = d.int()
		case 5:
			q.Offset = d.int64()
		case 6:
			q.Max = d.int()
		default:
			d.skip()
		}
	}
	return d.err
}

func appendLogChunk(b []byte, num protowire.Number, c *gozzard.LogChunk) []byte {
	b, start := begin(b, num)
	b = appendID(b, 1, c.ID)
	b = appendBytes(b, 2, c.Data[:min(len(c.Data), MaxLogBytes)])
	b = appendInt(b, 3, c.Offset)
	b = appendInt(b, 4, c.Next)
	b = appendString(b, 5, c.Error)
	return end(b, start)
}

func decodeLogChunk(d decoder, c *gozzard.LogChunk) error {
	for d.next() {
		switch d.num {
		case 1:
			c.ID = d.id()
		case 2:
			v := d.bytes()
			if len(v) > MaxLogBytes {
				d.fail("has %d bytes, at most %d are allowed", len(v), MaxLogBytes)
				continue
			}
			c.Data = slices.Clone(v)
		case 3:
			c.Offset = d.int64()
		case 4:
			c.Next = d.int64()
		case 5:
			c.Error = d.string()
		default:
			d.skip()
		}
	}

	if len(c.Data) == 0 {
		c.Data = nil
	}

	return d.err
}

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
		case 4: // an unknown kind is shown as it is
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
		default:
			d.skip()
		}
	}
	return d.err
}
