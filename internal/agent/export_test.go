package agent

import "github.com/gozzard/gozzard/internal/journal"

// Decode reads one record body and, if it is good, applies it to an empty state and gives back what a compaction would write.
func Decode(t journal.Type, body []byte) ([]journal.Entry, error) {
	e, err := decodeEntry(t, body)
	if err != nil {
		return nil, err
	}
	s := newState()
	s.apply(t, e, 1)
	return s.snapshot(), nil
}
