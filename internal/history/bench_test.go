package history

import (
	"fmt"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
)

// BenchmarkHour is an hour of 1,000 processes: 360 passes and what is written meanwhile.
func BenchmarkHour(b *testing.B) {
	now := time.Unix(1_800_000_000, 0)
	s, err := Open(Options{Dir: b.TempDir(), Now: func() time.Time { return now }})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()

	const processes = 1000
	list := make([]Sample, processes)
	for i := range list {
		list[i] = busy(i+1, 0.5)
		list[i].Name = fmt.Sprint("p", i)
	}
	written := s.written.Load()
	b.ReportAllocs()
	for b.Loop() {
		for range 360 {
			s.Add(list)
			s.flush(false)
			now = now.Add(10 * time.Second)
		}
	}
	hours := float64(b.N)
	b.ReportMetric(float64(s.written.Load()-written)/hours/processes, "written-B/process/h")
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/hours/processes, "cpu-ms/process/h")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkRead reads a day of one process as a chart.
func BenchmarkRead(b *testing.B) {
	now := time.Unix(1_800_000_000, 0)
	s, err := Open(Options{Dir: b.TempDir(), Now: func() time.Time { return now }})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for range 8640 {
		s.Add([]Sample{busy(7, 0.5)})
		s.flush(false)
		now = now.Add(10 * time.Second)
	}

	for b.Loop() {
		q := gozzard.HistoryQuery{Key: web, From: now.Unix() - 86_400, To: now.Unix(), Points: 300}
		if _, err := s.Read(q); err != nil {
			b.Fatal(err)
		}
	}
}
