package sqlstore

import (
	"sync"

	"github.com/gozzard/gozzard"
)

// itemCache keeps recent items of tasks in memory. They never change once they are recorded, and most callers read a
// task's verdicts soon after it was accepted. It has two generations: when the younger one is full, it becomes the
// older one, and what was in the older one is dropped.
type itemCache struct {
	mu         sync.Mutex
	young, old map[itemRef]gozzard.Attempt
	youngBytes int
}

const (
	itemCacheBytes = 4 << 20 // how much one generation holds
	itemOverhead   = 512     // bytes that an item takes in addition to its definition
	maxCachedItems = 64      // tasks with more items are not cached: reading their attempts costs about as much anyway
)

func (s *itemCache) get(at itemRef) (gozzard.Attempt, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	it, ok := s.young[at]
	if !ok {
		if it, ok = s.old[at]; ok {
			s.add(at, it)
		}
	}
	return it, ok
}

func (s *itemCache) put(at itemRef, it gozzard.Attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(at, it)
}

func (s *itemCache) add(at itemRef, it gozzard.Attempt) {
	if s.young == nil || s.youngBytes > itemCacheBytes {
		s.old, s.young, s.youngBytes = s.young, map[itemRef]gozzard.Attempt{}, 0
	}
	s.young[at] = it
	s.youngBytes += itemOverhead + len(it.Spec)
}
