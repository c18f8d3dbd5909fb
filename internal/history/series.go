package history

import (
	"errors"
	"os"
	"slices"
	"time"

	"github.com/gozzard/gozzard"
)

// Sample is one measurement of a process.
type Sample struct {
	gozzard.Key
	Process  Process // zero: it does not run, or was not measured
	Cores    float32 // of the processor
	MemKB    int64
	FD       int32  // 0 if the agent may not count them: a process without any does not exist in practice
	Restarts uint32 // as in gozzard.Status: a count that may begin again
}

// Process tells two processes of one definition apart.
type Process struct {
	PID   int
	Start uint64
}

// point is the measurement in the form of a file. restarts is their number since the last one.
func (m *Sample) point(restarts int64) gozzard.HistoryPoint {
	p := gozzard.EmptyPoint()
	p.Restarts = restarts
	if m.Process == (Process{}) {
		return p
	}

	p.CPU = int64(gozzard.Finite(max(m.Cores, 0))*1000 + 0.5)
	p.Mem = max(m.MemKB, 0) << 10
	if m.FD > 0 {
		p.FD = int64(m.FD)
	}
	return p
}

// series is what is in memory of one process.
type series struct {
	id      fileID
	current block   // the block of the last measurement
	changed bool    // current has something that is not in the file
	waiting []block // complete blocks that are not in the file

	at       time.Time // of the last measurement; zero before the first one
	slot     int64     // the fine step of it
	process  Process
	sum      total  // of the measurements in that step
	restarts uint32 // the last count
}

func newSeries(id fileID) *series { return &series{id: id} }

// add adds a measurement.
func (x *series) add(now time.Time, reach time.Duration, m *Sample) {
	// Count the restarts since the last measurement. A count that is smaller began again.
	restarts := int64(0)
	switch {
	case x.at.IsZero():
	case m.Restarts >= x.restarts:
		restarts = int64(m.Restarts - x.restarts)
	default:
		restarts = int64(m.Restarts)
	}
	x.restarts = m.Restarts
	point := m.point(restarts)

	// Measurements come at about the pace of the steps: one that is a little late leaves a step out. It is about the time
	// since the last one, so it counts for that step, too.
	slot := now.Unix() / fineStep
	most := int64(reach/time.Second)/fineStep + 1
	if gap := slot - x.slot; !x.at.IsZero() && gap > 1 && gap <= most && now.Sub(x.at) <= reach && x.process == m.Process {
		for missed := x.slot + 1; missed < slot; missed++ {
			between := point
			between.Restarts = 0
			x.put(missed, between)
		}
	}

	// The figures of an earlier process do not mix with those of the present one. Its restarts stay.
	if slot != x.slot || x.at.IsZero() {
		x.sum = newTotal()
	} else if m.Process != (Process{}) && x.process != m.Process {
		x.sum = total{fd: gozzard.NotMeasured, restarts: x.sum.restarts, counted: x.sum.counted}
	}
	x.sum.add(point)
	x.put(slot, x.sum.point())
	x.at, x.slot, x.process = now, slot, m.Process
}

// put sets one fine step.
func (x *series) put(slot int64, p gozzard.HistoryPoint) {
	if number := slot / blockSteps; number != x.current.number {
		if x.changed {
			x.waiting = append(x.waiting, x.current)
			x.waiting = x.waiting[max(0, len(x.waiting)-maxWaiting):]
		}
		x.current = newBlock(number)
	}
	x.current.points[slot%blockSteps] = p
	x.changed = true
}

// batch is what must be written of one process.
type batch struct {
	id     fileID
	blocks []block
	coarse []int64 // coarse steps to compute
}

// take returns what must be written. With all it includes what is not complete.
func (x *series) take(all bool) (batch, bool) {
	// Take the blocks.
	b := batch{id: x.id, blocks: x.waiting}
	x.waiting = nil
	if all && x.changed {
		b.blocks = append(b.blocks, x.current)
		x.changed = false
	}

	// Find their coarse steps. One that is not complete yet is computed again with its last block.
	for i := range b.blocks {
		if step := coarseOf(b.blocks[i].number); !slices.Contains(b.coarse, step) {
			b.coarse = append(b.coarse, step)
		}
	}
	return b, len(b.blocks) > 0
}

// coarseOf is the coarse step of a fine block.
func coarseOf(number int64) int64 { return number * fineStep * blockSteps / coarseStep }

// write writes the blocks, and then the coarse steps, which are computed from them.
func (b *batch) write(dir *os.Root) (bytes int64, err error) {
	f, err := openFile(dir, b.id)
	if err != nil {
		return 0, err
	}
	defer func() { bytes, err = f.written, errors.Join(err, f.Close()) }()

	for blocks := b.blocks; len(blocks) > 0; {
		n := sideBySide(blocks)
		if err := f.writeBlocks(fine, blocks[:n]); err != nil {
			return 0, err
		}
		blocks = blocks[n:]
	}
	for _, step := range b.coarse {
		if err := f.writeCoarse(step); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// sideBySide counts the first blocks that are side by side in the file, as many as can be written at once.
func sideBySide(blocks []block) int {
	n := 1
	for n < len(blocks) && n < bufferBlocks && blocks[n].number == blocks[0].number+int64(n) &&
		blocks[n].number%ringBlocks != 0 {
		n++
	}
	return n
}
