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
	garbageTime = 15 * time.Second

	// The bounds of the room for garbage, in percent of what is in use. The upper one is Go's default.
	leastGarbage = 20
	mostGarbage  = 100

	smallHeap = 24 << 20 // below this nothing is to be saved

	// freePause is between two times that free memory is given back at once. The runtime gives it back bit by bit, and
	// after a storm of connections that can take hours.
	freePause = 5 * time.Minute
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
	var freed time.Time
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
		if givesBack(now.used, now.free, percent) && time.Since(freed) > freePause {
			debug.FreeOSMemory()
			freed = time.Now()
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

// givesBack reports whether free memory is given back to the system at once: the server is at rest, and holds much that
// it does not need.
func givesBack(used, free uint64, percent int) bool {
	return percent < mostGarbage*3/4 && free > used/4
}

// memory is what the runtime counts.
type memory struct {
	allocated uint64 // bytes since the start
	used      uint64 // bytes that the last collection found in use, with stacks
	free      uint64 // bytes that are not in use and not given back
}

func readMemory() memory {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}}
	metrics.Read(s)
	return memory{allocated: s[0].Value.Uint64(), used: s[1].Value.Uint64() + s[2].Value.Uint64(), free: s[3].Value.Uint64()}
}
