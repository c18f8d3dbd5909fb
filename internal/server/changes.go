package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/gozzard/gozzard/internal/record"
)

// changesEvery is between two looks at the versions of recorded facts. News of other servers make the server look at once.
const changesEvery = 5 * time.Second

// changes notices what other servers changed in the record, and reads it again.
type changes struct {
	s    *Server
	read map[record.Kind]func(context.Context) error
	wake chan struct{}

	mu   sync.Mutex
	seen map[record.Kind]int64
}

func newChanges(s *Server) *changes {
	return &changes{s: s, read: map[record.Kind]func(context.Context) error{}, wake: make(chan struct{}, 1),
		seen: map[record.Kind]int64{}}
}

// openChanges notes the versions of what the parts of the server have read.
func (s *Server) openChanges(ctx context.Context) error {
	if s.changes == nil {
		return nil
	}
	seen, err := s.store.Versions(ctx)
	if err != nil {
		return err
	}
	c := s.changes
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.Copy(c.seen, seen)
	c.read[record.KindAccounts] = s.accounts.Reload
	if s.trust.registry != nil {
		c.read[record.KindEnrol] = func(ctx context.Context) error {
			return errors.Join(s.trust.registry.Reload(ctx), s.restore.Reload(ctx))
		}
		c.read[record.KindRelays] = s.relays.desk.Reload
	}
	c.read[record.KindGroups] = s.plane.ReloadGroups
	c.read[record.KindTopology] = s.plane.ReloadBusinesses
	c.read[record.KindHosts] = s.plane.ReloadHosts
	if s.keySync != nil {
		c.read[record.KindSigning], c.read[record.KindAuthority] = s.keySync.changed, s.keySync.changed
	}
	return s.keySync.open(ctx)
}

// changed is called after this server changed recorded facts. If nobody else changed them meanwhile, it has them already.
func (c *changes) changed(versions map[record.Kind]int64) {
	c.mu.Lock()
	for kind, n := range versions {
		if c.seen[kind] == n-1 {
			c.seen[kind] = n
		}
	}
	c.mu.Unlock()

	kinds := make([]string, 0, len(versions))
	for kind := range versions {
		kinds = append(kinds, string(kind))
	}
	if s := c.s; s.plane != nil && s.plane.Plane != nil { // else this server is about to start, and others know nothing of it
		s.plane.TellChanged(kinds)
	}
}

// hear is called when another server says that it changed facts of some kinds.
func (c *changes) hear([]string) {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Run looks until ctx ends.
func (c *changes) Run(ctx context.Context) error {
	tick := time.NewTicker(changesEvery)
	defer tick.Stop()
	for {
		if err := c.look(ctx); err != nil && ctx.Err() == nil {
			c.s.options.Log.Error("cannot read what other servers changed; the server tries again soon", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-c.wake:
		case <-tick.C:
		}
	}
}

// look reads again what was changed since the last look.
func (c *changes) look(ctx context.Context) error {
	now, err := c.s.store.Versions(ctx)
	if err != nil {
		return err
	}
	return c.readNewer(ctx, now)
}

// readNewer reads what has a newer version than this server has seen. What cannot be read is read the next time, and keeps
// nothing else from being read.
func (c *changes) readNewer(ctx context.Context, now map[record.Kind]int64) error {
	var failed []error
	for _, kind := range slices.Sorted(maps.Keys(now)) {
		c.mu.Lock()
		old, read := c.seen[kind], c.read[kind]
		c.mu.Unlock()
		if read == nil || now[kind] <= old {
			continue
		}
		if err := read(ctx); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", kind, err))
			continue
		}
		c.mu.Lock()
		c.seen[kind] = max(c.seen[kind], now[kind])
		c.mu.Unlock()
	}
	return errors.Join(failed...)
}
