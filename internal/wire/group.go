package wire

import (
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
