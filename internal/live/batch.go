package live

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/gozzard/gozzard/client"
)

// batch collects what changes in one pass.
type batch struct {
	short, mem, full, gone []byte
	online                 [][2]int
	hosts, names, places   int      // how long the dictionaries were at its start
	touched                []uint32 // indexes of hosts whose state may have changed
}

// begin starts a batch; it reuses the memory of the last one. Hosts that are not settled stay so.
func (b *batch) begin(d *dictionaries) {
	*b = batch{short: b.short[:0], mem: b.mem[:0], full: b.full[:0], gone: b.gone[:0], online: b.online[:0],
		touched: b.touched, hosts: len(d.hostUse), names: len(d.nameUse), places: len(d.placeUse)}
}

func (b *batch) empty(d *dictionaries) bool {
	return len(b.short)+len(b.mem)+len(b.full)+len(b.gone)+len(b.online) == 0 &&
		b.hosts == len(d.hostUse) && b.names == len(d.nameUse) && b.places == len(d.placeUse)
}

func (b *batch) addShort(id uint32, c *cell) {
	b.short = binary.LittleEndian.AppendUint32(b.short, id)
	b.short = append(b.short, c.state, c.flags)
	b.short = binary.LittleEndian.AppendUint16(b.short, c.cpu)
}

func (b *batch) addMem(id uint32, c *cell) {
	b.mem = binary.LittleEndian.AppendUint32(b.mem, id)
	b.mem = binary.LittleEndian.AppendUint32(b.mem, c.mem)
}

func (b *batch) addFull(id uint32, c *cell) {
	out := b.full
	for _, v := range [...]uint32{id, c.host, c.name, c.place, c.mem, uint32(c.pid), c.started} {
		out = binary.LittleEndian.AppendUint32(out, v)
	}
	out = binary.LittleEndian.AppendUint16(out, c.restarts)
	out = binary.LittleEndian.AppendUint16(out, c.cpu)
	b.full = append(out, c.state, c.flags, 0, 0)
}

func (b *batch) addGone(id uint32) { b.gone = binary.LittleEndian.AppendUint32(b.gone, id) }

// The sizes of the parts of a batch.
const (
	shortSize = 8
	memSize   = 8
	fullSize  = 36
	goneSize  = 4
)

// rows is the binary part.
func (b *batch) rows() []byte {
	size := len(b.short) + len(b.mem) + len(b.full) + len(b.gone)
	if size == 0 {
		return nil
	}

	out := make([]byte, 0, 16+size)
	for _, n := range [...]int{len(b.short) / shortSize, len(b.mem) / memSize, len(b.full) / fullSize,
		len(b.gone) / goneSize} {
		out = binary.LittleEndian.AppendUint32(out, uint32(n))
	}
	out = append(append(out, b.short...), b.mem...)
	return append(append(out, b.full...), b.gone...)
}

// encode makes the event that all viewers of an audience get.
func (b *batch) encode(d *dictionaries, seq uint64) ([]byte, error) {
	out := client.LiveBatch{Seq: seq, Places: d.places[b.places:], Online: b.online, Rows: b.rows()}
	if l := d.hosts; b.hosts < len(d.hostUse) {
		out.Hosts = &client.LiveHosts{Agent: l.Agent[b.hosts:], IP: l.IP[b.hosts:], Cloud: l.Cloud[b.hosts:],
			Online: l.Online[b.hosts:]}
	}
	if l := d.names; b.names < len(d.nameUse) {
		out.Names = &client.LiveNames{Space: l.Space[b.names:], Name: l.Name[b.names:]}
	}

	data, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("cannot encode a batch of changes: %w", err)
	}
	frame := fmt.Appendf(make([]byte, 0, len(data)+64), "event: changes\nid: %d\ndata: ", seq)
	return append(append(frame, data...), "\n\n"...), nil
}
