package wire

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/gozzard/gozzard"
)

func appendUpdateOrder(b []byte, num protowire.Number, o *gozzard.UpdateOrder) []byte {
	b, start := begin(b, num)
	b = appendUint(b, 1, o.Roll)
	b = appendString(b, 2, o.Version)
	b = appendBytes(b, 3, o.Manifest[:])
	return end(b, start)
}

func decodeUpdateOrder(d decoder, o *gozzard.UpdateOrder) error {
	for d.next() {
		switch d.num {
		case 1:
			o.Roll = d.uint()
		case 2:
			o.Version = d.string()
		case 3:
			v := d.bytes()
			if len(v) != len(o.Manifest) {
				d.fail("a digest has %d bytes, has %d", len(o.Manifest), len(v))
				continue
			}
			copy(o.Manifest[:], v)
		default:
			d.skip()
		}
	}

	return d.err
}

func appendUpdateReport(b []byte, num protowire.Number, r *gozzard.UpdateReport) []byte {
	b, start := begin(b, num)
	b = appendUint(b, 1, r.Roll)
	b = appendString(b, 2, r.Version)
	b = appendUint(b, 3, uint64(r.State))
	b = appendString(b, 4, r.Reason)
	return end(b, start)
}

func decodeUpdateReport(d decoder, r *gozzard.UpdateReport) error {
	for d.next() {
		switch d.num {
		case 1:
			r.Roll = d.uint()
		case 2:
			r.Version = d.string()
		case 3:
			r.State = gozzard.UpdateState(d.atMost(uint64(gozzard.UpdateRolledBack)))
		case 4:
			r.Reason = d.string()
		default:
			d.skip()
		}
	}

	return d.err
}
