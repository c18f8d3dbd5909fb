package live

import (
	"crypto/rand"
	"encoding/hex"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/fleet"
)

// audience is all viewers with equal rights. They share one table, its dictionaries, the encoded batches and the
// snapshot.
type audience struct {
	key   string
	hub   *Hub
	ring  ring
	built chan struct{} // closed when the table has all rows

	// Guarded by the mutex of the hub.
	viewers int
	idle    time.Time // since when there are no viewers

	mu      sync.Mutex // guards what follows; taken before the mutex of the ring
	sight   sight
	table   table
	words   dictionaries
	batch   batch
	seq     uint64
	ready   bool     // the table has all rows: batches are sent
	pending []uint32 // rows that changed while the table was built

	shot *shot // the newest snapshot; guarded by shooting
	// shooting is held while a snapshot is made, so that viewers that come together share one. Taken before mu.
	shooting sync.Mutex
}

// The bounds of what an audience keeps for viewers that come back. A gap that is larger than a snapshot is of no use.
const (
	ringLeast  = 256 << 10
	ringMost   = 16 << 20
	ringPerRow = 24
)

func newAudience(h *Hub, key string, rights *gozzard.Rights) *audience {
	a := &audience{key: key, hub: h, sight: newSight(rights), words: newDictionaries(), built: make(chan struct{})}
	a.batch.begin(&a.words)
	a.ring.restart(newEpoch(), 0)
	return a
}

func newEpoch() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// build reads the whole fleet, part by part. What changes meanwhile is read again at its end.
func (a *audience) build() {
	defer close(a.built)
	for _, h := range a.hub.allHosts() {
		a.mu.Lock()
		a.applyHost(h)
		a.mu.Unlock()
	}

	if a.sight.all {
		a.table.cells = make([]cell, 0, a.hub.o.Fleet.Len())
	}
	var rows []fleet.LiveRow
	var on []*fleet.LiveHost
	for next, more := uint32(0), true; more; {
		rows, next, more = a.hub.o.Fleet.ScanRows(next, scanPart, rows[:0])
		on = a.hub.hostsOf(rows, on[:0])
		a.mu.Lock()
		a.applyRows(rows, on)
		a.batch.begin(&a.words) // nobody has a snapshot yet
		a.mu.Unlock()
	}

	// Read again what changed meanwhile. From here on the hub applies changes itself.
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.pending) > 0 {
		part := a.pending[:min(len(a.pending), scanPart)]
		a.pending = a.pending[len(part):]
		rows = a.hub.o.Fleet.ReadRows(part, rows[:0])
		on = a.hub.hostsOf(rows, on[:0])
		a.applyRows(rows, on)
	}
	a.settleHosts()
	a.batch.begin(&a.words)
	a.ready, a.pending = true, nil
}

// pass applies changes of the fleet and sends them as one batch.
func (a *audience) pass(hosts []*fleet.LiveHost, ids []uint32, rows []fleet.LiveRow, on []*fleet.LiveHost, moved bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if moved {
		a.sight.forgetHosts()
	}
	for _, h := range hosts {
		a.applyHost(h)
	}
	if !a.ready {
		a.pending = append(a.pending, ids...)
		return
	}

	a.applyRows(rows, on)
	a.settleHosts()
	if a.batch.empty(&a.words) {
		return
	}
	a.send()
	if a.words.worn() {
		a.rebuild()
	}
}

// send encodes the batch for all viewers. mu is held.
func (a *audience) send() {
	a.seq++
	frame, err := a.batch.encode(&a.words, a.seq)
	a.batch.begin(&a.words)
	if err != nil { // no text of the fleet can cause it; viewers must not go on with a gap
		a.hub.log.Error("cannot send changes to viewers, they read all again", "err", err)
		a.ring.restart(newEpoch(), a.seq)
		return
	}

	a.ring.push(a.seq, frame, min(max(ringLeast, a.table.count*ringPerRow), ringMost))
	a.hub.encoded.Add(uint64(len(frame)))
}

// rebuild begins an epoch with new dictionaries and ids, from what the table has. mu is held.
func (a *audience) rebuild() {
	old, words := a.table.cells, a.words
	a.table, a.words = table{}, newDictionaries()
	for i := range words.hostAt {
		if at, ok := words.lookHost(uint32(i)); ok && words.hosts.Online[at] != client.LiveGone {
			a.words.host(a.hub.host(uint32(i), 0))
		}
	}

	for i := range old {
		c := old[i]
		if c.seq == 0 {
			continue
		}
		id := a.table.add(c.row)
		c.host = a.words.host(a.hub.host(c.source, 0))
		a.words.hostUse[c.host].rows++
		c.name = a.words.name(gozzard.Key{Namespace: words.names.Space[c.name], Name: words.names.Name[c.name]})
		if p := words.places[c.place]; c.place != 0 {
			c.place = a.words.place(placeAt(p))
		}
		a.table.cells[id] = c
	}

	a.batch.begin(&a.words)
	a.ring.restart(newEpoch(), a.seq)
}

// applyHost takes a new version of a host. Its rows are in the changes, too. mu is held.
func (a *audience) applyHost(h *fleet.LiveHost) {
	if old, ok := a.words.lookHost(h.Number); ok {
		a.batch.touched = append(a.batch.touched, old)
	}
	if a.sight.host(h).shown {
		a.batch.touched = append(a.batch.touched, a.words.host(h))
	}
}

// settleHosts sends the states of hosts that may have changed, when all rows of the pass are applied. mu is held.
func (a *audience) settleHosts() {
	for _, at := range a.batch.touched {
		use := a.words.hostUse[at]
		h := a.hub.host(use.number, 0)
		state := onlineState(h)
		current, ok := a.words.lookHost(use.number)
		if use.rows == 0 && (!ok || current != at || !a.sight.host(h).shown) {
			state = client.LiveGone
		}
		if a.words.setOnline(at, state) && int(at) < a.batch.hosts {
			a.batch.online = append(a.batch.online, [2]int{int(at), state})
		}
	}
	a.batch.touched = a.batch.touched[:0]
}

// applyRows takes rows as they are now, with their hosts. mu is held.
func (a *audience) applyRows(rows []fleet.LiveRow, on []*fleet.LiveHost) {
	for i := range rows {
		a.applyRow(&rows[i], on[i])
	}
}

func (a *audience) applyRow(r *fleet.LiveRow, host *fleet.LiveHost) {
	// Remove what is not there or not visible any more.
	visible := r.Seq != 0 && a.sight.row(r, host)
	id, known := a.table.id(r.ID)
	if known && (!visible || a.table.cells[id].seq != r.Seq) {
		a.removeRow(id)
		known = false
	}
	if !visible {
		return
	}

	// Add a new row.
	if !known {
		id = a.table.add(r.ID)
		c := &a.table.cells[id]
		c.seq, c.row, c.source, c.host, c.name = r.Seq, r.ID, r.Host, a.words.host(host), a.words.name(r.Key)
		a.words.hostUse[c.host].rows++
		c.placedAt = a.hub.placedAt() // before the look: an older generation is looked up again
		c.place = a.words.place(a.hub.placeOf(host, r.Key))
		c.fill(r)
		a.batch.addFull(id, c)
		return
	}

	// Send what is different.
	c := &a.table.cells[id]
	old := *c
	c.fill(r)
	c.source = r.Host
	a.moveRow(c, host, r.Key)
	if old.host != c.host || old.place != c.place || old.pid != c.pid || old.started != c.started ||
		old.restarts != c.restarts {
		a.batch.addFull(id, c)
		return
	}
	if old.state != c.state || old.flags != c.flags || old.cpu != c.cpu {
		a.batch.addShort(id, c)
	}
	if old.mem != c.mem {
		a.batch.addMem(id, c)
	}
}

// moveRow sets the host and the place of a row that may have changed. mu is held.
func (a *audience) moveRow(c *cell, host *fleet.LiveHost, key gozzard.Key) {
	at, generation := a.words.host(host), a.hub.placedAt()
	if c.host == at && c.placedAt == generation {
		return
	}
	if c.host != at {
		a.words.hostUse[c.host].rows--
		a.words.hostUse[at].rows++
		a.batch.touched = append(a.batch.touched, c.host)
		c.host = at
	}

	place := a.words.place(a.hub.placeOf(host, key))
	a.words.dropPlace(c.place)
	c.place, c.placedAt = place, generation
}

// removeRow removes a row that is gone or not visible any more. mu is held.
func (a *audience) removeRow(id uint32) {
	c := &a.table.cells[id]
	a.words.dropName(c.name)
	a.words.dropPlace(c.place)
	if a.words.hostUse[c.host].rows--; a.words.hostUse[c.host].rows == 0 {
		a.batch.touched = append(a.batch.touched, c.host)
	}
	a.table.remove(id)
	a.batch.addGone(id)
}
