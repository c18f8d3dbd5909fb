package client

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
)

// LiveRow is one process of a LiveTable.
type LiveRow struct {
	ID       uint32
	Host     uint32 // index in the dictionaries of the table, as the next two
	Name     uint32
	Place    uint32
	Mem      uint32 // KiB
	PID      int32  // -1: none
	Started  uint32 // Unix seconds; 0: none
	Restarts uint16
	CPU      uint16 // tenths of a percent of one core
	State    uint8  // index in States
	Flags    uint8  // LiveManaged and the others
}

// LiveTable is the processes that a viewer sees, with the changes that were applied.
type LiveTable struct {
	Epoch  string
	Seq    uint64
	States []string
	Hosts  LiveHosts
	Names  LiveNames
	Places []LivePlace
	Rows   map[uint32]LiveRow // by id
}

// errLive says that bytes are not live data.
var errLive = errors.New("the server does not send live data as this program knows it: use the program of its version")

// ParseLiveSnapshot reads the bytes of a snapshot, which are not compressed any more.
func ParseLiveSnapshot(data []byte) (*LiveTable, error) {
	// Read the header.
	if len(data) < 8 || string(data[:4]) != LiveMagic {
		return nil, errLive
	}
	size := int(binary.LittleEndian.Uint32(data[4:]))
	if size > len(data)-8 || size%8 != 0 {
		return nil, errLive
	}
	var h LiveHeader
	if err := json.Unmarshal(data[8:8+size], &h); err != nil {
		return nil, fmt.Errorf("cannot read the header of a snapshot: %w", err)
	}

	// Find the columns.
	rest := data[8+size:]
	var columns [11][]byte
	for i, width := range [...]int{4, 4, 4, 4, 4, 4, 4, 2, 2, 1, 1} {
		if h.Rows < 0 || h.Rows > len(data) || (h.Rows*width+7)/8*8 > len(rest) {
			return nil, errLive
		}
		columns[i] = rest[:h.Rows*width]
		rest = rest[(h.Rows*width+7)/8*8:]
	}

	// Read the rows.
	t := &LiveTable{Epoch: h.Epoch, Seq: h.Seq, States: h.States, Hosts: h.Hosts, Names: h.Names, Places: h.Places,
		Rows: make(map[uint32]LiveRow, h.Rows)}
	u32 := func(column, row int) uint32 { return binary.LittleEndian.Uint32(columns[column][4*row:]) }
	u16 := func(column, row int) uint16 { return binary.LittleEndian.Uint16(columns[column][2*row:]) }
	for i := range h.Rows {
		t.Rows[u32(0, i)] = LiveRow{ID: u32(0, i), Host: u32(1, i), Name: u32(2, i), Place: u32(3, i), Mem: u32(4, i),
			PID: int32(u32(5, i)), Started: u32(6, i), Restarts: u16(7, i), CPU: u16(8, i), State: columns[9][i],
			Flags: columns[10][i]}
	}
	return t, t.check()
}

// check reports an error if a row refers to something that is not there.
func (t *LiveTable) check() error {
	if !t.even() {
		return errLive
	}
	for _, r := range t.Rows {
		if !t.valid(&r) {
			return errLive
		}
	}
	return nil
}

// even reports whether the lists of each dictionary have the same length.
func (t *LiveTable) even() bool {
	n := len(t.Hosts.Agent)
	return n == len(t.Hosts.IP) && n == len(t.Hosts.Cloud) && n == len(t.Hosts.Online) &&
		len(t.Names.Space) == len(t.Names.Name)
}

func (t *LiveTable) valid(r *LiveRow) bool {
	return int64(r.Host) < int64(len(t.Hosts.Agent)) && int64(r.Name) < int64(len(t.Names.Name)) &&
		int64(r.Place) < int64(len(t.Places)) && int(r.State) < len(t.States)
}

// Apply applies a batch of changes. The batch must be the next one.
func (t *LiveTable) Apply(b *LiveBatch) error {
	if b.Seq != t.Seq+1 {
		return fmt.Errorf("batch %d does not follow %d: read a new snapshot", b.Seq, t.Seq)
	}

	// Extend the dictionaries.
	if h := b.Hosts; h != nil {
		t.Hosts.Agent, t.Hosts.IP = append(t.Hosts.Agent, h.Agent...), append(t.Hosts.IP, h.IP...)
		t.Hosts.Cloud, t.Hosts.Online = append(t.Hosts.Cloud, h.Cloud...), append(t.Hosts.Online, h.Online...)
	}
	if n := b.Names; n != nil {
		t.Names.Space, t.Names.Name = append(t.Names.Space, n.Space...), append(t.Names.Name, n.Name...)
	}
	if !t.even() {
		return errLive
	}
	t.Places = append(t.Places, b.Places...)
	for _, o := range b.Online {
		if o[0] < 0 || o[0] >= len(t.Hosts.Online) {
			return errLive
		}
		t.Hosts.Online[o[0]] = o[1]
	}

	// Change the rows.
	if len(b.Rows) > 0 {
		if err := t.change(b.Rows); err != nil {
			return err
		}
	}
	t.Seq = b.Seq
	return nil
}

// change applies the binary part of a batch: first what is gone, then full rows, then short changes and memory.
func (t *LiveTable) change(data []byte) error {
	// Find the parts.
	if len(data) < 16 {
		return errLive
	}
	widths := [4]int{8, 8, 36, 4}
	var parts [4][]byte
	rest := data[16:]
	for i, width := range widths {
		n := uint64(binary.LittleEndian.Uint32(data[4*i:])) * uint64(width)
		if n > uint64(len(rest)) {
			return errLive
		}
		parts[i], rest = rest[:n], rest[n:]
	}
	short, mem, full, gone := parts[0], parts[1], parts[2], parts[3]

	// Apply them in their order.
	u32 := binary.LittleEndian.Uint32
	for ; len(gone) > 0; gone = gone[4:] {
		delete(t.Rows, u32(gone))
	}
	for ; len(full) > 0; full = full[36:] {
		r := LiveRow{ID: u32(full), Host: u32(full[4:]), Name: u32(full[8:]), Place: u32(full[12:]),
			Mem: u32(full[16:]), PID: int32(u32(full[20:])), Started: u32(full[24:]),
			Restarts: binary.LittleEndian.Uint16(full[28:]), CPU: binary.LittleEndian.Uint16(full[30:]),
			State: full[32], Flags: full[33]}
		if !t.valid(&r) {
			return errLive
		}
		t.Rows[r.ID] = r
	}
	for ; len(short) > 0; short = short[8:] {
		r, ok := t.Rows[u32(short)]
		if !ok || int(short[4]) >= len(t.States) {
			return errLive
		}
		r.State, r.Flags, r.CPU = short[4], short[5], binary.LittleEndian.Uint16(short[6:])
		t.Rows[r.ID] = r
	}
	for ; len(mem) > 0; mem = mem[8:] {
		r, ok := t.Rows[u32(mem)]
		if !ok {
			return errLive
		}
		r.Mem = u32(mem[4:])
		t.Rows[r.ID] = r
	}
	return nil
}
