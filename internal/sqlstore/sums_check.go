package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gozzard/gozzard/internal/record"
)

// checkPages is how many pages are read at once.
const checkPages = 64

// pendingByte is where SQLite puts its locks. The page there is never used.
const pendingByte = 0x40000000

// ErrNoSums says that a database has no checksums to compare with.
var ErrNoSums = errors.New("there are no checksums of the pages of the database")

// CheckPages compares every page of the database with its checksum. It calls pause with the number of bytes after each
// part, so that the caller can give others time. An error means that the pages could not be compared.
func (s *Store) CheckPages(ctx context.Context, pause func(bytes int)) (r record.PageCheck, err error) {
	defer s.timed("check_pages", &err)()
	if s.sums == nil {
		return r, ErrNoSums
	}

	if r.LogDamaged, err = s.sums.checkLog(); err == nil {
		r.Damaged, r.Pages, err = s.sums.check(ctx, pause)
	}
	if err != nil {
		return r, fmt.Errorf("cannot check the pages of the database: %w", err)
	}
	r.Tables = tablesOf(ctx, s.read.db, r.Damaged)
	return r, nil
}

// checkLog reports whether the write-ahead log cannot be read any more as far as it was read when it was written.
func (s *pageSums) checkLog() (damaged bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.file == nil {
		return false, ErrNoSums
	}
	if err := s.follow(); err != nil {
		return false, err
	}
	scan, err := s.scanLog(walPosition{})
	if err != nil || scan == nil || scan.at.salt != s.at.salt {
		return errors.Is(err, errWALHeader), nil
	}
	if err := scan.each(func(walFrame) {}); err != nil || scan.at.frames >= s.at.frames {
		return false, err
	}

	// A log that began again meanwhile is not damaged.
	again, err := s.scanLog(s.at)
	return err == nil && again != nil && again.at.salt == s.at.salt, err
}

// check compares all pages with their checksums, part by part.
func (s *pageSums) check(ctx context.Context, pause func(bytes int)) (damaged []uint32, pages int, err error) {
	buf := make([]byte, checkPages*s.pageSize)
	for ; ; pages += checkPages {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		bad, n, err := s.checkPart(buf, uint32(pages)+1)
		if err != nil {
			return nil, 0, err
		}
		if damaged = append(damaged, bad...); n < checkPages {
			return damaged, pages + n, nil
		}
		pause(len(buf))
	}
}

// checkPart compares the pages from one on, while none of them changes.
func (s *pageSums) checkPart(buf []byte, first uint32) (bad []uint32, n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.file == nil {
		return nil, 0, ErrNoSums
	}
	bad, n, err = comparePages(s.db, s.file, s.pageSize, first, buf)
	if len(bad) == 0 || err != nil {
		return nil, n, err
	}
	scan, err := s.scanLog(walPosition{})
	if err != nil || scan == nil {
		return bad, n, err
	}
	return dropSuperseded(scan, bad), n, nil
}

// comparePages reads pages from one on into buf and returns those that do not fit their checksums. n is how many there
// are.
func comparePages(db, file io.ReaderAt, pageSize int, first uint32, buf []byte) (bad []uint32, n int, err error) {
	read, err := db.ReadAt(buf, int64(first-1)*int64(pageSize))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, err
	}
	n = read / pageSize

	sums := make([]byte, 8*n) // a checksum that is missing stays zero
	if _, err := file.ReadAt(sums, sumOffset(first)); err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, err
	}

	for i := range n {
		page := buf[i*pageSize : (i+1)*pageSize]
		want := pageSum(sums[8*i:])
		unused := want == pageSum{} && !slices.ContainsFunc(page, func(b byte) bool { return b != 0 })
		locks := int64(first-1+uint32(i))*int64(pageSize) == pendingByte
		if !unused && !locks && !sumPage(page).fits(want) {
			bad = append(bad, first+uint32(i))
		}
	}
	return bad, n, nil
}

// dropSuperseded leaves out the pages of which the write-ahead log has a newer version: SQLite does not read the one in
// the database any more.
func dropSuperseded(s *walScan, pages []uint32) []uint32 {
	newer := map[uint32]bool{}
	_ = s.each(func(f walFrame) { newer[f.page] = true }) // what was read counts
	return slices.DeleteFunc(pages, func(p uint32) bool { return newer[p] })
}

// CheckFile is Store.CheckPages for the database at a path, which a server in another process may be using. It must not
// be called in the process of that server: closing the file would drop the locks of SQLite.
func CheckFile(ctx context.Context, path string) (r record.PageCheck, err error) {
	db, err := openToRead(ctx, path)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	r.Damaged, r.Pages, err = checkFile(ctx, path)
	if err != nil {
		return r, fmt.Errorf("cannot check the pages of %s: %w", path, err)
	}
	r.Tables = tablesOf(ctx, db, r.Damaged)
	return r, nil
}

// checkFile compares all pages of a database that may be changing. The server writes checksums and pages one after the
// other, so a page that does not fit is looked at again.
func checkFile(ctx context.Context, path string) (damaged []uint32, pages int, err error) {
	// Open the files.
	path, err = filepath.Abs(path)
	if err != nil {
		return nil, 0, err
	}
	db, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	size, err := readPageSize(db)
	if err != nil {
		return nil, 0, err
	}
	file, err := openSumsFile(path, size, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, ErrNoSums
	}
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()

	// Compare all pages.
	buf := make([]byte, checkPages*size)
	for n := checkPages; n == checkPages; pages += n {
		var bad []uint32
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		if bad, n, err = comparePages(db, file, size, uint32(pages)+1, buf); err != nil {
			return nil, 0, err
		}
		damaged = append(damaged, bad...)
	}

	// Compare again those that do not fit.
	for try := 0; try < 5 && len(damaged) > 0; try++ {
		time.Sleep(time.Duration(try) * 100 * time.Millisecond)
		if damaged, err = withoutNewer(path, damaged); err != nil {
			return nil, 0, err
		}
		damaged = slices.DeleteFunc(damaged, func(p uint32) bool {
			bad, n, err := comparePages(db, file, size, p, buf[:size])
			return err == nil && (len(bad) == 0 || n == 0)
		})
	}
	return damaged, pages, nil
}

// withoutNewer is dropSuperseded with the write-ahead log of a database.
func withoutNewer(path string, pages []uint32) (_ []uint32, err error) {
	wal, err := os.Open(path + "-wal")
	if errors.Is(err, fs.ErrNotExist) {
		return pages, nil
	}
	if err != nil {
		return nil, err
	}

	defer func() { err = errors.Join(err, wal.Close()) }()

	s, err := newWALScan(wal, walPosition{})
	if err != nil || s == nil {
		return pages, nil // a log that is just being made
	}
	return dropSuperseded(s, pages), nil
}

// tablesOf names the tables and indexes that pages belong to, as far as SQLite can say it of a damaged database.
func tablesOf(ctx context.Context, db querier, pages []uint32) (names []string) {
	if len(pages) == 0 {
		return nil
	}
	list := strings.Trim(strings.ReplaceAll(fmt.Sprint(pages[:min(len(pages), 500)]), " ", ","), "[]")
	rows, err := db.QueryContext(ctx, `SELECT DISTINCT name FROM dbstat WHERE pageno IN (`+list+`) ORDER BY name`)
	if err != nil {
		return nil
	}

	defer rows.Close()
	for rows.Next() {
		var name string
		if rows.Scan(&name) == nil {
			names = append(names, name)
		}
	}
	return names
}
