package wire

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/gozzard/gozzard"
)

func appendLogQuery(b []byte, num protowire.Number, q *gozzard.LogQuery) []byte {
	b, start := begin(b, num)
	b = appendQuestion(b, q.ID, q.Key)
	b = appendInt(b, 4, int64(q.Lines))
	b = appendInt(b, 5, q.Offset)
	b = appendInt(b, 6, int64(q.Max))
	return end(b, start)
}

func decodeLogQuery(d decoder, q *gozzard.LogQuery) error {
	for d.next() {
		switch d.num {
		case 4:
			q.Lines = d.int()
		case 5:
			q.Offset = d.int64()
		case 6:
			q.Max = d.int()
		default:
			d.question(&q.ID, &q.Key)
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
