package live

import (
	"context"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
)

// View is one viewer of an audience. Close ends it.
type View struct {
	a *audience
}

// readMost is how much a viewer gets at a time.
const readMost = 1 << 20

// The reasons why a viewer needs a new snapshot.
const (
	ReasonGap    = "gap"    // the changes behind its number are not there any more, or the epoch is over
	ReasonSlow   = "slow"   // it reads slower than the fleet changes
	ReasonRights = "rights" // what it may see has changed
)

// Join adds a viewer with these rights. It waits until the rows for its audience are read.
func (h *Hub) Join(rights *gozzard.Rights) (*View, error) {
	key := audienceKey(rights)
	if key == "" {
		return nil, gozzard.Errorf(gozzard.ErrUserForbidden, "this caller has no rights: there is nothing to show")
	}

	a, fresh, err := h.join(key, rights)
	if err != nil {
		return nil, err
	}
	if fresh {
		a.build()
	}
	<-a.built
	return &View{a: a}, nil
}

func (h *Hub) join(key string, rights *gozzard.Rights) (a *audience, fresh bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if a := h.audiences[key]; a != nil {
		a.viewers++
		h.viewers.Add(1)
		return a, false, nil
	}
	if len(h.audiences) >= maxAudiences && !h.endIdle() {
		return nil, false, &gozzard.Error{Kind: gozzard.ErrRateLimited, Retry: time.Minute,
			Message: "too many viewers with different rights: try again later"}
	}

	// Record from now on, before the rows are read.
	if len(h.audiences) == 0 {
		h.movePlaces()
		h.o.Fleet.Follow(true)
		h.setHosts(h.o.Fleet.LiveHosts())
		select {
		case h.wake <- struct{}{}:
		default:
		}
	}

	a = newAudience(h, key, rights)
	a.viewers = 1
	h.viewers.Add(1)
	h.audiences[key] = a
	return a, true, nil
}

// Expect says that a viewer with these rights will come soon: its audience and a snapshot are made meanwhile. It does not
// wait. If another viewer is expected already, the later one waits for its own snapshot.
func (h *Hub) Expect(rights *gozzard.Rights) {
	select {
	case h.expected <- rights:
	default:
	}
}

// prepare makes snapshots for viewers that are expected, until ctx ends.
func (h *Hub) prepare(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case rights := <-h.expected:
			view, err := h.Join(rights)
			if err != nil { // the viewer gets the same answer when it comes
				continue
			}
			if _, err := view.Snapshot(); err != nil {
				h.log.Error("cannot make a snapshot for a viewer that is expected", "err", err)
			}
			view.Close()
		}
	}
}

// endIdle removes the audience that has had no viewer for the longest time, and reports whether there was one. mu is
// held.
func (h *Hub) endIdle() bool {
	var oldest *audience
	for _, a := range h.audiences {
		if a.viewers == 0 && (oldest == nil || a.idle.Before(oldest.idle)) {
			oldest = a
		}
	}
	if oldest == nil {
		return false
	}
	h.end(oldest.key, oldest)
	return true
}

// Close ends the view.
func (v *View) Close() {
	v.a.hub.mu.Lock()
	defer v.a.hub.mu.Unlock()
	if v.a.viewers--; v.a.viewers == 0 {
		v.a.idle = time.Now()
	}
	v.a.hub.viewers.Add(^uint64(0))
}

// Fits reports whether rights show the same as those of the view.
func (v *View) Fits(rights *gozzard.Rights) bool { return audienceKey(rights) == v.a.key }

// After returns encoded events behind a number of an epoch, and the number of the last of them. ok is false if the
// viewer needs a new snapshot. changed is closed when there may be more; nil means that there is more at once.
func (v *View) After(epoch string, seq uint64) (frames [][]byte, next uint64, changed <-chan struct{}, ok bool) {
	return v.a.ring.after(epoch, seq, readMost)
}

// Rows returns rows of the fleet by their ids in an epoch, and the id of each. Ids without a row are left out. ok is
// false if the epoch is over.
func (v *View) Rows(epoch string, ids []uint32) (rows []fleet.Row, found []uint32, ok bool) {
	a := v.a
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.ring.has(epoch, a.seq) {
		return nil, nil, false
	}

	// Find their rows in the fleet.
	var numbers, which []uint32
	for _, id := range ids {
		if int(id) < len(a.table.cells) && a.table.cells[id].seq != 0 {
			numbers, which = append(numbers, a.table.cells[id].row), append(which, id)
		}
	}

	// Read those that are still the same and that are still visible where they are now.
	rows, at := a.hub.o.Fleet.LiveRows(numbers, func(i int, r *fleet.LiveRow) bool {
		c := &a.table.cells[which[i]]
		host := a.sight.hosts
		return c.seq == r.Seq && c.source == r.Host &&
			(a.sight.all || int(r.Host) < len(host) && host[r.Host].info != nil && host[r.Host].info.Version == r.Version)
	})
	for _, i := range at {
		found = append(found, which[i])
	}
	return rows, found, true
}

// Counts are the sizes of a hub.
type Counts struct {
	Viewers, Audiences int
	Encoded, Sent      uint64 // bytes of batches, once for each audience and once for each viewer
}

// Counts returns the sizes of the hub.
func (h *Hub) Counts() Counts {
	h.mu.Lock()
	defer h.mu.Unlock()
	return Counts{Viewers: int(h.viewers.Load()), Audiences: len(h.audiences), Encoded: h.encoded.Load(),
		Sent: h.sent.Load()}
}

// Sent counts bytes that a viewer got.
func (h *Hub) Sent(n int) { h.sent.Add(uint64(n)) }
