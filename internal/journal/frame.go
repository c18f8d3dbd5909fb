package journal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// FormatVersion is written by this build. Older ones are read and marked as this one, newer ones are refused.
// Version 2 has the form of version 1 and types of records that an agent of version 1 does not know.
const FormatVersion = 2

// MaxBody bounds the body of one record.
const MaxBody = 8 << 20

const (
	magic       = "GOZZJRNL"
	headerSize  = 64
	preambleEnd = 16 // magic, version, checksum: the same in every version
	markAt      = 48
	markSize    = 12
	frameHead   = 17 // length, checksum, lsn, type
)

// Type tells records apart. It belongs to the user of the journal.
type Type uint8

// Entry is what is written.
type Entry struct {
	Type Type
	Body []byte
}

// Record is what is read back.
type Record struct {
	LSN  uint64
	Type Type
	Body []byte
}

// header is the beginning of the file.
type header struct {
	id   [16]byte
	base uint64 // lsn before the first record
	mark uint64 // highest lsn known to be synced
}

func checksum(parts ...[]byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli) // made once by the library
	var c uint32
	for _, p := range parts {
		c = crc32.Update(c, table, p)
	}
	return c
}

func (h header) encode() []byte {
	b := make([]byte, headerSize)
	copy(b, magic)
	binary.LittleEndian.PutUint32(b[8:], FormatVersion)
	binary.LittleEndian.PutUint32(b[12:], checksum(b[:12]))
	copy(b[16:], h.id[:])
	binary.LittleEndian.PutUint64(b[32:], h.base)
	binary.LittleEndian.PutUint32(b[40:], checksum(b[16:40]))
	copy(b[markAt:], encodeMark(h.id, h.mark))
	return b
}

// encodeMark is checked together with the id: a mark of another journal is no mark.
func encodeMark(id [16]byte, lsn uint64) []byte {
	b := make([]byte, markSize)
	binary.LittleEndian.PutUint64(b, lsn)
	binary.LittleEndian.PutUint32(b[8:], checksum(b[:8], id[:]))
	return b
}

// NewerError says that the journal was written by a newer program. The file was not touched.
type NewerError struct {
	Path    string
	Version uint32
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("journal %s has format version %d, this program knows versions up to %d: use the newer program", e.Path, e.Version, FormatVersion)
}

// decodeHeader reads the header. version is that of a well-formed preamble, 0 otherwise; ok is false when anything
// in it is damaged.
func decodeHeader(b []byte) (h header, version uint32, ok bool) {
	if len(b) < preambleEnd || string(b[:8]) != magic || binary.LittleEndian.Uint32(b[12:]) != checksum(b[:12]) {
		return header{}, 0, false
	}

	version = binary.LittleEndian.Uint32(b[8:])
	if version == 0 || version > FormatVersion || len(b) < headerSize ||
		binary.LittleEndian.Uint32(b[40:]) != checksum(b[16:40]) {
		return header{}, version, false
	}

	copy(h.id[:], b[16:])
	h.base = binary.LittleEndian.Uint64(b[32:])
	h.mark = binary.LittleEndian.Uint64(b[markAt:])
	ok = string(encodeMark(h.id, h.mark)) == string(b[markAt:markAt+markSize])
	return h, version, ok
}

// appendFrame adds one record to b.
func appendFrame(b []byte, lsn uint64, e Entry) []byte {
	at := len(b)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(e.Body)))
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = binary.LittleEndian.AppendUint64(b, lsn)
	b = append(b, byte(e.Type))
	b = append(b, e.Body...)
	binary.LittleEndian.PutUint32(b[at+4:], checksum(b[at:at+4], b[at+8:]))
	return b
}

// decodeFrame reads the record at the beginning of b; n is its size. ok is false when there is no whole, unharmed
// record.
func decodeFrame(b []byte) (r Record, n int, ok bool) {
	if len(b) < frameHead {
		return Record{}, 0, false
	}
	size := binary.LittleEndian.Uint32(b)
	if size > MaxBody || uint64(len(b)) < frameHead+uint64(size) {
		return Record{}, 0, false
	}
	n = frameHead + int(size)
	if binary.LittleEndian.Uint32(b[4:]) != checksum(b[:4], b[8:n]) {
		return Record{}, 0, false
	}
	return Record{LSN: binary.LittleEndian.Uint64(b[8:]), Type: Type(b[16]), Body: b[frameHead:n:n]}, n, true
}

// scanned is what was found in a journal file.
type scanned struct {
	header
	records []Record
	end     int  // of the valid prefix
	lost    bool // something that may have been synced is missing or cannot be trusted
}

// last is the lsn of the valid prefix.
func (s *scanned) last() uint64 {
	if n := len(s.records); n > 0 {
		return s.records[n-1].LSN
	}
	return s.base
}

// scan finds the valid prefix of a journal of this version and judges what follows it. It never fails: whatever the
// bytes are, some prefix, possibly none, is valid.
func scan(b []byte) scanned {
	h, _, ok := decodeHeader(b)
	s := scanned{header: h, end: min(headerSize, len(b)), lost: !ok}
	trusted := h.id != [16]byte{} // with a ruined header the first record says where the numbers begin
	for s.end < len(b) {
		r, n, ok := decodeFrame(b[s.end:])
		if !ok || r.LSN == 0 {
			break
		}
		if !trusted && len(s.records) == 0 {
			s.base = r.LSN - 1
		}
		if r.LSN != s.last()+1 {
			break
		}
		s.records = append(s.records, r)
		s.end += n
	}

	if s.last() < s.mark || recordIn(b[s.end:], s.last()) {
		s.lost = true
	}

	return s
}

// recordIn looks for a whole record anywhere in the bytes behind the valid prefix: then what is bad before it is
// not the end of the file.
func recordIn(b []byte, last uint64) bool {
	for at := 0; at+frameHead <= len(b); at++ {
		lsn := binary.LittleEndian.Uint64(b[at+8:])
		// cheap first: a checksum per byte of a long tail would be quadratic
		if at > 0 && (lsn == 0 || lsn > last+uint64(len(b))) {
			continue
		}
		if _, _, ok := decodeFrame(b[at:]); ok {
			return true
		}
	}
	return false
}
