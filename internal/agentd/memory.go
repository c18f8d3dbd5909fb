package agentd

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	memoryEvery = 5 * time.Second
	memoryRest  = time.Minute // between two returns of memory
	memorySpare = 4 << 20     // not worth to be returned
	memoryCalm  = 2 << 20     // what a calm agent allocates at most between two looks, without what follows from its size
	memoryTurn  = 8           // the part of its memory that a calm agent allocates at most: it measures every process
)

// memoryUse is what the runtime says about memory.
type memoryUse struct {
	live      uint64 // what the last collection of garbage has left
	unused    uint64 // not used by objects, and not returned to the system
	allocated uint64 // since the start of the program
}

// returnMemory gives memory back to the system after much has happened: the runtime keeps for minutes what the start of a
// thousand processes needed for seconds.
func returnMemory(ctx context.Context) error {
	tick := time.NewTicker(memoryEvery)
	defer tick.Stop()
	before, last := readMemory(), time.Now().Add(2*memoryEvery-memoryRest) // soon after the start, which needs much
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now := readMemory()
		if time.Since(last) >= memoryRest && now.worthReturning(before) {
			debug.FreeOSMemory()
			last = time.Now()
		}
		before = now
	}
}

// worthReturning reports whether a calm program has much memory that it does not use.
func (m memoryUse) worthReturning(before memoryUse) bool {
	return m.allocated-before.allocated <= memoryCalm+m.live/memoryTurn && m.unused > m.live/2+memorySpare
}

func readMemory() memoryUse {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"}, {Name: "/gc/heap/allocs:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	garbage := max(s[4].Value.Uint64(), s[0].Value.Uint64()) - s[0].Value.Uint64()
	return memoryUse{live: s[0].Value.Uint64(), unused: s[1].Value.Uint64() + s[2].Value.Uint64() + garbage,
		allocated: s[3].Value.Uint64()}
}
