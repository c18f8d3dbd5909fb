package journal

import "errors"

// WantsCompact reports whether the file has grown so much since the last compaction that a new one pays.
func (j *Journal) WantsCompact() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err == nil && j.end > j.compact
}

// Compact replaces everything written so far by live, which must say the same. The id stays, the numbers go on,
// live is durable when it returns. The caller keeps others from writing between the making of live and the return.
// A crash leaves either the old file or the new one. On an error the old one stays in use.
func (j *Journal) Compact(live []Entry) error {
	j.mu.Lock()
	defer j.mu.Unlock()

	for j.syncing {
		j.turn.Wait()
	}

	if j.err != nil {
		return j.err
	}

	h := header{id: j.id, base: j.written, mark: j.written + uint64(len(live))}
	var frames []byte
	for i, e := range live {
		if len(e.Body) > MaxBody {
			return ErrTooLarge
		}
		frames = appendFrame(frames, j.written+uint64(i)+1, e)
	}

	j.compact = j.end + j.o.CompactAt/4 // if this fails, not at once again
	err := j.build(h, frames)
	if errors.Is(err, ErrNoSpace) && j.dropReserve() { // lent: the old file gives more back
		err = j.build(h, frames)
	}
	if err != nil {
		return err
	}

	f, err := j.swap()
	if err != nil { // which of the two files a crash would show is not known any more
		return j.fail(err)
	}

	j.use(f, int64(headerSize+len(frames)), h.mark)
	j.compact = max(j.o.CompactAt, 2*j.end)
	j.retryAt = j.o.Now()
	j.turn.Broadcast()
	return nil
}
