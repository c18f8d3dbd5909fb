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
	return h, a.table.columns()
}

// columnWidths are the bytes of a value in each column of a snapshot.
func columnWidths() [11]int { return [...]int{4, 4, 4, 4, 4, 4, 4, 2, 2, 1, 1} }

// columns writes the rows as columns, each padded to a multiple of 8 bytes. One pass over the rows fills all of them.
func (t *table) columns() []byte {
	var at [11]int
	size := 0
	for i, width := range columnWidths() {
		at[i] = size
		size += (t.count*width + 7) / 8 * 8
	}

	out := make([]byte, size)
	for i := range t.cells {
		c := &t.cells[i]
		if c.seq == 0 {
			continue
		}
		for column, v := range [...]uint32{uint32(i), c.host, c.name, c.place, c.mem, uint32(c.pid), c.started} {
			binary.LittleEndian.PutUint32(out[at[column]:], v)
			at[column] += 4
		}
		for column, v := range [...]uint16{c.restarts, c.cpu} {
			binary.LittleEndian.PutUint16(out[at[7+column]:], v)
			at[7+column] += 2
		}
		out[at[9]], out[at[10]] = c.state, c.flags
		at[9]++
		at[10]++
	}
	return out
}

// stateWords are the words for states, by the number of the condition.
func stateWords() []string {
	words := []string{""}
	for _, c := range gozzard.Conditions() {
		words = append(words, c.String())
	}
	return words
}
