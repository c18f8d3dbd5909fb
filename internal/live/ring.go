package live

import "sync"

// ring is the newest batches of an audience, encoded. Viewers read it at their own speed and have no buffer: one that is
// too slow finds that its next batch is not there any more.
type ring struct {
	mu      sync.Mutex
	epoch   string
	frames  [][]byte
	last    uint64 // sequence number of the newest frame
	bytes   int
	limit   int
	changed chan struct{} // closed when something changes; nil when nobody waits
}

// push adds a frame and drops the oldest ones beyond the limit.
func (r *ring) push(seq uint64, frame []byte, limit int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.frames, r.last, r.limit = append(r.frames, frame), seq, limit
	r.bytes += len(frame)

	n := 0
	for r.bytes > r.limit && n < len(r.frames) {
		r.bytes -= len(r.frames[n])
		r.frames[n] = nil
		n++
	}
	r.frames = r.frames[n:]
	r.wake()
}

// restart begins an epoch without frames.
func (r *ring) restart(epoch string, seq uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.epoch, r.frames, r.bytes, r.last = epoch, nil, 0, seq
	r.wake()
}

// wake lets the viewers look that wait. mu is held.
func (r *ring) wake() {
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// has reports whether a viewer with this number can go on.
func (r *ring) has(epoch string, seq uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hasLocked(epoch, seq)
}

func (r *ring) hasLocked(epoch string, seq uint64) bool {
	return epoch == r.epoch && seq <= r.last && r.last-seq <= uint64(len(r.frames))
}

// after returns the frames behind a number, at most about so many bytes, and the number of the last of them. ok is false
// if the viewer needs a new snapshot. changed is closed when there is more, or is nil when there is more at once.
func (r *ring) after(epoch string, seq uint64, most int) (frames [][]byte, next uint64, changed <-chan struct{}, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.hasLocked(epoch, seq) {
		return nil, seq, nil, false
	}

	rest := r.frames[len(r.frames)-int(r.last-seq):]
	for len(rest) > 0 && most > 0 {
		frames = append(frames, rest[0])
		most -= len(rest[0])
		rest = rest[1:]
		seq++
	}
	if len(rest) > 0 {
		return frames, seq, nil, true
	}

	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return frames, seq, r.changed, true
}
