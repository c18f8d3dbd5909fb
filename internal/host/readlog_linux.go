package host

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard"
)

// position is the end of the log.
func (p *procLog) position() (int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := p.size(); err != nil {
		return 0, err
	}
	return p.end, nil
}

// read returns up to limit bytes from a position on. Removed parts are skipped: at is where the returned bytes
// begin.
func (p *procLog) read(from int64, limit int) (b []byte, at int64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	// List the files, the current one last.
	fi, err := p.size()
	if err != nil {
		return nil, 0, err
	}
	parts, err := p.rotated()
	if err != nil {
		return nil, 0, err
	}
	parts = append(parts, part{path: p.current(), from: p.base, size: fi.Size()})

	// Read from the position on, until a gap or the limit.
	at = min(max(from, 0), p.end)
	for _, x := range parts {
		if at >= x.from+x.size || limit <= len(b) {
			continue
		}
		if at+int64(len(b)) < x.from { // there is a gap before this file
			if len(b) > 0 {
				break
			}
			at = x.from
		}
		more, err := readPart(x, at+int64(len(b)), limit-len(b))
		b = append(b, more...)
		if err != nil {
			return b, at, err
		}
	}

	return b, at, nil
}

// tail is the end of the output since a position, safe to show.
func (p *procLog) tail(since int64) (string, error) {
	end, err := p.position()
	if err != nil || end <= since { // nothing was printed
		return "", err
	}
	from := max(since, end-outputBytes)
	b, at, err := p.read(from, outputBytes)
	return cleanOutput(b, at > since), err
}

func readPart(x part, from int64, limit int) ([]byte, error) {
	f, err := os.OpenFile(x.path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, min(int64(limit), x.from+x.size-from))
	n, err := f.ReadAt(b, from-x.from)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return b[:n], err
}

// The limits of one request to a log.
const (
	chunkBytes    = 64 << 10
	chunkMaxBytes = 256 << 10
	chunkLines    = 100
)

// ReadLog reads the output of the process and its commands unchanged. The process wrote it, so it may contain
// anything.
func (h *Host) ReadLog(q gozzard.LogQuery) gozzard.LogChunk {
	// Find the log.
	c := gozzard.LogChunk{ID: q.ID}
	p, err := h.logs.find(keyFolder(q.Key))
	if errors.Is(err, os.ErrNotExist) {
		c.Error = fmt.Sprintf("%s has no log on this host", q.Key)
		return c
	}

	// Limit the size of the answer.
	limit := q.Max
	if limit <= 0 {
		limit = chunkBytes
	}
	limit = min(limit, chunkMaxBytes)

	// Read from a position, or the last lines.
	if err == nil {
		if q.Offset >= 0 {
			c.Data, c.Offset, err = p.read(q.Offset, limit)
		} else {
			c.Data, c.Offset, err = p.lastLines(q.Lines, limit)
		}
	}
	if err != nil {
		h.log.Warn("cannot read log", "ns", q.Key.Namespace, "proc", q.Key.Name, "err", err)
		c.Data, c.Error = nil, "the log cannot be read"
	}

	// Say where the next request continues.
	c.Next = c.Offset + int64(len(c.Data))
	return c
}

// lastLines returns the last lines, or their end when they are longer than the limit. A line without its end
// counts.
func (p *procLog) lastLines(lines, limit int) (b []byte, at int64, err error) {
	if lines <= 0 {
		lines = chunkLines
	}
	end, err := p.position()
	if err != nil {
		return nil, 0, err
	}

	// Read the end of the log.
	from := max(0, end-int64(limit))
	for at = from; ; { // across gaps that rotation left
		var more []byte
		var start int64
		if more, start, err = p.read(at, limit); err != nil || len(more) == 0 {
			break
		}
		if start != at || len(b) == 0 {
			b, from = nil, start
		}
		b = append(b, more...)
		at = start + int64(len(more))
		if at >= end {
			break
		}
	}

	if err != nil {
		return nil, 0, err
	}

	// Cut it to the limit, because the log may have grown, and to the lines.
	if over := len(b) - limit; over > 0 {
		b, from = b[over:], from+int64(over)
	}
	return cutLines(b, from, lines)
}

// cutLines returns the last lines of b, and the position where they begin. b begins at from.
func cutLines(b []byte, from int64, lines int) ([]byte, int64, error) {
	i := len(b)
	if i > 0 && b[i-1] == '\n' {
		i--
	}

	for ; i > 0; i-- {
		if b[i-1] != '\n' {
			continue
		}
		if lines--; lines == 0 {
			return b[i:], from + int64(i), nil
		}
	}

	return b, from, nil
}
