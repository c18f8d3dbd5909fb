package live

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// shotAge is how old a snapshot may be that is given to another viewer: the stream brings what changed since.
const shotAge = 5 * time.Second

// shot is a compressed snapshot.
type shot struct {
	epoch string
	seq   uint64
	at    time.Time
	data  []byte
}

// zippers are reused: each has large tables.
var zippers = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is valid
	return w
}}

// Snapshot returns all rows that the viewer may see, compressed by gzip. It must not be changed.
func (v *View) Snapshot() ([]byte, error) {
	a := v.a
	a.shooting.Lock()
	defer a.shooting.Unlock()
	if s := a.shot; s != nil && time.Since(s.at) < shotAge && a.ring.has(s.epoch, s.seq) {
		return s.data, nil
	}

	// Copy the table, then compress it without the lock.
	header, columns := a.columns()
	text, err := json.Marshal(header)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the header of a snapshot: %w", err)
	}
	for (8+len(text))%8 != 0 {
		text = append(text, ' ')
	}

	var out bytes.Buffer
	out.Grow(len(columns)/4 + len(text)/2)
	zip := zippers.Get().(*gzip.Writer)
	defer zippers.Put(zip)
	zip.Reset(&out)
	start := binary.LittleEndian.AppendUint32([]byte(client.LiveMagic), uint32(len(text)))
	for _, part := range [][]byte{start, text, columns} {
		if _, err := zip.Write(part); err != nil {
			return nil, fmt.Errorf("cannot compress a snapshot: %w", err)
		}
	}
	if err := zip.Close(); err != nil {
		return nil, fmt.Errorf("cannot compress a snapshot: %w", err)
	}

	a.shot = &shot{epoch: header.Epoch, seq: header.Seq, at: time.Now(), data: out.Bytes()}
	return a.shot.data, nil
}

// columns copies what a snapshot has, at one sequence number.
func (a *audience) columns() (client.LiveHeader, []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ring.mu.Lock()
	epoch := a.ring.epoch
	a.ring.mu.Unlock()

	n := a.table.count
	h := client.LiveHeader{Epoch: epoch, Seq: a.seq, Rows: n, Time: time.Now().Unix(), States: stateWords()}
	a.words.shown(&h)
	cells := a.table.cells
	out := make([]byte, 0, n*36+80)

	wide := func(value func(id uint32, c *cell) uint32) {
		for i := range cells {
			if cells[i].seq != 0 {
				out = binary.LittleEndian.AppendUint32(out, value(uint32(i), &cells[i]))
			}
		}
		out = pad(out)
	}
	wide(func(id uint32, _ *cell) uint32 { return id })
	wide(func(_ uint32, c *cell) uint32 { return c.host })
	wide(func(_ uint32, c *cell) uint32 { return c.name })
	wide(func(_ uint32, c *cell) uint32 { return c.place })
	wide(func(_ uint32, c *cell) uint32 { return c.mem })
	wide(func(_ uint32, c *cell) uint32 { return uint32(c.pid) })
	wide(func(_ uint32, c *cell) uint32 { return c.started })

	half := func(value func(c *cell) uint16) {
		for i := range cells {
			if cells[i].seq != 0 {
				out = binary.LittleEndian.AppendUint16(out, value(&cells[i]))
			}
		}
		out = pad(out)
	}
	half(func(c *cell) uint16 { return c.restarts })
	half(func(c *cell) uint16 { return c.cpu })

	narrow := func(value func(c *cell) uint8) {
		for i := range cells {
			if cells[i].seq != 0 {
				out = append(out, value(&cells[i]))
			}
		}
		out = pad(out)
	}
	narrow(func(c *cell) uint8 { return c.state })
	narrow(func(c *cell) uint8 { return c.flags })
	return h, out
}

// pad fills a column up to a multiple of 8 bytes.
func pad(b []byte) []byte {
	for len(b)%8 != 0 {
		b = append(b, 0)
	}
	return b
}

// stateWords are the words for states, by the number of the condition.
func stateWords() []string {
	words := []string{""}
	for _, c := range gozzard.Conditions() {
		words = append(words, c.String())
	}
	return words
}
