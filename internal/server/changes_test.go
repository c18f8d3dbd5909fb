package server

import (
	"context"
	"errors"
	"testing"

	"github.com/gozzard/gozzard/internal/record"
)

// TestChangesAreReadApart: facts of one kind that cannot be read do not keep a server from those of other kinds, and are
// read again.
func TestChangesAreReadApart(t *testing.T) {
	c := newChanges(nil)
	broken, reads := errors.New("broken"), map[record.Kind]int{}
	reader := func(kind record.Kind, err *error) {
		c.read[kind] = func(context.Context) error {
			reads[kind]++
			return *err
		}
	}
	var none error
	reader(record.KindAccounts, &broken)
	reader(record.KindHosts, &none)

	now := map[record.Kind]int64{record.KindAccounts: 3, record.KindHosts: 2}
	if err := c.readNewer(t.Context(), now); !errors.Is(err, broken) || reads[record.KindHosts] != 1 {
		t.Errorf("%v, read %v", err, reads)
	}

	// The next look repeats what failed, and nothing else.
	broken = nil
	if err := c.readNewer(t.Context(), now); err != nil || reads[record.KindAccounts] != 2 || reads[record.KindHosts] != 1 {
		t.Errorf("%v, read %v", err, reads)
	}
}
