package journal

import (
	"errors"
	"io/fs"
)

// WantsCompact reports whether the file has grown so much since the last compaction that a new one is worth its cost.
func (j *Journal) WantsCompact() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.usable() == nil && j.end > j.compactAt
}

// Compact replaces everything written so far by live, which must mean the same. The id stays and the lsns continue.
// When Compact returns, live is durable. The caller must prevent other writes from when it makes live until Compact
// returns. A crash leaves either the old file or the new one. After an error the old file stays in use.
func (j *Journal) Compact(live []Entry) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.syncing {
		j.syncEnded.Wait()
	}
	if err := j.usable(); err != nil {
		return err
	}
	return j.rewrite(live)
}

// rewrite replaces the file. The caller holds j.mu, and no sync is running.
func (j *Journal) rewrite(live []Entry) error {
	// Encode the records.
	h := header{id: j.ID(), base: j.written, mark: j.written + uint64(len(live))}
	var frames []byte
	for i, e := range live {
		if len(e.Body) > MaxBody {
			return ErrTooLarge
		}
		frames = appendFrame(frames, j.written+uint64(i)+1, e)
	}

	// Write the new file. If that fails, the next try waits until the file has grown. The reserve may be used,
	// because the old file frees more.
	j.compactAt = j.end + j.o.CompactAt/4
	err := j.writeNew(h, frames)
	if errors.Is(err, ErrNoSpace) && j.dropReserve() {
		err = j.writeNew(h, frames)
	}
	if err != nil {
		return err
	}

	// Replace the old one. If that fails, it is unknown which of the two files a crash would leave.
	f, err := j.renameNew()
	if err != nil && replacesOpenFiles && (isReadOnly(err) || errors.Is(err, fs.ErrNotExist)) {
		return j.setUnable(err) // the old file is still open; Recover makes another one
	}
	if err != nil {
		return j.fail(err)
	}

	// Continue with it.
	j.onDisk = h.id
	j.setFile(f, int64(headerSize+len(frames)), h.mark)
	j.compactAt = max(j.o.CompactAt, 2*j.end)
	j.retryAt = j.o.Now()
	j.makeHeadroom()
	j.syncEnded.Broadcast()
	return nil
}
