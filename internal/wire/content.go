package wire

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/gozzard/gozzard"
)

func appendContentQuery(b []byte, num protowire.Number, q *gozzard.ContentQuery) []byte {
	b, start := begin(b, num)
	b = appendID(b, 1, q.Op)
	b = appendString(b, 2, q.SHA256)
	b = appendInt(b, 3, q.Offset)
	return end(b, start)
}

func decodeContentQuery(d decoder, q *gozzard.ContentQuery) error {
	for d.next() {
		switch d.num {
		case 1:
			q.Op = d.id()
		case 2:
			q.SHA256 = d.string()
		case 3:
			q.Offset = d.int64()
		default:
			d.skip()
		}
	}

	return d.err
}

func appendContentPart(b []byte, num protowire.Number, p *gozzard.ContentPart) []byte {
	b, start := begin(b, num)
	b = appendID(b, 1, p.Op)
	b = appendString(b, 2, p.SHA256)
	b = appendInt(b, 3, p.Offset)
	b = appendBytes(b, 4, p.Data[:min(len(p.Data), MaxLogBytes)])
	b = appendUint(b, 5, uint64(p.Sum))
	b = appendString(b, 6, p.Error)
	return end(b, start)
}

func decodeContentPart(d decoder, p *gozzard.ContentPart) error {
	for d.next() {
		switch d.num {
		case 1:
			p.Op = d.id()
		case 2:
			p.SHA256 = d.string()
		case 3:
			p.Offset = d.int64()
		case 4:
			part := d.bytes()
			if len(part) > MaxLogBytes {
				d.fail("has %d bytes, at most %d are allowed", len(part), MaxLogBytes)
				continue
			}
			p.Data = slices.Clone(part)
		case 5:
			p.Sum = d.uint32()
		case 6:
			p.Error = d.string()
		default:
			d.skip()
		}
	}

	if len(p.Data) == 0 {
		p.Data = nil
	}

	return d.err
}
