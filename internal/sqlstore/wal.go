package sqlstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Sizes in SQLite's write-ahead log.
const (
	walHeaderBytes   = 32
	walFrameBytes    = 24 // before each page
	walReadPages     = 64 // read at once
	walMagic         = 0x377f0682
	walMagicBigOrder = 0x377f0683
)

// walPosition is how far a write-ahead log was read: up to the end of a transaction.
type walPosition struct {
	salt   [8]byte // of the log; another one means that the log began again
	frames int64
	sum    [2]uint32 // SQLite's checksum, which runs through all frames
}

// walFrame is one page in a write-ahead log.
type walFrame struct {
	page uint32
	sum  pageSum
}

// walScan reads a write-ahead log.
type walScan struct {
	r        io.ReaderAt
	pageSize int
	order    binary.ByteOrder // in which the checksums are computed
	at       walPosition
}

// newWALScan begins at a position, or at the beginning when the log began again since. It returns nil when the log has
// no header: it is missing, empty or just being made.
func newWALScan(r io.ReaderAt, from walPosition) (*walScan, error) {
	var h [walHeaderBytes]byte
	if _, err := r.ReadAt(h[:], 0); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, err
	}

	s := &walScan{r: r, pageSize: int(binary.BigEndian.Uint32(h[8:])), at: from}
	switch binary.BigEndian.Uint32(h[:]) {
	case walMagic:
		s.order = binary.LittleEndian
	case walMagicBigOrder:
		s.order = binary.BigEndian
	}

	if s.order != nil && [8]byte(h[16:24]) == from.salt {
		return s, nil
	}

	// Check the header of another log.
	if h == [walHeaderBytes]byte{} {
		return nil, nil
	}
	if s.order == nil || s.pageSize < 512 || s.pageSize > 65536 {
		return nil, errWALHeader
	}
	s.at = walPosition{salt: [8]byte(h[16:24])}
	s.at.sum = walSum(s.order, s.at.sum, h[:24])
	if s.at.sum != [2]uint32{binary.BigEndian.Uint32(h[24:]), binary.BigEndian.Uint32(h[28:])} {
		return nil, errWALHeader
	}
	return s, nil
}

var errWALHeader = errors.New("the header of the write-ahead log is damaged")

// each calls f for the frames of every committed transaction behind the position, and moves the position behind them.
// It ends at the first frame that is wrong, as SQLite does.
func (s *walScan) each(f func(walFrame)) error {
	_, err := s.read(f, false)
	return err
}

// read is each. With all it reads on behind a wrong frame: beyond is the number of transactions that end there.
func (s *walScan) read(f func(walFrame), all bool) (beyond int, err error) {
	frameSize := walFrameBytes + s.pageSize
	buf := make([]byte, walReadPages*frameSize)
	var open []walFrame
	at, broken := s.at, false
	for {
		n, err := s.r.ReadAt(buf, walHeaderBytes+at.frames*int64(frameSize))
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}

		for b := buf[:n]; len(b) >= frameSize; b = b[frameSize:] {
			frame := b[:frameSize]
			at.frames++
			commit := binary.BigEndian.Uint32(frame[4:]) != 0
			same := [8]byte(frame[8:16]) == at.salt

			// Behind a damaged frame only count the transactions.
			if !broken {
				at.sum = walSum(s.order, walSum(s.order, at.sum, frame[:8]), frame[walFrameBytes:])
				broken = !same || at.sum != [2]uint32{binary.BigEndian.Uint32(frame[16:]),
					binary.BigEndian.Uint32(frame[20:])}
			}
			switch {
			case broken && !all:
				return 0, nil
			case broken && commit && same:
				beyond++
			}
			if broken {
				continue
			}

			open = append(open, walFrame{binary.BigEndian.Uint32(frame), sumPage(frame[walFrameBytes:])})
			if !commit {
				continue
			}
			for _, w := range open {
				f(w)
			}
			s.at, open = at, open[:0]
		}

		if n < len(buf) {
			return beyond, nil
		}
	}
}

// walSum continues SQLite's checksum of a write-ahead log. The length of b is a multiple of 8.
func walSum(order binary.ByteOrder, sum [2]uint32, b []byte) [2]uint32 {
	s0, s1 := sum[0], sum[1]
	if order == binary.LittleEndian { // the usual one: a call for each word would be slow
		for ; len(b) >= 8; b = b[8:] {
			s0 += binary.LittleEndian.Uint32(b) + s1
			s1 += binary.LittleEndian.Uint32(b[4:]) + s0
		}
		return [2]uint32{s0, s1}
	}
	for ; len(b) >= 8; b = b[8:] {
		s0 += order.Uint32(b) + s1
		s1 += order.Uint32(b[4:]) + s0
	}
	return [2]uint32{s0, s1}
}

// checkWAL finds damage in a write-ahead log that SQLite would take for its end: SQLite reads up to the first frame
// that is wrong and drops the rest. After a power cut the last transaction may be incomplete. Each transaction is on
// the disk before the next one begins, so two transactions behind a wrong frame mean that the frame was damaged later.
func checkWAL(path string) (err error) {
	f, err := os.Open(path + "-wal")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot check the write-ahead log of the database: %w", err)
	}

	defer func() { err = errors.Join(err, f.Close()) }()

	s, err := newWALScan(f, walPosition{})
	beyond := 0
	if err == nil && s != nil {
		beyond, err = s.read(func(walFrame) {}, true)
	}
	if err == nil && beyond < 2 {
		return nil
	}

	if err == nil {
		err = fmt.Errorf("frame %d or one soon after it; %d transactions follow", s.at.frames+1, beyond)
	}
	return fmt.Errorf("the write-ahead log %s-wal is damaged; it was not changed: restore a backup, or move this file "+
		"away to go on without the changes in it (%w)", path, err)
}
