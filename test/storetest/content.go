package storetest

import (
	"bytes"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/record"
)

// contentsKept: a content is kept until its time is over, also if it is needed again without its body.
func contentsKept(t *testing.T, s control.Store) {
	ctx := t.Context()
	body := bytes.Repeat([]byte{0, 0xff, 'a'}, 200_000)
	digest, now := gozzard.FileDigest(body), time.UnixMilli(1_700_000_000_000)
	keep := func(b []byte, until time.Time) error {
		return s.KeepContents(ctx, []record.Content{{Digest: digest, Body: b}}, until)
	}
	has := func(what string, want bool) {
		t.Helper()
		got, err := s.Content(ctx, digest)
		if want && (err != nil || !bytes.Equal(got, body)) || !want && gozzard.KindOf(err) != gozzard.ErrNotFound {
			t.Errorf("%s: %d bytes, %v", what, len(got), err)
		}
	}

	has("before", false)
	if err := keep(nil, now); gozzard.KindOf(err) != gozzard.ErrConflict {
		t.Errorf("one that is not there: %v", err)
	}
	for _, step := range []struct {
		body  []byte
		until time.Time
	}{{body, now}, {body, now.Add(time.Hour)}, {nil, now.Add(2 * time.Hour)}, {nil, now}} {
		if err := keep(step.body, step.until); err != nil {
			t.Fatal(err)
		}
	}
	has("kept", true)

	if err := s.PruneContents(ctx, now.Add(119*time.Minute)); err != nil {
		t.Fatal(err)
	}
	has("before its time", true)
	if err := s.PruneContents(ctx, now.Add(121*time.Minute)); err != nil {
		t.Fatal(err)
	}
	has("after its time", false)
}
