package gozzard_test

import (
	"testing"

	"github.com/gozzard/gozzard"
)

// TestFineHistory: an hour fits into 360 points whatever its first second is, and nothing else is cut off.
func TestFineHistory(t *testing.T) {
	for late := range int64(13) {
		from := 1_800_000_000 + late
		q := gozzard.HistoryQuery{From: from, To: from + 3600, Points: 360}.Fine()
		begin := q.From
		if columns := (q.To - begin + 9) / 10; begin%10 != 0 || begin < from || begin > from+9 || columns > 360 {
			t.Errorf("from %d: begins at %d and has %d columns", from, begin, columns)
		}

		for _, q := range []gozzard.HistoryQuery{
			{From: from, To: from + 3600, Points: 300}, {From: from, To: from + 86400, Points: 360}, {From: from, To: from + 15, Points: 1},
		} {
			if fine := q.Fine(); fine != q && fine.To-fine.From > int64(q.Points)*10 {
				t.Errorf("%+v becomes %+v", q, fine)
			}
		}
		if q := (gozzard.HistoryQuery{From: from, To: from + 1, Points: 1000}); q.Fine().From >= q.To {
			t.Errorf("nothing is left of %+v", q)
		}
	}
}
