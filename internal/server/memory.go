package server

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	memoryTick = 2 * time.Second

	// garbageTime is how long a server at rest collects garbage before the collector runs. A collection looks at
	// everything that is in memory, so this bounds its share of the processor.
	garbageTime = 30 * time.Second

	// The bounds of the room for garbage, in percent of what is in use. The upper one is Go's default.
	leastGarbage = 20
	mostGarbage  = 100

	smallHeap = 64 << 20 // below this nothing is to be saved
)

// keepMemorySmall adapts the garbage collector to the work, until ctx ends. By default Go lets garbage grow to as much as
// is in use, in a busy program and in an idle one. A server with thousands of agents is mostly idle, and then half of its
// memory would be garbage. If the variable GOGC is set, it decides.
func keepMemorySmall(ctx context.Context) error {
	if os.Getenv("GOGC") != "" {
		<-ctx.Done()
		return nil
	}

	defer debug.SetGCPercent(mostGarbage)
	tick := time.NewTicker(memoryTick)
	defer tick.Stop()

	before, percent, perSecond := readMemory(), mostGarbage, 0.0
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}

		// Work counts at once, and rest only after a while.
		now := readMemory()
		perSecond = max(float64(now.allocated-before.allocated)/memoryTick.Seconds(), 0.8*perSecond)
		before = now

		// A change stops the program for a moment, so small ones are left out.
		if p := garbagePercent(now.used, perSecond); p >= percent+10 || p <= percent-10 {
			debug.SetGCPercent(p)
			percent = p
		}
	}
}

// garbagePercent is how much garbage may grow, in percent of what is in use: what the work makes in garbageTime.
func garbagePercent(used uint64, perSecond float64) int {
	if used < smallHeap {
		return mostGarbage
	}
	return int(min(max(100*perSecond*garbageTime.Seconds()/float64(used), leastGarbage), mostGarbage))
}

// memory is what the runtime counts.
type memory struct {
	allocated uint64 // bytes since the start
	used      uint64 // bytes that the last collection found in use, with stacks
}

func readMemory() memory {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}}
	metrics.Read(s)
	return memory{allocated: s[0].Value.Uint64(), used: s[1].Value.Uint64() + s[2].Value.Uint64()}
}
