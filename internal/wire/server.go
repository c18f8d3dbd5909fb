package wire

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/gozzard/gozzard"
)

func appendServer(b []byte, num protowire.Number, s *gozzard.ServerAddress) []byte {
	b, start := begin(b, num)
	b = appendString(b, 1, s.Agents)
	b = appendString(b, 2, s.API)
	return end(b, start)
}

func decodeServer(d decoder, s *gozzard.ServerAddress) error {
	for d.next() {
		switch d.num {
		case 1:
			s.Agents = d.string()
		case 2:
			s.API = d.string()
		default:
			d.skip()
		}
	}

	return d.err
}
