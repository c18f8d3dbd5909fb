package rendered

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"hash/crc32"
	"sync"
)

// gzipHead is the header of RFC 1952 without a name and a time; the system is not said.
const gzipHead = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"

// zippers are used again: one has about a megabyte.
var zippers = sync.Pool{New: func() any {
	z, _ := flate.NewWriter(nil, flate.BestSpeed) // the level is valid
	return z
}}

// Gzip is the compressed form of the text between a head and a tail. The text is compressed once.
func (t *Text) Gzip(head, tail []byte) ([]byte, error) {
	t.zipOnce.Do(func() { t.zipped, t.zipErr = deflate(t.Bytes, false) })
	if t.zipErr != nil {
		return nil, t.zipErr
	}
	return joined(head, tail, t)
}

// Gzip is the compressed form of a body.
func Gzip(body []byte) ([]byte, error) { return joined(nil, body, &Text{}) }

// joined puts parts together that were compressed each for itself: a deflated part that ends with a flush ends with a whole
// byte, and none refers to what is before it.
func joined(head, tail []byte, t *Text) ([]byte, error) {
	first, err := deflate(head, false)
	if err != nil {
		return nil, err
	}
	last, err := deflate(tail, true)
	if err != nil {
		return nil, err
	}

	sum := crc32.Update(crc32.Update(crc32.ChecksumIEEE(head), crc32.IEEETable, t.Bytes), crc32.IEEETable, tail)
	out := make([]byte, 0, len(gzipHead)+len(first)+len(t.zipped)+len(last)+8)
	out = append(append(append(append(out, gzipHead...), first...), t.zipped...), last...)
	out = binary.LittleEndian.AppendUint32(out, sum)
	return binary.LittleEndian.AppendUint32(out, uint32(len(head)+len(t.Bytes)+len(tail))), nil
}

// deflate compresses a part. The last one ends the data.
func deflate(part []byte, last bool) ([]byte, error) {
	z := zippers.Get().(*flate.Writer)
	defer zippers.Put(z)
	var b bytes.Buffer
	z.Reset(&b)
	if _, err := z.Write(part); err != nil {
		return nil, err
	}
	end := z.Flush
	if last {
		end = z.Close
	}
	if err := end(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
