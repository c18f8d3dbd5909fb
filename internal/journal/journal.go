package journal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// Names of the files in the folder.
const (
	fileName    = "journal"
	newName     = "journal.new"
	reserveName = "journal.reserve"
	lockName    = "lock"
	damagedName = "journal.damaged" // and a number
)

// Errors that callers act on.
var (
	ErrNoSpace  = errors.New("journal: no space")
	ErrTooLarge = errors.New("journal: record too large")
	ErrClosed   = errors.New("journal: closed")
)

// Options of a journal. The zero value is usable.
type Options struct {
	// Fatal is called once when the file cannot be trusted any more (failed fdatasync, failed write that is not
	// about space). The program is expected to end; if it does not, every later call returns that error.
	Fatal func(error)
	Log   *slog.Logger
	Now   func() time.Time

	Reserve   int64 // bytes kept back for vital records; 0 is 1 MiB, negative is none
	CompactAt int64 // file size from which compaction is wanted; 0 is 4 MiB
	NoSync    bool  // simulated hosts only: a crash of the machine may lose everything

	// Sync is fdatasync; tests of slow and failing disks put theirs in its place.
	Sync func(*os.File) error
}

// Journal is an open journal. It is safe for concurrent use.
type Journal struct {
	dir  string
	o    Options
	lock *os.File
	id   [16]byte // settled by Open

	mu      sync.Mutex
	turn    *sync.Cond // a sync has ended
	file    *os.File
	end     int64         // of the file
	written uint64        // lsn
	synced  atomic.Uint64 // lsn; changed with mu held, read without: who beats must not wait for a slow disk
	syncing bool
	err     error // poisoned or closed
	compact int64 // size from which compaction is wanted
	reserve bool  // the reserve is there
	retryAt time.Time

	fdatasync func(*os.File) error
}

// Open opens the journal in a folder, making both when missing, and returns its records. The folder must belong to
// the caller and be closed to others; only one process can have it open.
func Open(dir string, o Options) (*Journal, []Record, error) {
	o.fill()

	if err := makeDir(dir); err != nil {
		return nil, nil, err
	}

	lock, err := lockDir(dir)
	if err != nil {
		return nil, nil, err
	}

	j := &Journal{dir: dir, o: o, lock: lock, compact: o.CompactAt, fdatasync: o.Sync}
	j.turn = sync.NewCond(&j.mu)
	records, err := j.load()
	if err != nil {
		if j.file != nil {
			_ = j.file.Close()
		}
		_ = lock.Close()
		return nil, nil, err
	}

	if o.Reserve > 0 {
		if err := j.makeReserve(); err != nil { // not a reason to leave the host's processes alone
			o.Log.Warn("journal has no reserve", "dir", dir, "error", err)
		}
	}

	return j, records, nil
}

func (o *Options) fill() {
	if o.Fatal == nil {
		o.Fatal = func(error) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sync == nil {
		o.Sync = fdatasync
	}
	if o.Reserve == 0 {
		o.Reserve = 1 << 20
	}
	if o.CompactAt == 0 {
		o.CompactAt = 4 << 20
	}
}

// Close syncs what was written and gives the folder free.
func (j *Journal) Close() error {
	err := j.Sync(j.Written())
	j.mu.Lock()
	defer j.mu.Unlock()

	for j.syncing {
		j.turn.Wait()
	}

	if errors.Is(j.err, ErrClosed) {
		return nil
	}

	j.err = ErrClosed
	j.turn.Broadcast()

	if e := j.file.Close(); err == nil {
		err = e
	}
	if e := j.lock.Close(); err == nil { // the lock goes with its file
		err = e
	}

	return err
}

// ID names the journal; it changes when something synced was lost, and with every new file.
func (j *Journal) ID() [16]byte { return j.id }

// Written is the lsn of the newest record, synced or not.
func (j *Journal) Written() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.written
}

// Synced is the lsn up to which everything is durable. It never waits.
func (j *Journal) Synced() uint64 { return j.synced.Load() }

// Append writes entries and waits until they are durable.
func (j *Journal) Append(vital bool, entries ...Entry) (uint64, error) {
	lsn, err := j.Write(vital, entries...)
	if err != nil {
		return 0, err
	}
	return lsn, j.Sync(lsn)
}

// Write puts entries into the file, one behind the other, without waiting for the disk; the lsn of the last is
// returned. All are there or none. A vital entry may use the reserve; others are refused with ErrNoSpace while
// there is none.
func (j *Journal) Write(vital bool, entries ...Entry) (uint64, error) {
	size := 0
	for _, e := range entries {
		if len(e.Body) > MaxBody {
			return 0, fmt.Errorf("%w: %d bytes", ErrTooLarge, len(e.Body))
		}
		size += frameHead + len(e.Body)
	}

	j.mu.Lock()
	defer j.mu.Unlock()

	if j.err != nil {
		return 0, j.err
	}
	if !vital && !j.haveReserve() {
		return 0, fmt.Errorf("%w: the reserve is used up", ErrNoSpace)
	}

	buf := make([]byte, 0, size)
	lsn := j.written
	for _, e := range entries {
		lsn++
		buf = appendFrame(buf, lsn, e)
	}

	err := j.put(buf)
	if vital && errors.Is(err, ErrNoSpace) && j.dropReserve() {
		err = j.put(buf)
	}
	if err != nil {
		return 0, err
	}

	j.end += int64(len(buf))
	j.written = lsn
	return lsn, nil
}

// put writes at the end, or leaves the file as it was. j.mu is held.
func (j *Journal) put(buf []byte) error {
	_, err := j.file.WriteAt(buf, j.end)
	if err == nil {
		return nil
	}
	if !isNoSpace(err) {
		return j.fail(fmt.Errorf("cannot write journal in %s: %w", j.dir, err))
	}
	if e := j.file.Truncate(j.end); e != nil {
		return j.fail(fmt.Errorf("cannot take back a record in %s: %w", j.dir, e))
	}
	return fmt.Errorf("%w: %w", ErrNoSpace, err)
}

// Sync waits until everything up to lsn is durable. Callers at the same time share one fdatasync: one of them does
// it for all that was written when it began.
func (j *Journal) Sync(lsn uint64) error {
	j.mu.Lock()
	defer j.mu.Unlock()

	for j.synced.Load() < lsn && j.err == nil {
		if j.syncing {
			j.turn.Wait()
			continue
		}
		j.syncOnce()
	}

	if j.synced.Load() >= lsn {
		return nil
	}

	return j.err
}

// syncOnce is one fdatasync. j.mu is held, but not during the call.
func (j *Journal) syncOnce() {
	target, file := j.written, j.file

	if j.o.NoSync {
		j.synced.Store(target)
		return
	}

	j.syncing = true
	j.mu.Unlock()
	err := j.fdatasync(file)
	j.mu.Lock()
	j.syncing = false
	defer j.turn.Broadcast()

	if err != nil {
		_ = j.fail(fmt.Errorf("cannot sync journal in %s: %w", j.dir, err))
		return
	}

	j.synced.Store(target)

	if _, err := file.WriteAt(encodeMark(j.id, target), markAt); err != nil {
		_ = j.fail(fmt.Errorf("cannot mark journal in %s: %w", j.dir, err))
	}
}

// fail poisons the journal. j.mu is held.
func (j *Journal) fail(err error) error {
	if j.err == nil {
		j.err = err
		j.turn.Broadcast()
		j.o.Fatal(err)
	}
	return j.err
}

func (j *Journal) path(name string) string { return filepath.Join(j.dir, name) }

func newID() (id [16]byte) {
	_, _ = rand.Read(id[:]) // never fails: it ends the program instead
	return id
}
