package wire

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/gozzard/gozzard"
)

func appendFileResult(b []byte, num protowire.Number, r *gozzard.FileResult) []byte {
	b, start := begin(b, num)
	b = appendString(b, 1, string(r.Code))
	b = appendString(b, 2, r.SHA256)
	return end(b, start)
}

func decodeFileResult(d decoder, r *gozzard.FileResult) error {
	for d.next() {
		switch d.num {
		case 1:
			r.Code = gozzard.FileCode(d.string())
		case 2:
			r.SHA256 = d.string()
		default:
			d.skip()
		}
	}

	return d.err
}
