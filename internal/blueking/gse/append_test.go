package gse

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/record"
)

// TestAppendedAnswers: rows that write their own JSON write what encoding/json would write. The test is in the package,
// because callers see only one of the two.
func TestAppendedAnswers(t *testing.T) {
	odd := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "<a&b>", "\"\\\n\r\t\b\f\x00\x1f\x7f",
		"\xff\xfe", "\u2028\u2029é", `{"value":[{"x":"y"}]}`}))
	number := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, 12.3456, 1e-7, 1e21, 99999.9999, -1}))
	info := rapid.Custom(func(t *rapid.T) procInfo {
		return procInfo{
			Meta:    procMeta{odd.Draw(t, "namespace"), odd.Draw(t, "name"), rapid.MapOf(odd, odd).Draw(t, "labels")},
			Host:    hostData{odd.Draw(t, "ip"), rapid.Int().Draw(t, "cloud"), rapid.Int().Draw(t, "supplier")},
			AgentID: odd.Draw(t, "agent"),
			Flag:    rapid.Int().Draw(t, "flag"), Status: rapid.Int().Draw(t, "status"),
			IsAuto:  rapid.Bool().Draw(t, "auto"),
			Message: odd.Draw(t, "message"), PID: rapid.Int32().Draw(t, "pid"), Version: odd.Draw(t, "version"),
			RegisterTime: rapid.Int64().Draw(t, "registered"), LastStartTime: rapid.Int64().Draw(t, "started"),
			ReportTime: rapid.Int64().Draw(t, "reported"),
			CPUUsage:   gozzard.Finite(number.Draw(t, "cpu")), MemUsage: gozzard.Finite(number.Draw(t, "mem")),
			FD: rapid.Int32().Draw(t, "fd"), Disk: rapid.Int64().Draw(t, "disk"), Net: rapid.Int64().Draw(t, "net"),
		}
	})

	result := rapid.Custom(func(t *rapid.T) entry {
		return entry{ErrorCode: rapid.Int().Draw(t, "code"), ErrorMsg: odd.Draw(t, "text"), Content: odd.Draw(t, "content")}
	})

	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOfN(info, 0, 3).Draw(t, "rows")
		for _, data := range []any{
			procInfos{Infos: rows}, procInfos{}, procPage{Count: rapid.Int().Draw(t, "count"), Infos: rows},
			entries(rapid.MapOfN(odd, result, 0, 3).Draw(t, "entries")),
		} {
			e := blueking.Envelope{Result: true, Message: odd.Draw(t, "message"), Data: data, RequestID: "id"}
			got, err := e.Encode()
			if err != nil {
				t.Fatal(err)
			}
			var want bytes.Buffer
			enc := json.NewEncoder(&want)
			enc.SetEscapeHTML(false)
			if err := enc.Encode(e); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want.Bytes()) {
				t.Fatalf("%T is written as\n%s\nnot\n%s", data, got, want.Bytes())
			}
		}
	})
}

// TestKeptEntries: a large task whose entries are kept has the same answer as one whose entries are all rendered, while its
// attempts change, and also when two attempts have the same key.
func TestKeptEntries(t *testing.T) {
	s := &server{}
	res := &record.TaskResults{Task: gozzard.Task{ID: gozzard.NewTaskID(7, time.Unix(1_700_000_000, 0))}}
	spec := gozzard.EncodeSpec(&gozzard.Spec{Identity: gozzard.Identity{ProcName: "nginx"}})
	for i := range 2000 {
		res.Attempts = append(res.Attempts, gozzard.Attempt{ResultKey: fmt.Sprint(i%1500, ":<k>"), Action: gozzard.ActionStart,
			Spec: spec, State: gozzard.AttemptDispatched})
	}

	for stage := range 5 {
		for i := range res.Attempts[:stage*500] {
			a := &res.Attempts[i]
			a.State, a.Outcome = gozzard.AttemptFailed, gozzard.Outcome{Code: gozzard.CodeCommandFailed, Message: fmt.Sprint("no ", i)}
		}
		res.Version++
		got, err := s.kept(blueking.Words{}, res)
		if err != nil {
			t.Fatal(err)
		}
		want := render(blueking.Words{}, res).AppendJSON(nil)
		if text := got.(keptEntries).AppendJSON(nil); !bytes.Equal(text, want) {
			t.Fatalf("stage %d: %.300s\nwant %.300s", stage, text, want)
		}
	}
}
