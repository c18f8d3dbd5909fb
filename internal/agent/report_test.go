package agent_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/agent"
	"github.com/gozzard/gozzard/internal/journal"
	"github.com/gozzard/gozzard/test/fuzztest"
)

var update = flag.Bool("update", false, "write the golden files")

func TestFullReportsAreRepeatedUntilAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.noRound = true
		r.start()
		r.connect()
		var ops []gozzard.Op
		for i := range 1000 {
			op := r.op(gozzard.ActionRegister, "ok")
			op.Key.Name = fmt.Sprintf("p%04d", i)
			ops = append(ops, op)
		}

		r.do(ops...)
		pass(time.Minute)
		r.forget()
		pass(2 * time.Minute)
		rounds := map[uint64]map[string]bool{}
		parts := map[uint64]uint32{}
		for _, rep := range r.taken(gozzard.ReportStatus) {
			if rep.Round == 0 {
				continue
			}
			if len(rep.Statuses) > 400 || rep.Parts != 3 {
				t.Errorf("part with %d statuses of %d parts", len(rep.Statuses), rep.Parts)
			}
			if rounds[rep.Round] == nil {
				rounds[rep.Round] = map[string]bool{}
			}
			parts[rep.Round]++
			for _, st := range rep.Statuses {
				rounds[rep.Round][st.Name] = true
			}
		}

		for round, names := range rounds {
			if len(names) != 1000 || parts[round] != 3 {
				t.Errorf("round %d has %d processes in %d parts", round, len(names), parts[round])
			}
		}

		if len(rounds) < 2 {
			t.Errorf("%d rounds in two minutes without an acknowledgement", len(rounds))
		}

		r.set(func() { r.noRound, r.interval = false, 10*time.Minute })
		r.a.Disconnected()
		r.connect()
		pass(time.Minute)
		r.forget()
		pass(5 * time.Minute)

		for _, rep := range r.taken(gozzard.ReportStatus) {
			if rep.Round != 0 {
				t.Error("a full report though the interval is ten minutes")
			}
		}
	})
}

func TestChangesAreTogetherInOneReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := online(t)
		r.forget()
		var ops []gozzard.Op
		for i := range 50 {
			op := r.op(gozzard.ActionStart, "ok")
			op.Key.Name = fmt.Sprintf("p%02d", i)
			ops = append(ops, op)
		}

		r.do(ops...)
		pass(100 * time.Millisecond)
		reports := r.taken(gozzard.ReportStatus)
		running := map[string]bool{}
		for _, rep := range reports {
			for _, st := range rep.Statuses {
				running[st.Name] = st.State == gozzard.StateRunning
			}
		}

		if len(reports) > 4 || len(running) != 50 || !running["p49"] {
			t.Errorf("%d reports have %d processes", len(reports), len(running))
		}
		if n := len(r.taken(gozzard.ReportResults)); n > 10 {
			t.Errorf("50 results left in %d reports", n)
		}

		r.forget()
		gone := r.op(gozzard.ActionUnregister, "")
		gone.Key.Name = "p07"
		r.do(gone)
		pass(100 * time.Millisecond)
		reports = r.taken(gozzard.ReportStatus)
		if len(reports) != 1 || len(reports[0].Removed) != 1 || reports[0].Removed[0].Name != "p07" {
			t.Errorf("after the unregistration: %+v", reports)
		}
	})
}

// HELLO stays small enough to be carried, and still names every open operation.
func TestLongHello(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := online(t)
		r.set(func() { r.noAcks = true })
		var ops []gozzard.Op
		for i := range 3000 {
			op := r.op(gozzard.ActionStart, "fail 1 "+strings.Repeat("long output ", 100))
			op.Key.Name = fmt.Sprintf("p%04d", i)
			ops = append(ops, op)
		}

		r.do(ops...)
		pass(time.Second)
		r.a.Disconnected()
		r.forget()
		r.connect()
		open := r.hello().Hello.Open
		b, err := json.Marshal(open)
		must(t, err)

		if len(open) != 3000 || len(b) > 900<<10 {
			t.Errorf("HELLO lists %d operations in %d bytes of JSON", len(open), len(b))
		}

		pass(3 * time.Second)
		done := map[gozzard.OpID]bool{}
		for _, rep := range r.taken(gozzard.ReportResults) {
			if len(rep.Results) > 500 {
				t.Errorf("%d results in one report", len(rep.Results))
			}
			for _, res := range rep.Results {
				done[res.ID] = res.Phase == gozzard.PhaseDone
			}
		}

		if len(done) != 3000 {
			t.Errorf("%d verdicts followed", len(done))
		}
	})
}

func TestCompactionChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.o.Simulated = true
		r.start()
		r.connect()
		file := filepath.Join(r.dir, "journal")
		largest, last := int64(0), int64(0)
		for i := range 60 { // each 200 KB
			op := r.op(gozzard.ActionRegister, fmt.Sprintf("print %d %s", i, strings.Repeat("x", 150<<10)))
			op.Key.Name = fmt.Sprintf("p%d", i%5)
			r.do(op)
			pass(10 * time.Millisecond)
			st, err := os.Stat(file)
			must(t, err)
			largest, last = max(largest, st.Size()), st.Size()
		}

		if last >= largest || largest > 6<<20 {
			t.Errorf("journal has %d bytes, had at most %d", last, largest)
		}

		r.set(func() { r.noAcks = true })
		open := r.op(gozzard.ActionUnregister, "")
		open.Key.Name = "p4"
		r.do(open)
		pass(10 * time.Millisecond)
		id := r.hello().Journal.ID
		r.stop()
		r.start()
		r.connect()
		h := r.hello()
		if r.a.Processes() != 4 || h.Session != 2 || len(h.Hello.Open) != 1 || h.Hello.Open[0].ID != open.ID ||
			h.Journal.ID != id {
			t.Errorf("after a restart: %d processes, session %d, open %v", r.a.Processes(), h.Session,
				phases(h.Hello.Open))
		}

		old := gozzard.Op{ID: gozzard.NewOpID(), Gen: 50, Action: gozzard.ActionStart,
			Key: gozzard.Key{Namespace: "shop", Name: "p4"}, Spec: spec("ok")}
		r.do(old)
		pass(10 * time.Millisecond)

		if got := r.last(old.ID); got.Phase != gozzard.PhaseNever {
			t.Errorf("an old intent is answered %+v", got)
		}
	})
}

// golden is one record of each type.
func golden() []journal.Record {
	var out []journal.Record
	put := func(t journal.Type, body string) {
		out = append(out, journal.Record{LSN: uint64(len(out) + 1), Type: t, Body: []byte(body)})
	}

	op := `"op":{"id":"000102030405060708090a0b0c0d0e0f","task":7,"index":2,"gen":7,"action":"start","key":{"namespace":"shop","name":"进程"}}`
	put(1, `{"session":4,"base":17}`)
	put(2, `{"session":4}`)
	put(3, `{`+op+`}`)
	put(4, `{`+op+`,"outcome":{"code":"ok","hosted":true},"process":{"key":{"namespace":"shop","name":"进程"},"labels":{"a":"b"},"spec":"e30=","hosted":true,"wanted":1,"registered_at":5,"last_start":6}}`)
	put(4, `{`+op+`,"outcome":{"code":"ok"},"removed":true}`)
	put(5, `{`+op+`,"outcome":{"code":"expired","message":"cancelled before it began"}}`)
	put(6, `{`+op+`,"outcome":{"code":"interrupted"}}`)
	put(7, `{"ops":["000102030405060708090a0b0c0d0e0f"]}`)
	put(8, `{"process":{"key":{"namespace":"shop","name":"x"},"wanted":2,"registered_at":5}}`)
	put(9, `{"key":{"namespace":"shop","name":"x"},"gen":9}`)
	put(10, `{`+op+`,"phase":2}`)
	put(11, `{"groups":[{"namespace":"shop","id":"pool","cpu_limit":12.5,"mem_limit":0,"cpu_weight":1,"mem_weight":0}]}`)
	put(11, `{}`)
	put(12, `{"event":{"seq":77,"key":{"namespace":"shop","name":"x"},"kind":"exited","at":1700000000123,"pid":5,"code":-1,"signal":"SIGSEGV","core":true,"message":"ended"}}`)
	put(13, `{"seq":77}`)

	first := `,"process":{"key":{"namespace":"shop","name":"进程"},"spec":"e30=","wanted":2,"registered_at":5}`
	put(3, `{`+op+first+`}`)
	put(10, `{`+op+`,"phase":2`+first+`}`)
	return out
}

// Everything that an agent has ever written must stay readable. The golden file is what a compaction makes of each
// record.
func TestGoldenRecords(t *testing.T) {
	var b strings.Builder
	for _, rec := range golden() {
		entries, err := agent.Decode(rec.Type, rec.Body)
		if err != nil {
			t.Fatalf("record %d: %v", rec.LSN, err)
		}
		fmt.Fprintf(&b, "%d %s\n", rec.Type, rec.Body)
		for _, e := range entries {
			fmt.Fprintf(&b, "   -> %d %s\n", e.Type, e.Body)
		}
	}

	const file = "testdata/records.golden"

	if *update {
		must(t, os.MkdirAll("testdata", 0o755))
		must(t, os.WriteFile(file, []byte(b.String()), 0o644))
	}

	want, err := os.ReadFile(file)
	must(t, err)

	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Errorf("(-golden +now):\n%s", d)
	}

	for _, bad := range []struct {
		t    journal.Type
		body string
	}{{99, `{}`}, {0, `{}`}, {1, `{}`}, {3, `{}`}, {3, `{"op":{"id":"zz"}}`}, {4, `not json`}, {8, `{}`}, {9, `{}`},
		{12, `{}`}, {12, `{"event":{}}`}, {13, `{}`},
		{10, `{"op":{"id":"000102030405060708090a0b0c0d0e0f"},"phase":77}`}} {
		if _, err := agent.Decode(bad.t, []byte(bad.body)); err == nil {
			t.Errorf("record of type %d with %s was taken", bad.t, bad.body)
		}
	}
}

func FuzzRecord(f *testing.F) {
	z := fuzztest.New(f)
	for _, rec := range golden() {
		z.Add(uint8(rec.Type), rec.Body)
	}

	z.Fuzz(func(t *testing.T, typ uint8, body []byte) {
		first, err := agent.Decode(journal.Type(typ), body)
		if err != nil {
			return
		}
		for _, e := range first { // what a compaction writes can be read
			if _, err := agent.Decode(e.Type, e.Body); err != nil {
				t.Fatalf("record %d %s: %v", e.Type, e.Body, err)
			}
		}
	})
}
