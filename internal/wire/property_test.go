package wire_test

import (
	"bytes"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/wire"
)

// The generators use nil for empty values: the messages do not distinguish them.
func listOf[T any](g *rapid.Generator[T]) *rapid.Generator[[]T] {
	return rapid.Custom(func(t *rapid.T) []T {
		if s := rapid.SliceOfN(g, 0, 5).Draw(t, "list"); len(s) > 0 {
			return s
		}
		return nil
	})
}

var (
	genText = rapid.StringN(0, 20, -1)
	genID   = rapid.Custom(func(t *rapid.T) (id [16]byte) {
		copy(id[:], rapid.SliceOfN(rapid.Byte(), 0, 16).Draw(t, "id"))
		return id
	})
	genOpID = rapid.Map(genID, func(id [16]byte) gozzard.OpID { return id })
	genKey  = rapid.Custom(func(t *rapid.T) gozzard.Key {
		return gozzard.Key{Namespace: genText.Draw(t, "ns"), Name: genText.Draw(t, "name")}
	})
	genState  = rapid.Map(rapid.IntRange(0, 2), func(n int) gozzard.RunState { return gozzard.RunState(n) })
	genLabels = rapid.Custom(func(t *rapid.T) map[string]string {
		if m := rapid.MapOfN(genText, genText, 0, 20).Draw(t, "labels"); len(m) > 0 {
			return m
		}
		return nil
	})
	genRef = rapid.Custom(func(t *rapid.T) gozzard.AttemptRef {
		return gozzard.AttemptRef{Task: gozzard.TaskSeq(rapid.Int64().Draw(t, "task")),
			Index: rapid.Int32().Draw(t, "index")}
	})
	genAddr = rapid.Custom(func(t *rapid.T) gozzard.HostAddr {
		id := genID.Draw(t, "ip")
		ips := []netip.Addr{{}, netip.AddrFrom4([4]byte(id[:4])), netip.AddrFrom16(id)}
		return gozzard.HostAddr{Cloud: rapid.Int().Draw(t, "cloud"), IP: rapid.SampledFrom(ips).Draw(t, "addr")}
	})
)

// fill sets the plain fields of a struct to random values; the caller sets the others.
func fill(t *rapid.T, p any) {
	v := reflect.ValueOf(p).Elem()
	for i := range v.NumField() {
		f, name := v.Field(i), v.Type().Field(i).Name
		switch f.Interface().(type) {
		case string:
			f.SetString(genText.Draw(t, name))
		case int, int32, int64:
			f.SetInt(rapid.Int64Range(-1<<(f.Type().Bits()-1), 1<<(f.Type().Bits()-1)-1).Draw(t, name))
		case uint32, uint64:
			f.SetUint(rapid.Uint64Range(0, 1<<f.Type().Bits()-1).Draw(t, name))
		case float32:
			f.SetFloat(float64(rapid.Float32().Draw(t, name)))
		case float64:
			f.SetFloat(rapid.Float64().Draw(t, name))
		case bool:
			f.SetBool(rapid.Bool().Draw(t, name))
		}
	}
}

var genOpReport = rapid.Custom(func(t *rapid.T) gozzard.OpReport {
	r := gozzard.OpReport{ID: genOpID.Draw(t, "id"), Ref: genRef.Draw(t, "ref"),
		Phase: gozzard.Phase(rapid.IntRange(0, 5).Draw(t, "phase")),
		Held:  time.Duration(rapid.Int64().Draw(t, "held")), Waited: time.Duration(rapid.Int64().Draw(t, "waited")),
		Ran: time.Duration(rapid.Int64().Draw(t, "ran"))}
	fill(t, &r.Outcome)
	r.Outcome.Code = gozzard.Code(genText.Draw(t, "code"))
	r.Outcome.File = gozzard.FileResult{Code: gozzard.FileCode(genText.Draw(t, "file")), SHA256: genText.Draw(t, "sha256")}
	if rapid.Bool().Draw(t, "detail") {
		r.Outcome.Detail = new(gozzard.Detail)
		fill(t, r.Outcome.Detail)
		r.Outcome.Script = &gozzard.ScriptResult{Steps: []gozzard.StepResult{{ID: 3, State: gozzard.StepOK, Exit: -1,
			Output: genText.Draw(t, "output"), LeftOut: 1, Began: 2, Ended: 3}}}
	}
	return r
})

var genStatus = rapid.Custom(func(t *rapid.T) gozzard.Status {
	var s gozzard.Status
	fill(t, &s)
	s.Key, s.Labels = genKey.Draw(t, "key"), genLabels.Draw(t, "labels")
	fill(t, &s.Exit)
	fill(t, &s.LastRun)
	fill(t, &s.LastRun.End)
	s.Condition = gozzard.Condition(rapid.IntRange(0, int(gozzard.ConditionUnregistered)).Draw(t, "condition"))
	s.Kind = gozzard.ShownKind(rapid.IntRange(0, int(gozzard.ShownOneShot)).Draw(t, "kind"))
	s.Health = gozzard.Health(rapid.IntRange(0, int(gozzard.HealthFailing)).Draw(t, "health"))
	s.Wanted, s.State = genState.Draw(t, "wanted"), genState.Draw(t, "state")
	return s
})

var genEvent = rapid.Custom(func(t *rapid.T) gozzard.Event {
	var e gozzard.Event
	fill(t, &e)
	e.Key, e.Kind = genKey.Draw(t, "key"), gozzard.EventKind(genText.Draw(t, "kind"))
	return e
})

var genGroup = rapid.Custom(func(t *rapid.T) gozzard.Group {
	var g gozzard.Group
	fill(t, &g)
	return g
})

var genReport = rapid.Custom(func(t *rapid.T) *gozzard.Report {
	r := new(gozzard.Report)
	fill(t, r)
	r.Version, r.Kind = 1, gozzard.ReportKind(rapid.IntRange(1, 8).Draw(t, "kind"))
	r.Journal = gozzard.JournalPos{ID: genID.Draw(t, "journal"), LSN: rapid.Uint64().Draw(t, "lsn")}
	r.Results, r.Statuses = listOf(genOpReport).Draw(t, "results"), listOf(genStatus).Draw(t, "statuses")
	r.Removed = listOf(genKey).Draw(t, "removed")

	if rapid.Bool().Draw(t, "hello") {
		r.Hello = &gozzard.Hello{Open: listOf(genOpReport).Draw(t, "open")}
		fill(t, &r.Hello.Host)
		r.Hello.Host.Agent = gozzard.AgentID(genText.Draw(t, "agent"))
		r.Hello.Host.Addrs = listOf(genAddr).Draw(t, "addrs")
		r.Hello.Host.PolicyDigest = genText.Draw(t, "policy digest")
		r.Hello.Host.DefaultAccount = genText.Draw(t, "default account")
		r.Hello.Host.Degraded = listOf(genText).Draw(t, "degraded")
		r.Hello.Host.Mode = gozzard.AgentMode(rapid.IntRange(0, int(gozzard.ModeUser)).Draw(t, "mode"))
	}

	r.Events = listOf(genEvent).Draw(t, "events")

	if rapid.Bool().Draw(t, "logs") {
		r.Update = &gozzard.UpdateReport{Version: "1.2.3", State: gozzard.UpdateDone}
		r.Logs = new(gozzard.LogChunk)
		fill(t, r.Logs)
		r.Logs.ID = genOpID.Draw(t, "question")
		r.Vitals = new(gozzard.Vitals)
		fill(t, r.Vitals)
		r.History = new(gozzard.History)
		fill(t, r.History)
		r.History.ID = genOpID.Draw(t, "history question")
		r.History.Points = listOf(rapid.Custom(func(t *rapid.T) (p gozzard.HistoryPoint) { fill(t, &p); return p })).
			Draw(t, "points")
		r.File = &gozzard.FileAnswer{ID: genOpID.Draw(t, "file question"), Offset: rapid.Int64().Draw(t, "file offset"),
			View: gozzard.FileView{Exists: true, Owner: genText.Draw(t, "owner"), Size: rapid.Int64().Draw(t, "size"),
				Changed: rapid.Int64().Draw(t, "changed")},
			Versions: []gozzard.FileVersion{{At: 7, SHA256: genText.Draw(t, "sha256"), Task: 8}}}
		r.Content = &gozzard.ContentQuery{Op: genOpID.Draw(t, "content"), SHA256: genText.Draw(t, "digest"),
			Offset: rapid.Int64().Draw(t, "content offset")}
		if data := rapid.SliceOf(rapid.Byte()).Draw(t, "data"); len(data) > 0 {
			r.Logs.Data, r.File.View.Content = data, data
		}
	}

	return r
})

var genCommand = rapid.Custom(func(t *rapid.T) *gozzard.Command {
	c := new(gozzard.Command)
	fill(t, c)
	c.Version, c.Kind = 1, gozzard.CommandKind(rapid.IntRange(1, 11).Draw(t, "kind"))
	c.Interval = time.Duration(rapid.Int64().Draw(t, "interval"))
	c.Cancel, c.Acked = listOf(genOpID).Draw(t, "cancel"), listOf(genOpID).Draw(t, "acked")
	c.Groups = listOf(genGroup).Draw(t, "groups")

	if rapid.Bool().Draw(t, "logs") {
		c.Update = new(gozzard.UpdateOrder)
		fill(t, c.Update)
		c.Logs = new(gozzard.LogQuery)
		fill(t, c.Logs)
		c.Logs.ID, c.Logs.Key = genOpID.Draw(t, "question"), genKey.Draw(t, "key")
		c.History = new(gozzard.HistoryQuery)
		fill(t, c.History)
		c.File = new(gozzard.FileQuery)
		fill(t, c.File)
		c.File.ID, c.File.Key = genOpID.Draw(t, "file question"), genKey.Draw(t, "file key")
		c.Content = &gozzard.ContentPart{Op: genOpID.Draw(t, "content"), SHA256: genText.Draw(t, "digest"),
			Offset: rapid.Int64().Draw(t, "content offset"), Sum: rapid.Uint32().Draw(t, "sum"), Error: genText.Draw(t, "error")}
		c.History.ID, c.History.Key = genOpID.Draw(t, "history question"), genKey.Draw(t, "history key")
	}

	c.Ops = listOf(rapid.Custom(func(t *rapid.T) gozzard.Op {
		op := gozzard.Op{
			ID: genOpID.Draw(t, "id"), Ref: genRef.Draw(t, "ref"), Gen: rapid.Uint64().Draw(t, "gen"),
			Action: gozzard.Action(rapid.Uint8().Draw(t, "action")), Key: genKey.Draw(t, "key"),
			Labels: genLabels.Draw(t, "labels"),
		}
		if spec := rapid.SliceOf(rapid.Byte()).Draw(t, "spec"); len(spec) > 0 {
			op.Spec = spec
		}
		return op
	})).Draw(t, "ops")

	return c
})

func TestReadingGivesWhatWasWritten(t *testing.T) {
	t.Run("command", rapid.MakeCheck(func(t *rapid.T) {
		want := genCommand.Draw(t, "command")
		b := wire.AppendCommand([]byte("before"), want)
		got, err := wire.DecodeCommand(bytes.TrimPrefix(b, []byte("before")))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("got  %+v, %v\nwant %+v", got, err, want)
		}
	}))

	t.Run("report", rapid.MakeCheck(func(t *rapid.T) {
		want := genReport.Draw(t, "report")
		b := wire.AppendReport([]byte("before"), want)
		got, err := wire.DecodeReport(bytes.TrimPrefix(b, []byte("before")))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("got  %+v, %v\nwant %+v", got, err, want)
		}
	}))
}
