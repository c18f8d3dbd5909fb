package history

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/gozzard/gozzard"
)

// The form of a file. The numbers are on disk: another form needs another magic.
const (
	fineStep   = gozzard.HistoryStep
	coarseStep = 300 // seconds

	blockSteps = 6
	ringBlocks = 1440 // 8640 steps: a day of fine ones, thirty days of coarse ones

	recordBytes = 12
	blockBytes  = 4 + blockSteps*recordBytes + 4
	headerBytes = 80
	ringBytes   = ringBlocks * blockBytes

	// FileBytes is the largest size of a file.
	FileBytes = headerBytes + 2*ringBytes
)

// The largest values that a record can hold. The value above each of them stands for one that was not measured.
const (
	max16 = 1<<16 - 2
	max24 = 1<<24 - 2
	max32 = 1<<32 - 2
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ring is one of the two rings of a file.
type ring struct {
	step  int64 // seconds
	start int64 // offset in the file
}

var (
	fine   = ring{step: fineStep, start: headerBytes}
	coarse = ring{step: coarseStep, start: headerBytes + ringBytes}
)

// offset is the place of a block in the file.
func (r ring) offset(number int64) int64 { return r.start + number%ringBlocks*blockBytes }

// block has six steps. Step i begins at (number*6 + i) * ring.step in Unix seconds.
type block struct {
	number int64
	points [blockSteps]gozzard.HistoryPoint
}

func newBlock(number int64) block {
	b := block{number: number}
	for i := range b.points {
		b.points[i] = gozzard.EmptyPoint()
	}
	return b
}

// encode appends the form of the block on disk.
func (b *block) encode(to []byte) []byte {
	start := len(to)
	to = binary.LittleEndian.AppendUint32(to, uint32(b.number))
	for i := range b.points {
		to = encodePoint(to, &b.points[i])
	}
	return binary.LittleEndian.AppendUint32(to, crc32.Checksum(to[start:], castagnoli))
}

// decodeBlock reads the block with this number. It returns false if these bytes are not that block.
func decodeBlock(from []byte, number int64) (block, bool) {
	if len(from) < blockBytes {
		return block{}, false
	}
	if int64(binary.LittleEndian.Uint32(from)) != number {
		return block{}, false
	}
	return decodeAnyBlock(from[:blockBytes])
}

// decodeAnyBlock reads a block with any number. It returns false if it is damaged.
func decodeAnyBlock(from []byte) (block, bool) {
	body := from[:blockBytes-4]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(from[blockBytes-4:]) {
		return block{}, false
	}

	b := block{number: int64(binary.LittleEndian.Uint32(body))}
	for i := range b.points {
		b.points[i] = decodePoint(body[4+i*recordBytes:])
	}
	return b, true
}

// A record has the CPU in 24 bits, the memory in KiB in 32, the descriptors in 24 and the restarts in 16.

func encodePoint(to []byte, p *gozzard.HistoryPoint) []byte {
	cpu, fd := store(p.CPU, max24), store(p.FD, max24)
	mem := p.Mem
	if mem > 0 {
		mem >>= 10
	}
	to = append(to, byte(cpu), byte(cpu>>8), byte(cpu>>16))
	to = binary.LittleEndian.AppendUint32(to, store(mem, max32))
	to = append(to, byte(fd), byte(fd>>8), byte(fd>>16))
	return binary.LittleEndian.AppendUint16(to, uint16(store(p.Restarts, max16)))
}

func decodePoint(b []byte) gozzard.HistoryPoint {
	cpu := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16
	fd := uint32(b[7]) | uint32(b[8])<<8 | uint32(b[9])<<16
	p := gozzard.HistoryPoint{
		CPU: load(cpu, max24), Mem: load(binary.LittleEndian.Uint32(b[3:]), max32), FD: load(fd, max24),
		Restarts: load(uint32(binary.LittleEndian.Uint16(b[10:])), max16),
	}
	if p.Mem > 0 {
		p.Mem <<= 10
	}
	return p
}

func store(v, most int64) uint32 {
	if v < 0 {
		return uint32(most + 1)
	}
	return uint32(min(v, most))
}

func load(v uint32, most int64) int64 {
	if int64(v) > most {
		return gozzard.NotMeasured
	}
	return int64(v)
}

// merge takes the points that only an earlier form of the same block has, such as those before a restart of the agent.
func (b *block) merge(earlier block) {
	for i := range b.points {
		if b.points[i].IsEmpty() {
			b.points[i] = earlier.points[i]
		}
	}
}

// total sums up points: the average of CPU and memory, the most descriptors, and all restarts.
type total struct {
	cpu, mem   int64
	cpus, mems int64 // how many values cpu and mem have
	fd         int64
	restarts   int64
	counted    bool // some point has restarts
}

func newTotal() total { return total{fd: gozzard.NotMeasured} }

func (t *total) add(p gozzard.HistoryPoint) {
	if p.CPU >= 0 {
		t.cpu, t.cpus = t.cpu+p.CPU, t.cpus+1
	}
	if p.Mem >= 0 {
		t.mem, t.mems = t.mem+p.Mem, t.mems+1
	}
	t.fd = max(t.fd, p.FD)
	if p.Restarts >= 0 {
		t.restarts, t.counted = t.restarts+p.Restarts, true
	}
}

func (t *total) point() gozzard.HistoryPoint {
	p := gozzard.EmptyPoint()
	if t.cpus > 0 {
		p.CPU = (t.cpu + t.cpus/2) / t.cpus
	}
	if t.mems > 0 {
		p.Mem = t.mem / t.mems
	}
	p.FD = t.fd
	if t.counted {
		p.Restarts = t.restarts
	}
	return p
}
