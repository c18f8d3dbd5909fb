package journal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// FormatVersion is the version that this program writes. It reads older versions, and marks them with this version
// when it opens them. It rejects newer ones. It stands for all files of the state folder: if an older program would
// misread or damage one of them, the version is raised, although the journal has its old form. The one exception is
// the state of updates, which an older program must be able to read to hand back to the newer one. The versions have
// the same form. Each has record types that an agent of an earlier version does not know.
const FormatVersion = 3

// MaxBody is the largest size of the body of one record.
const MaxBody = 8 << 20

const (
	magic       = "GOZZJRNL"
	headerSize  = 64
	preambleEnd = 16 // magic, version, checksum: the same in every version
	markAt      = 48
	markSize    = 12
	frameHead   = 17 // length, checksum, lsn, type
)

// Type is the type of a record. The user of the journal defines the types.
type Type uint8

// Entry is a record to write.
type Entry struct {
	Type Type
	Body []byte
}

// Record is a record that was read.
type Record struct {
	LSN  uint64
	Type Type
	Body []byte
}

// header is the beginning of the file.
type header struct {
	id   [16]byte
	base uint64 // the lsn before the first record
	mark uint64 // the highest lsn that is known to be synced
}

func checksum(parts ...[]byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli) // the library makes it once
	var c uint32
	for _, p := range parts {
		c = crc32.Update(c, table, p)
	}
	return c
}

func (h header) encode(version uint32) []byte {
	b := make([]byte, headerSize)
	copy(b, magic)
	binary.LittleEndian.PutUint32(b[8:], version)
	binary.LittleEndian.PutUint32(b[12:], checksum(b[:12]))
	copy(b[16:], h.id[:])
	binary.LittleEndian.PutUint64(b[32:], h.base)
	binary.LittleEndian.PutUint32(b[40:], checksum(b[16:40]))
	copy(b[markAt:], encodeMark(h.id, h.mark))
	return b
}

// encodeMark makes the mark. Its checksum includes the id, so the mark of another journal is not valid.
func encodeMark(id [16]byte, lsn uint64) []byte {
	b := make([]byte, markSize)
	binary.LittleEndian.PutUint64(b, lsn)
	binary.LittleEndian.PutUint32(b[8:], checksum(b[:8], id[:]))
	return b
}

// NewerError says that a newer program has written the journal. The file was not changed.
type NewerError struct {
	Path    string
	Version uint32
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("journal %s has format version %d, this program knows versions up to %d: use the newer program "+
		"that wrote it, or put back a copy of the whole state folder from before the upgrade",
		e.Path, e.Version, FormatVersion)
}

// decodeHeader reads the header. version is 0 unless the preamble is well formed. ok is false if anything in the
// header is damaged.
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

// appendFrame appends one record to b.
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

// decodeFrame reads the record at the beginning of b. n is its size. ok is false if there is no complete, undamaged
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
	end     int  // the size of the valid prefix
	lost    bool // something that may have been synced is missing or damaged
}

// last is the lsn of the last valid record.
func (s *scanned) last() uint64 {
	if n := len(s.records); n > 0 {
		return s.records[n-1].LSN
	}
	return s.base
}

// scan finds the valid prefix of a journal of this version, and decides whether something was lost behind it. It never
// fails: any bytes have a valid prefix, which may be empty.
func scan(b []byte) scanned {
	h, _, ok := decodeHeader(b)
	s := scanned{header: h, end: min(headerSize, len(b)), lost: !ok}
	trusted := h.id != [16]byte{} // if the header is damaged, the first record says where the lsns begin

	// Collect records as long as they are valid and in order.
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

	// Decide whether something is missing.
	if s.last() < s.mark || containsRecord(b[s.end:], s.last()) {
		s.lost = true
	}
	return s
}

// containsRecord looks for a complete record anywhere in the bytes behind the valid prefix. If there is one, the bad
// bytes before it are not a half-written end.
func containsRecord(b []byte, last uint64) bool {
	for at := 0; at+frameHead <= len(b); at++ {
		lsn := binary.LittleEndian.Uint64(b[at+8:])
		// Check the lsn first. A checksum at every byte of a long tail would take quadratic time.
		if at > 0 && (lsn == 0 || lsn > last+uint64(len(b))) {
			continue
		}
		if _, _, ok := decodeFrame(b[at:]); ok {
			return true
		}
	}
	return false
}
