package wire

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/gozzard/gozzard"
)

func appendHistoryQuery(b []byte, num protowire.Number, q *gozzard.HistoryQuery) []byte {
	b, start := begin(b, num)
	b = appendQuestion(b, q.ID, q.Key)
	b = appendInt(b, 4, q.From)
	b = appendInt(b, 5, q.To)
	b = appendInt(b, 6, int64(q.Points))
	return end(b, start)
}

func decodeHistoryQuery(d decoder, q *gozzard.HistoryQuery) error {
	for d.next() {
		switch d.num {
		case 4:
			q.From = d.int64()
		case 5:
			q.To = d.int64()
		case 6:
			q.Points = d.int()
		default:
			d.question(&q.ID, &q.Key)
		}
	}

	return d.err
}

func appendHistory(b []byte, num protowire.Number, h *gozzard.History) []byte {
	b, start := begin(b, num)
	b = appendID(b, 1, h.ID)
	b = appendInt(b, 2, h.From)
	b = appendInt(b, 3, h.Step)
	for i := range h.Points[:min(len(h.Points), MaxPoints)] {
		b = appendHistoryPoint(b, 4, &h.Points[i])
	}
	b = appendString(b, 5, h.Error)
	return end(b, start)
}

func decodeHistory(d decoder, h *gozzard.History) error {
	for d.next() {
		switch d.num {
		case 1:
			h.ID = d.id()
		case 2:
			h.From = d.int64()
		case 3:
			h.Step = d.int64()
		case 4:
			var p *gozzard.HistoryPoint
			h.Points, p = grow(&d, h.Points, MaxPoints)
			d.nested(decodeHistoryPoint(d.message("history point"), p))
		case 5:
			h.Error = d.string()
		default:
			d.skip()
		}
	}

	return d.err
}

func appendHistoryPoint(b []byte, num protowire.Number, p *gozzard.HistoryPoint) []byte {
	b, start := begin(b, num)
	b = appendInt(b, 1, p.CPU)
	b = appendInt(b, 2, p.Mem)
	b = appendInt(b, 3, p.FD)
	b = appendInt(b, 4, p.Restarts)
	return end(b, start)
}

func decodeHistoryPoint(d decoder, p *gozzard.HistoryPoint) error {
	for d.next() {
		switch d.num {
		case 1:
			p.CPU = d.int64()
		case 2:
			p.Mem = d.int64()
		case 3:
			p.FD = d.int64()
		case 4:
			p.Restarts = d.int64()
		default:
			d.skip()
		}
	}

	return d.err
}
