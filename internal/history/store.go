package history

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozzard/gozzard"
)

const (
	// DefaultBytes bounds the files of one agent together: the histories of 2329 processes.
	DefaultBytes = 512 << 20

	folder     = "history"
	maxWaiting = 30 // blocks of one process that wait for the disk; the oldest is dropped
)

// Options of a Store. Dir is required.
type Options struct {
	Dir   string        // the state folder of the agent
	Bytes int64         // the largest size of all files together; the default is DefaultBytes
	Every time.Duration // between two measurements; the default is 10 s
	Now   func() time.Time
	Log   *slog.Logger
}

// Store has the histories of one agent.
type Store struct {
	dir   *os.Root
	most  int           // processes
	reach time.Duration // two measurements that are not further apart are about everything between them
	now   func() time.Time
	log   *slog.Logger
	wake  chan struct{} // capacity 1: something must be written

	written atomic.Int64 // bytes of blocks, for measurements of the cost

	disk   sync.Mutex // held while files are used; locked before mu
	failed bool       // the last write failed, and this was logged
	spool  *spool

	mu     sync.Mutex
	series map[gozzard.Key]*series
	names  map[string]bool // the files of the folder, and those that will be made
	gone   map[string]bool // the files that must be removed
	full   bool            // a process has no history because of the limit, and this was logged
}

// Open opens the folder of the histories and makes it if there is none.
func Open(o Options) (*Store, error) {
	if o.Bytes <= 0 {
		o.Bytes = DefaultBytes
	}
	if o.Every <= 0 {
		o.Every = fineStep * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}

	// Open the folder.
	path := filepath.Join(o.Dir, folder)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the folder of histories: %w", err)
	}
	dir, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("cannot open the folder of histories: %w", err)
	}

	s := &Store{
		dir: dir, most: int(o.Bytes / FileBytes), reach: o.Every + o.Every/2, now: o.Now, log: o.Log,
		wake:   make(chan struct{}, 1),
		series: map[gozzard.Key]*series{}, names: map[string]bool{}, gone: map[string]bool{},
	}

	// List its files: they count for the limit.
	list, err := os.ReadDir(path)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot list the folder of histories: %w", err), dir.Close())
	}
	for _, e := range list {
		if isFileName(e.Name()) {
			s.names[e.Name()] = true
		}
	}

	// Move what an earlier run has left.
	if s.spool, err = openSpool(dir); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	if err := s.takeOver(); err != nil {
		s.log.Warn("cannot read the newest histories of the last run: they will have holes", "err", err)
	}
	return s, nil
}

// takeOver moves what a crash has left in the spool. Each of its processes has a history, as far as the limit allows.
func (s *Store) takeOver() error {
	list, err := s.spool.batches(nil)
	if err != nil {
		return errors.Join(err, s.spool.clear())
	}
	for i := range list {
		if len(s.names) < s.most {
			s.names[list[i].id.name()] = true
		}
	}
	return s.moveSpool()
}

// Keep removes the histories of all processes but the given ones. The agent calls it once, before Run.
func (s *Store) Keep(keys []gozzard.Key) {
	kept := make(map[string]bool, len(keys))
	for _, k := range keys {
		kept[idOf(k).name()] = true
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.names {
		if !kept[name] {
			s.gone[name] = true
		}
	}
	s.signal()
}

// Run writes what Add collects until ctx ends, and then the rest. The files are not synced: what a crash of the machine
// loses was not worth a wait.
func (s *Store) Run(ctx context.Context) {
	for {
		select {
		case <-s.wake:
			s.flush(false)
		case <-ctx.Done():
			s.flush(true)
			return
		}
	}
}

// Close closes the folder. Nothing is written afterwards.
func (s *Store) Close() error { return errors.Join(s.spool.close(), s.dir.Close()) }

// Add adds the measurements of one pass, and returns the processes whose series begins with them. It does not wait for the
// disk. A pass takes a while: a process may have been unregistered since it was measured, and the caller removes it again.
func (s *Store) Add(list []Sample) (begun []gozzard.Key) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()

	waiting := false
	for i := range list {
		known := len(s.series)
		if x := s.of(list[i].Key); x != nil {
			if len(s.series) > known {
				begun = append(begun, list[i].Key)
			}
			x.add(now, s.reach, &list[i])
			waiting = waiting || len(x.waiting) > 0
		}
	}
	if waiting {
		s.signal()
	}
	return begun
}

// Remove removes the history of a process. It does not wait for the disk.
func (s *Store) Remove(key gozzard.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.series, key)
	if name := idOf(key).name(); s.names[name] {
		s.gone[name] = true
		s.signal()
	}
}

func (s *Store) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// of returns the series of a process. It returns nil while the earlier history of that name is being removed, and above the
// limit. The caller holds mu.
func (s *Store) of(key gozzard.Key) *series {
	x := s.series[key]
	if x != nil {
		return x
	}

	id := idOf(key)
	name := id.name()
	if s.gone[name] {
		return nil
	}
	if !s.names[name] && len(s.names) >= s.most {
		if !s.full {
			s.log.Warn("the limit of processes with a history is reached: further ones have none", "limit", s.most)
		}
		s.full = true
		return nil
	}

	x = newSeries(id)
	s.series[key], s.names[name] = x, true
	return x
}

// flush removes the files of processes that are gone and writes the blocks that wait. With all it also writes the blocks
// that are not complete.
func (s *Store) flush(all bool) {
	s.disk.Lock()
	defer s.disk.Unlock()

	// Collect the work.
	s.mu.Lock()
	gone := make([]string, 0, len(s.gone))
	for name := range s.gone {
		gone = append(gone, name)
	}
	var work []batch
	for _, x := range s.series {
		if b, any := x.take(all); any {
			work = append(work, b)
		}
	}
	s.mu.Unlock()

	// Move the newest blocks to the files of their processes, if a coarse step is complete. A process that is gone may come
	// again, and must not get the blocks of the earlier one.
	var failed error
	if all || len(gone) > 0 || !s.spool.fits(work) {
		failed = s.moveSpool()
	}

	// Remove.
	for _, name := range gone {
		if err := s.dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = err // it is tried again when the next file is removed, and at the next start
			continue
		}
		s.mu.Lock()
		delete(s.names, name)
		delete(s.gone, name)
		s.full = false
		s.mu.Unlock()
	}

	// Write.
	if err := s.write(work, all); err != nil {
		failed = err
	}
	if failed != nil && !s.failed {
		s.log.Warn("cannot write the history of processes: it will have holes", "err", failed)
	}
	s.failed = failed != nil
}

// write writes blocks to the spool. In the end, and if the spool does not accept them, it writes them to the files of their
// processes.
func (s *Store) write(work []batch, all bool) (failed error) {
	if len(work) == 0 {
		return nil
	}
	if !all && s.spool.fits(work) {
		n, err := s.spool.add(work)
		if s.written.Add(n); err == nil {
			return nil
		}
	}
	for i := range work {
		n, err := work[i].write(s.dir)
		if err != nil {
			failed = err
		}
		s.written.Add(n)
	}
	return failed
}
