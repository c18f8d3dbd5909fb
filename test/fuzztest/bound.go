package fuzztest

import (
	"fmt"
	"reflect"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

// The bounds of one input. Time is CPU time of the thread where the system tells it, so that a busy machine fails
// nobody; what waits instead of computing is ended by the clock.
const (
	maxWork  = time.Second
	maxWait  = time.Minute
	maxAlloc = 64 << 20

	raceFactor = 8 // what the race detector makes of time and memory
)

// within runs fn and fails when it takes too long or allocates too much. An input that failed is shown in the form
// in which it can be kept.
func within(t *testing.T, fn reflect.Value, args []reflect.Value) {
	t.Helper()
	work, alloc := bounds()
	returned := false
	defer func() {
		if !returned || t.Failed() {
			t.Logf("the input:\n%s", corpus(args[1:]))
		}
	}()

	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	hung := time.AfterFunc(maxWait, func() {
		panic(fmt.Sprintf("no end after %v with\n%s", maxWait,
			corpus(args[1:])))
	})

	defer hung.Stop()
	before, start := allocated(), threadTime()
	fn.Call(args)

	if took := threadTime() - start; took > work {
		t.Errorf("took %v, at most %v are allowed", took, work)
	}
	if grown := allocated() - before; grown > alloc {
		t.Errorf("allocated %d MiB, at most %d are allowed", grown>>20, alloc>>20)
	}

	returned = true
}

func bounds() (work time.Duration, alloc uint64) {
	if raceBuild {
		return maxWork * raceFactor, maxAlloc * raceFactor
	}
	return maxWork, maxAlloc
}

// allocated is all that this process ever allocated on its heap.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
