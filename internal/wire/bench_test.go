package wire_test

import (
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/wire"
)

func BenchmarkAppendReport(b *testing.B) {
	for name, r := range benchReports() {
		b.Run(name, func(b *testing.B) {
			buf := wire.AppendReport(nil, r)
			b.SetBytes(int64(len(buf)))
			b.ReportAllocs()
			for b.Loop() {
				buf = wire.AppendReport(buf[:0], r)
			}
		})
	}
}

func BenchmarkDecodeReport(b *testing.B) {
	for name, r := range benchReports() {
		b.Run(name, func(b *testing.B) {
			buf := wire.AppendReport(nil, r)
			b.SetBytes(int64(len(buf)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := wire.DecodeReport(buf); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCommand(b *testing.B) {
	c := commands()["operate"]
	b.ReportAllocs()
	var buf []byte
	for b.Loop() {
		buf = wire.AppendCommand(buf[:0], c)
		if _, err := wire.DecodeCommand(buf); err != nil {
			b.Fatal(err)
		}
	}
}

func benchReports() map[string]*gozzard.Report {
	plain := statusReport(100)
	for i := range plain.Statuses {
		plain.Statuses[i].Labels = nil
	}
	return map[string]*gozzard.Report{"status100": plain, "status100labelled": statusReport(100),
		"results": reports()["results"]}
}
