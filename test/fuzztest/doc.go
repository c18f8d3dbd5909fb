// Package fuzztest runs fuzz targets within bounds: every input ends in time and allocates little, and a plain `go
// test` tries random inputs too, not only the seeds.
//
// A target is written as ever, with New around its *testing.F:
//
//	func FuzzParse(f *testing.F) {
//		z := fuzztest.New(f)
//		z.Add([]byte("seed"))
//		z.Fuzz(func(t *testing.T, in []byte) { ... })
//	}
//
// Under `go test -fuzz` the tool chain looks for inputs, guided by coverage. Without, changed seeds are tried for
// as long as GOZZARD_FUZZ_TIME says (a short while when it says nothing), always the same ones in the same order: a
// failure comes again.
package fuzztest
