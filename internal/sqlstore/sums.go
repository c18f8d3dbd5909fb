package sqlstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// pageSum is the checksum of a page: two, so that damage in the file of checksums is not taken for damage of the page.
type pageSum [8]byte

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sumPage(page []byte) (s pageSum) {
	binary.BigEndian.PutUint32(s[:], crc32.Checksum(page, castagnoli))
	binary.BigEndian.PutUint32(s[4:], crc32.ChecksumIEEE(page))
	return s
}

// fits reports whether a page can be the one that this sum was made of.
func (s pageSum) fits(of pageSum) bool {
	return [4]byte(s[:4]) == [4]byte(of[:4]) || [4]byte(s[4:]) == [4]byte(of[4:])
}

const (
	sumsSuffix      = ".sums"
	sumsHeaderBytes = 32
	sumsMagic       = "gozzard.sums.1\n\x00"
)

// pageSums keeps a checksum of every page of an SQLite database in a file beside it, because SQLite has none: a bit
// that the disk changed in a row is just another row.
//
// The pages of the database change only when the write-ahead log is copied into it (a checkpoint). Only the writer of
// the store does that. Before it does, it writes the checksums of all pages in the log. So each page of the database
// fits its checksum, or a newer one is in the log, whenever the program or the machine stops.
type pageSums struct {
	path     string // of the database
	pageSize int
	db       *os.File // stays open as long as SQLite has the database: a close would drop SQLite's locks
	log      *slog.Logger

	mu   sync.Mutex // no page changes while pages are checked
	wal  *os.File   // nil before there is one; SQLite keeps it as long as the database is open
	file *os.File   // nil when the checksums could not be written
	at   walPosition
}

// openSums opens the checksums of a database that has at least one page, and makes them when there are none. Close it
// after all connections to the database. Without them, on a full disk for example, the database can still be used.
func openSums(path string, log *slog.Logger) *pageSums {
	s := &pageSums{path: path, log: log}
	if err := s.open(); err != nil {
		s.drop(err)
	}
	return s
}

func (s *pageSums) open() (err error) {
	if s.db, err = os.Open(s.path); err != nil {
		return err
	}
	if s.pageSize, err = readPageSize(s.db); err != nil {
		return err
	}

	// Open the file, or make it.
	s.file, err = openSumsFile(s.path, s.pageSize, os.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errForeignSums) {
		if err = s.make(); err == nil {
			s.file, err = openSumsFile(s.path, s.pageSize, os.O_RDWR)
		}
	}
	if err != nil {
		return err
	}

	return s.follow()
}

// drop removes checksums that cannot be written: wrong ones would report damage where there is none.
func (s *pageSums) drop(why error) {
	s.log.Error("cannot write the checksums of the database: damaged pages are not found until the server is restarted",
		"err", why)
	if s.file != nil {
		_ = s.file.Close() // nothing in it counts any more
		s.file = nil
	}
	if err := os.Remove(s.path + sumsSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Error("cannot remove the checksums of the database", "err", err)
	}
}

// removeOldSums removes the checksums beside a database that is empty: they are of another one.
func removeOldSums(path string) error {
	st, err := os.Stat(path)
	if err != nil || st.Size() > 0 {
		return err
	}
	if err := os.Remove(path + sumsSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// errForeignSums is a file of checksums that this database cannot have.
var errForeignSums = errors.New("the file has no checksums of this database")

// openSumsFile opens the file of checksums and checks its header.
func openSumsFile(path string, pageSize, flag int) (*os.File, error) {
	f, err := os.OpenFile(path+sumsSuffix, flag, 0)
	if err != nil {
		return nil, err
	}
	h := make([]byte, sumsHeaderBytes)
	if _, err := f.ReadAt(h, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(err, f.Close())
	}
	if !bytes.Equal(h, sumsHeader(pageSize)) {
		return nil, errors.Join(errForeignSums, f.Close())
	}
	return f, nil
}

func sumsHeader(pageSize int) []byte {
	h := append(make([]byte, 0, sumsHeaderBytes), sumsMagic...)
	h = binary.BigEndian.AppendUint32(h, uint32(pageSize))
	h = append(h, make([]byte, 8)...)
	return binary.BigEndian.AppendUint32(h, crc32.Checksum(h, castagnoli))
}

// readPageSize reads the size of the pages of a database from its header.
func readPageSize(db *os.File) (int, error) {
	var b [2]byte
	if _, err := db.ReadAt(b[:], 16); err != nil {
		return 0, fmt.Errorf("cannot read the page size: %w", err)
	}
	n := int(binary.BigEndian.Uint16(b[:]))
	if n == 1 {
		n = 65536
	}
	if n < 512 {
		return 0, fmt.Errorf("the database has the page size %d", n)
	}
	return n, nil
}

// make computes the checksums of all pages as they are. The file appears complete or not at all.
func (s *pageSums) make() (err error) {
	name := s.path + sumsSuffix
	f, err := os.OpenFile(name+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}

	// Write the checksums.
	_, err = f.Write(sumsHeader(s.pageSize))
	buf := make([]byte, checkPages*s.pageSize)
	for first := int64(0); err == nil; first += checkPages {
		n, readErr := s.db.ReadAt(buf, first*int64(s.pageSize))
		if readErr != nil && !errors.Is(readErr, io.EOF) {
			err = readErr
			break
		}
		var sums []byte
		for b := buf[:n]; len(b) >= s.pageSize; b = b[s.pageSize:] {
			sum := sumPage(b[:s.pageSize])
			sums = append(sums, sum[:]...)
		}
		if _, err = f.Write(sums); n < len(buf) {
			break
		}
	}

	// Put the file in its place.
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(name+".new"))
	}
	if err := os.Rename(name+".new", name); err != nil {
		return err
	}
	s.log.Info("made the checksums of the database: from now on damaged pages are found", "file", name)
	return syncDir(filepath.Dir(name))
}

// follow writes the checksums of the pages that are new in the write-ahead log. mu is held, or s is not shared yet.
func (s *pageSums) follow() error {
	if s.file == nil {
		return nil
	}

	// Read the new part of the log.
	scan, err := s.scanLog(s.at)
	if err != nil || scan == nil {
		return err
	}
	fresh := map[uint32]pageSum{}
	if err := scan.each(func(f walFrame) { fresh[f.page] = f.sum }); err != nil {
		return err
	}

	// Write the checksums, neighbours together.
	pages := slices.Sorted(maps.Keys(fresh))
	for len(pages) > 0 {
		first, run := pages[0], []byte{}
		for len(pages) > 0 && pages[0] == first+uint32(len(run)/8) {
			sum := fresh[pages[0]]
			run, pages = append(run, sum[:]...), pages[1:]
		}
		if _, err := s.file.WriteAt(run, sumOffset(first)); err != nil {
			return err
		}
	}
	if len(fresh) > 0 {
		if err := s.file.Sync(); err != nil {
			return err
		}
	}

	s.at = scan.at
	return nil
}

// scanLog begins to read the write-ahead log; nil when there is none. mu is held, or s is not shared yet.
func (s *pageSums) scanLog(from walPosition) (*walScan, error) {
	if s.wal == nil {
		f, err := os.Open(s.path + "-wal")
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		s.wal = f
	}
	return newWALScan(s.wal, from)
}

// sumOffset is where the checksum of a page is in the file. The first page has number 1.
func sumOffset(page uint32) int64 { return sumsHeaderBytes + 8*(int64(page)-1) }

// beforeCheckpoint writes the checksums of everything in the write-ahead log and keeps pages from being checked until
// done is called.
func (s *pageSums) beforeCheckpoint() (done func()) {
	if s == nil { // while the database is being opened
		return func() {}
	}
	s.mu.Lock()
	if err := s.follow(); err != nil {
		s.drop(err)
	}
	return s.mu.Unlock
}

func (s *pageSums) close() (err error) {
	for _, f := range []*os.File{s.file, s.wal, s.db} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}
