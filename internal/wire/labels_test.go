package wire_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/wire"
)

// TestLabelsApart decodes statuses with label fields that are not adjacent, between others with similar labels. No
// status gets labels of another one.
func TestLabelsApart(t *testing.T) {
	label := func(b []byte, k, v string) []byte {
		e := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), k)
		e = protowire.AppendString(protowire.AppendTag(e, 2, protowire.BytesType), v)
		return protowire.AppendBytes(protowire.AppendTag(b, 3, protowire.BytesType), e)
	}

	name := func(b []byte, s string) []byte {
		return protowire.AppendString(protowire.AppendTag(b, 2, protowire.BytesType), s)
	}

	msg := wire.AppendReport(nil, &gozzard.Report{Kind: gozzard.ReportStatus, Session: 1})
	for _, body := range [][]byte{
		label(name(nil, "one"), "a", "1"),
		label(name(label(nil, "a", "1"), "two"), "b", "2"),
		label(label(name(label(nil, "a", "1"), "three"), "b", "3"), "c", "3"),
		name(label(nil, "a", "1"), "four"),
		name(nil, "five"),
		name(label(label(nil, "a", "1"), "b", "2"), "six"),
	} {
		msg = protowire.AppendBytes(protowire.AppendTag(msg, 8, protowire.BytesType), body)
	}

	r, err := wire.DecodeReport(msg)
	if err != nil {
		t.Fatal(err)
	}

	got := map[string]map[string]string{}
	for i := range r.Statuses {
		got[r.Statuses[i].Name] = r.Statuses[i].Labels
	}

	want := map[string]map[string]string{
		"one": {"a": "1"}, "two": {"a": "1", "b": "2"}, "three": {"a": "1", "b": "3", "c": "3"}, "four": {"a": "1"},
		"five": nil,
		"six":  {"a": "1", "b": "2"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
