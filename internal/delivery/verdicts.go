package delivery

import (
	"sync"

	"github.com/gozzard/gozzard/internal/turns"
)

// verdicts has the verdicts that wait for a write of the record. Apps take turns: the verdict of a small task is in the next
// write, however many those of another app are.
type verdicts struct {
	places chan struct{} // one for each verdict that waits
	wake   chan struct{} // some wait

	mu      sync.Mutex
	waiting turns.Queue[reported]
}

func newVerdicts() verdicts {
	return verdicts{places: make(chan struct{}, settleQueue), wake: make(chan struct{}, 1)}
}

// add appends a verdict, and waits while there are too many. It reports false when quit is closed.
func (v *verdicts) add(r reported, quit <-chan struct{}) bool {
	select {
	case v.places <- struct{}{}:
	case <-quit:
		return false
	}

	v.mu.Lock()
	defer v.mu.Unlock()
	v.waiting.Add(r.app, r)
	v.signal()
	return true
}

// take moves verdicts to a batch until it has the given length.
func (v *verdicts) take(batch []reported, most int) []reported {
	v.mu.Lock()
	defer v.mu.Unlock()
	for len(batch) < most {
		r, ok := v.waiting.Next()
		if !ok {
			return batch
		}
		<-v.places
		batch = append(batch, r)
	}

	if v.waiting.Len() > 0 {
		v.signal()
	}
	return batch
}

// signal wakes the loop that records.
func (v *verdicts) signal() {
	select {
	case v.wake <- struct{}{}:
	default:
	}
}
