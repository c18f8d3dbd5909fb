package fuzztest

import (
	"fmt"
	"reflect"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

// The bounds of one input. Time is the CPU time of the thread if the system reports it, so that a busy machine fails no
// test. The clock ends an input that waits instead of computing.
const (
	maxWork  = time.Second
	maxWait  = time.Minute
	maxAlloc = 64 << 20

	raceFactor = 8 // how much more time and memory the race detector needs
)

// within runs fn and fails if it takes too long or allocates too much. It shows an input that failed in the form in
// which it can be stored.
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

// allocated is the total number of bytes that this process has allocated on its heap.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
