package live

import (
	"math"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/fleet"
)

// cell is one row of an audience, with what was sent of it.
type cell struct {
	seq      uint64 // of the row of the fleet; 0: the cell is free
	row      uint32 // its number in the fleet
	source   uint32 // number of its host in the fleet
	host     uint32 // in the dictionary, as the next two
	name     uint32
	place    uint32
	mem      uint32
	pid      int32
	started  uint32
	placedAt uint32 // generation of places in which place was looked up
	restarts uint16
	cpu      uint16
	state    uint8
	flags    uint8
}

// fill sets the values of a row that are not references.
func (c *cell) fill(r *fleet.LiveRow) {
	c.mem, c.pid, c.restarts, c.state = r.Mem, r.PID, r.Restarts, uint8(r.Condition)
	c.started = uint32(min(max(r.Started, 0), math.MaxUint32))
	c.cpu = uint16(min(max(r.CPU*10, 0), math.MaxUint16))

	c.flags = 0
	for _, f := range [...]struct {
		on  bool
		bit uint8
	}{{r.Managed, client.LiveManaged}, {r.Stale, client.LiveStale}, {r.Periodic, client.LivePeriodic},
		{r.Unhealthy, client.LiveUnhealthy}, {r.Wanted, client.LiveWanted}} {
		if f.on {
			c.flags |= f.bit
		}
	}
}

// table is the rows of an audience by their ids. The ids are its own: those of the fleet would show how many rows a
// viewer does not see.
type table struct {
	cells []cell
	free  []uint32
	count int
	ids   []*[idPage]uint32 // id by the number in the fleet, plus 1; a page without visible rows is nil
}

const idPage = 1024

// id is the id of a row of the fleet.
func (t *table) id(row uint32) (uint32, bool) {
	if page := int(row / idPage); page < len(t.ids) && t.ids[page] != nil {
		id := t.ids[page][row%idPage]
		return id - 1, id != 0
	}
	return 0, false
}

// add gives a row of the fleet an id.
func (t *table) add(row uint32) uint32 {
	var id uint32
	if n := len(t.free); n > 0 {
		id, t.free = t.free[n-1], t.free[:n-1]
	} else {
		id = uint32(len(t.cells))
		t.cells = append(t.cells, cell{})
	}

	t.count++
	t.setID(row, id+1)
	return id
}

// remove frees the id of a row.
func (t *table) remove(id uint32) {
	t.setID(t.cells[id].row, 0)
	t.cells[id] = cell{}
	t.free = append(t.free, id)
	t.count--
}

func (t *table) setID(row, value uint32) {
	page := int(row / idPage)
	if page >= len(t.ids) {
		t.ids = append(t.ids, make([]*[idPage]uint32, page+1-len(t.ids))...)
	}
	if t.ids[page] == nil {
		t.ids[page] = new([idPage]uint32)
	}
	t.ids[page][row%idPage] = value
}
