package nats

import (
	"reflect"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/test/fuzztest"
)

func sampleNews() *gozzard.PeerNews {
	key := gozzard.Key{Namespace: "shop", Name: "网关"}
	return &gozzard.PeerNews{From: "one", Run: 7, Seq: 9, Snapshot: true, Last: true,
		Reports: []gozzard.PeerReport{{Agent: "a", Cloud: 3, Report: &gozzard.Report{Version: gozzard.ProtocolVersion,
			Kind: gozzard.ReportStatus, Session: 4, Statuses: []gozzard.Status{{Key: key, PID: 12, State: gozzard.StateRunning}}}}},
		Silent:  []gozzard.PeerSilent{{Agent: "b", Session: 2, Since: time.UnixMilli(1_700_000_000_000).UTC()}},
		Seeds:   []gozzard.PeerSeed{{Agent: "c", Status: gozzard.Status{Key: key, PID: -1}}},
		Removed: []gozzard.ProcID{{Agent: "d", Key: key}},
		Tasks:   []gozzard.TaskSeq{5}, Wake: []gozzard.TaskSeq{6}, Changed: []string{"accounts"},
		Key: &gozzard.PeerKey{What: gozzard.PeerKeyGive, Key: "k", Public: []byte{1}, Sealed: []byte{2}, Fault: "none"},
		Commands: []gozzard.PeerCommand{{Agent: "e", Cloud: 2, Command: &gozzard.Command{Version: gozzard.ProtocolVersion,
			Kind: gozzard.CommandGreet, Session: 8}}}}
}

func TestNews(t *testing.T) {
	want := sampleNews()
	b, err := EncodeNews(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeNews(b)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Reports) != 1 || got.Reports[0].Report.Statuses[0].PID != 12 || got.Seeds[0].Status.PID != -1 ||
		len(got.Commands) != 1 || got.Commands[0].Agent != "e" || got.Commands[0].Command.Session != 8 {
		t.Errorf("got %+v", got)
	}
	got.Reports, want.Reports, got.Seeds, want.Seeds, got.Commands, want.Commands = nil, nil, nil, nil, nil, nil
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}

	// What is cut off is rejected.
	for i := range b {
		if _, err := DecodeNews(b[:i]); err == nil {
			t.Fatalf("the first %d of %d bytes are accepted", i, len(b))
		}
	}
}

func FuzzNews(f *testing.F) {
	b, err := EncodeNews(sampleNews())
	if err != nil {
		f.Fatal(err)
	}
	z := fuzztest.New(f)
	z.Add(b)
	z.Add([]byte{0})
	z.Fuzz(func(t *testing.T, b []byte) {
		if n, err := DecodeNews(b); err == nil {
			if _, err := EncodeNews(n); err != nil {
				t.Error(err)
			}
		}
	})
}
