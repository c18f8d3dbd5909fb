package journal

import (
	"encoding/binary"
	"os"
)

// SetSync replaces the fdatasync of a journal, for tests of slow and failing disks.
func SetSync(j *Journal, f func(*os.File) error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.fdatasync = f
}

// Scan returns what Open reads from the bytes of a file.
func Scan(b []byte) (records []Record, end int, lost bool) {
	s := scan(b)
	return s.records, s.end, s.lost
}

// Encode returns a file as Open would write it.
func Encode(id [16]byte, base, mark uint64, entries ...Entry) []byte {
	b := header{id: id, base: base, mark: mark}.encode(FormatVersion)
	for i, e := range entries {
		b = appendFrame(b, base+uint64(i)+1, e)
	}
	return b
}

// Checksum returns a checksum in the form that it has in the file.
func Checksum(b []byte) []byte { return binary.LittleEndian.AppendUint32(nil, checksum(b)) }
