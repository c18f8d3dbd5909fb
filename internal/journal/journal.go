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
	damagedName = "journal.damaged" // a number follows
)

// Errors that callers act on.
var (
	ErrNoSpace  = errors.New("journal: no space")
	ErrUnable   = errors.New("journal: cannot record")
	ErrTooLarge = errors.New("journal: record too large")
	ErrClosed   = errors.New("journal: closed")
)

// Options of a journal. The zero value is usable.
type Options struct {
	// Fatal is called once when the file cannot be trusted any more: an fdatasync failed, or a write failed for
	// another reason than space or a read-only file system. The program must end. If it does not, every later call
	// returns that error.
	Fatal func(error)

	// Unable is called when the journal becomes unable to record. It must not call the journal. It may be nil.
	Unable func()

	Log *slog.Logger
	Now func() time.Time

	// Reserve is the number of bytes that are reserved in a file of their own. Half as many are the headroom behind the
	// end of the journal. 0 means 1 MiB, negative means none.
	Reserve   int64
	CompactAt int64 // the file size from which WantsCompact is true; 0 means 4 MiB
	NoSync    bool  // for simulated hosts only: a crash of the machine may lose everything

	// KeepVersion leaves the format version of an older file as it is until RaiseVersion is called, so that the older
	// program can still use it. Until then the caller must not write records that the older program does not know.
	KeepVersion bool

	// Sync is nil in production, which means fdatasync. Tests of slow and failing disks replace it.
	Sync func(*os.File) error
}

// Journal is an open journal. It is safe for concurrent use.
type Journal struct {
	dir  string
	o    Options
	lock *folderLock
	id   atomic.Pointer[[16]byte] // written with mu held, read without, as synced

	// unable is nil unless the journal cannot record. It is written with mu held.
	unable atomic.Pointer[error]

	version uint32 // of the file

	mu         sync.Mutex
	syncEnded  *sync.Cond // a sync has ended
	file       *os.File
	end        int64         // the size of the file
	written    uint64        // the lsn of the last record
	synced     atomic.Uint64 // an lsn; written with mu held, read without, so that heartbeats do not wait for the disk
	syncing    bool          // a sync is running
	err        error         // not nil after a failure or Close
	onDisk     [16]byte      // the id in the file; another one than id after Detach
	compactAt  int64         // the file size from which WantsCompact is true
	hasReserve bool          // the reserve exists
	retryAt    time.Time     // when to try to make the reserve again
	ahead      int64         // up to here the file has blocks, behind its end too
	noAhead    bool          // the file system cannot allocate blocks behind the end of a file

	fdatasync func(*os.File) error
}

// Open opens the journal in a folder and returns its records. It makes the folder and the file if they do not exist.
// The folder must belong to the caller's user, and other users must not be able to write to it. Only one process can
// open it.
func Open(dir string, o Options) (*Journal, []Record, error) {
	o.fill()

	// Lock the folder.
	if err := makeDir(dir); err != nil {
		return nil, nil, err
	}
	lock, err := lockDir(dir, lockWait)
	if err != nil {
		return nil, nil, err
	}

	// Read the file.
	j := &Journal{dir: dir, o: o, lock: lock, version: FormatVersion, compactAt: o.CompactAt, fdatasync: o.Sync}
	j.syncEnded = sync.NewCond(&j.mu)
	records, err := j.load()
	if err != nil {
		if j.file != nil {
			_ = j.file.Close()
		}
		_ = lock.close()
		return nil, nil, err
	}

	// Reserve disk space.
	if o.Reserve > 0 {
		if err := j.makeReserve(); err != nil { // the agent works without a reserve
			o.Log.Warn("cannot make the reserve of the journal", "dir", dir, "err", err)
		}
		j.makeHeadroom()
	}
	return j, records, nil
}

// fill sets the defaults.
func (o *Options) fill() {
	if o.Fatal == nil {
		o.Fatal = func(error) {}
	}
	if o.Unable == nil {
		o.Unable = func() {}
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

// Close syncs what was written and releases the folder. A journal that cannot record has said so before: that is no
// error here.
func (j *Journal) Close() error {
	// Make everything durable.
	err := j.Sync(j.Written())
	if errors.Is(err, ErrUnable) {
		err = nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.syncing {
		j.syncEnded.Wait()
	}

	// Reject later calls.
	if errors.Is(j.err, ErrClosed) {
		return nil
	}
	j.err = ErrClosed
	j.syncEnded.Broadcast()

	// Close the files. That also releases the lock.
	if e := j.file.Close(); err == nil {
		err = e
	}
	if e := j.lock.close(); err == nil {
		err = e
	}
	return err
}

// ID identifies the journal. It changes if something synced was lost, with every new file, and by Detach. It never
// waits.
func (j *Journal) ID() [16]byte { return *j.id.Load() }

func (j *Journal) setID(id [16]byte) { j.id.Store(&id) }

// Written is the lsn of the newest record, synced or not.
func (j *Journal) Written() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.written
}

// Synced is the lsn up to which everything is durable. It never waits.
func (j *Journal) Synced() uint64 { return j.synced.Load() }

// Append writes entries and waits until they are durable. It returns the lsn of the last one.
func (j *Journal) Append(vital bool, entries ...Entry) (uint64, error) {
	lsn, err := j.Write(vital, entries...)
	if err != nil {
		return 0, err
	}
	return lsn, j.Sync(lsn)
}

// Write adds entries to the file, one after the other, without waiting for the disk. It returns the lsn of the last
// one. Either all entries are written or none. A vital entry may use the headroom and the reserve. Other entries are
// rejected with ErrNoSpace while there is no reserve or not all of the headroom.
func (j *Journal) Write(vital bool, entries ...Entry) (uint64, error) {
	if vital {
		return j.writeRanked(rankVital, entries)
	}
	return j.writeRanked(rankOrdinary, entries)
}

// WriteEnding is Write for entries that begin the end of something: they need no reserve and may use the first half of
// the headroom. The other half is for the vital entries that follow them.
func (j *Journal) WriteEnding(entries ...Entry) (uint64, error) {
	return j.writeRanked(rankEnding, entries)
}

func (j *Journal) writeRanked(r rank, entries []Entry) (uint64, error) {
	// Check the sizes.
	size := 0
	for _, e := range entries {
		if len(e.Body) > MaxBody {
			return 0, fmt.Errorf("%w: %d bytes", ErrTooLarge, len(e.Body))
		}
		size += frameHead + len(e.Body)
	}

	// Reject what may not be written now.
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.usable(); err != nil {
		return 0, err
	}
	if r == rankOrdinary && !j.ensureReserve() {
		return 0, fmt.Errorf("%w: the reserve is used up", ErrNoSpace)
	}
	if err := j.ensureRoom(r, int64(size)); err != nil {
		return 0, err
	}

	// Encode the records.
	buf := make([]byte, 0, size)
	lsn := j.written
	for _, e := range entries {
		lsn++
		buf = appendFrame(buf, lsn, e)
	}

	// Write them. A vital record may use the reserve.
	err := j.writeAtEnd(buf)
	if r == rankVital && errors.Is(err, ErrNoSpace) && j.dropReserve() {
		err = j.writeAtEnd(buf)
	}
	if err != nil {
		return 0, err
	}

	j.end += int64(len(buf))
	j.written = lsn
	return lsn, nil
}

// writeAtEnd writes at the end of the file. If there is no room it leaves the file as it was. The caller holds j.mu.
func (j *Journal) writeAtEnd(buf []byte) error {
	_, err := j.file.WriteAt(buf, j.end)
	if err == nil {
		return nil
	}
	if isReadOnly(err) { // a part of it may be in the file: no record follows it there, because Recover makes a new one
		return j.setUnable(err)
	}
	if !isNoSpace(err) {
		return j.fail(fmt.Errorf("cannot write the journal in %s: %w", j.dir, err))
	}
	if e := j.file.Truncate(j.end); e != nil {
		return j.fail(fmt.Errorf("cannot remove a partly written record in %s: %w", j.dir, e))
	}
	j.ahead = j.end // what was allocated behind it may be free now
	return fmt.Errorf("%w: %w", ErrNoSpace, err)
}

// Sync waits until everything up to lsn is durable. Concurrent callers share one fdatasync: one of them calls it for
// everything that was written before.
func (j *Journal) Sync(lsn uint64) error {
	j.mu.Lock()
	defer j.mu.Unlock()

	for j.synced.Load() < lsn && j.usable() == nil {
		if j.syncing {
			j.syncEnded.Wait()
			continue
		}
		j.syncOnce()
	}

	if j.synced.Load() >= lsn {
		return nil
	}
	return j.usable()
}

// syncOnce calls fdatasync once. The caller holds j.mu; syncOnce releases it during the call.
func (j *Journal) syncOnce() {
	target, file := j.written, j.file
	if j.o.NoSync {
		j.synced.Store(target)
		return
	}

	// Sync without the lock, so that others can write meanwhile.
	j.syncing = true
	j.mu.Unlock()
	err := j.fdatasync(file)
	j.mu.Lock()
	j.syncing = false
	defer j.syncEnded.Broadcast()
	if isReadOnly(err) { // this file is never synced again
		_ = j.setUnable(err)
		return
	}
	if err != nil {
		_ = j.fail(fmt.Errorf("cannot sync the journal in %s: %w", j.dir, err))
		return
	}

	// What was synced is durable only if a restart finds the file.
	if err := j.inPlace(); err != nil {
		_ = j.setUnable(err)
		return
	}

	// Write the mark.
	j.synced.Store(target)
	_, err = file.WriteAt(encodeMark(j.onDisk, target), markAt)
	switch {
	case isReadOnly(err):
		_ = j.setUnable(err)
	case err != nil:
		_ = j.fail(fmt.Errorf("cannot write the mark of the journal in %s: %w", j.dir, err))
	}
}

// fail makes every later call return err. The caller holds j.mu.
func (j *Journal) fail(err error) error {
	if j.err == nil {
		j.err = err
		j.syncEnded.Broadcast()
		j.o.Fatal(err)
	}
	return j.err
}

func (j *Journal) path(name string) string { return filepath.Join(j.dir, name) }

func newID() (id [16]byte) {
	_, _ = rand.Read(id[:]) // never fails: it ends the program instead
	return id
}
