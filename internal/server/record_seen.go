package server

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/gozzard/gozzard/internal/backup"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// noteAndEnd ends the program because of an error of the record. What the server has seen is noted before, so that the next
// start knows it.
func (s *Server) noteAndEnd(err error) {
	if e := s.seen.write(); e != nil {
		s.options.Log.Error("cannot note how far the record has come", "err", e)
	}
	s.options.Fatal(err)
}

// seenMark notes in the data folder how far the record in a database has come. The next start sees by it that the database
// was set back: restored from a copy, or taken over by a standby that had not seen everything.
type seenMark struct {
	store *sqlstore.Store
	data  string
	log   *slog.Logger

	mu      sync.Mutex
	written int64
}

// seenEvery is how often the mark is written, if it has changed. A record that was set back by less, in a crash of this
// server as well, is not noticed.
const seenEvery = time.Second

// Run notes marks until ctx ends.
func (m *seenMark) Run(ctx context.Context) error {
	tick := time.NewTicker(seenEvery)
	defer tick.Stop()
	failed := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := m.write()
		if err != nil && !failed {
			m.log.Error("cannot note how far the record has come: a database that is set back from now on may not be noticed",
				"err", err)
		}
		failed = err != nil
	}
}

// write notes the mark of the last transaction, unless that was done.
func (m *seenMark) write() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	mark := m.store.LastMark()
	if mark == 0 || mark == m.written {
		return nil
	}
	place, err := backup.ReadPlace(m.data)
	if err != nil {
		return err
	}
	if place.Installation == "" {
		return nil // the start was refused before the record was bound
	}
	place.Mark, place.Writer = mark, m.store.Writer()
	if err := place.Write(m.data); err != nil {
		return err
	}
	m.written = mark
	return nil
}
