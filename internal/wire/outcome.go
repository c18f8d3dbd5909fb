package wire

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/gozzard/gozzard"
)

func appendOpReport(b []byte, num protowire.Number, o *gozzard.OpReport) []byte {
	b, start := begin(b, num)
	b = appendID(b, 1, o.ID)
	b = appendInt(b, 2, int64(o.Ref.Task))
	b = appendInt(b, 3, int64(o.Ref.Index))
	b = appendUint(b, 4, uint64(o.Phase))
	if o.Outcome != (gozzard.Outcome{}) {
		b = appendOutcome(b, 5, &o.Outcome)
	}
	b = appendInt(b, 6, int64(o.Held))
	b = appendInt(b, 7, int64(o.Waited))
	b = appendInt(b, 8, int64(o.Ran))
	return end(b, start)
}

func decodeOpReport(d decoder, o *gozzard.OpReport) error {
	for d.next() {
		switch d.num {
		case 1:
			o.ID = d.id()
		case 2:
			o.Ref.Task = gozzard.TaskSeq(d.int64())
		case 3:
			o.Ref.Index = d.int32()
		case 4:
			o.Phase = gozzard.Phase(d.atMost(uint64(gozzard.PhaseNever)))
		case 5:
			d.nested(decodeOutcome(d.message("outcome"), &o.Outcome))
		case 6:
			o.Held = time.Duration(d.int64())
		case 7:
			o.Waited = time.Duration(d.int64())
		case 8:
			o.Ran = time.Duration(d.int64())
		default:
			d.skip()
		}
	}

	return d.err
}

func appendOutcome(b []byte, num protowire.Number, o *gozzard.Outcome) []byte {
	b, start := begin(b, num)
	b = appendString(b, 1, string(o.Code))
	b = appendString(b, 2, o.Message)
	b = appendBool(b, 3, o.Hosted)
	b = appendBool(b, 4, o.Forced)
	if o.Detail != nil {
		b = appendDetail(b, 5, o.Detail)
	}
	b = appendBool(b, 6, o.Policy)
	if o.Script != nil {
		b = appendScript(b, 7, o.Script)
	}
	if o.File != (gozzard.FileResult{}) {
		b = appendFileResult(b, 8, &o.File)
	}
	return end(b, start)
}

func decodeOutcome(d decoder, o *gozzard.Outcome) error {
	for d.next() {
		switch d.num {
		case 1:
			o.Code = gozzard.Code(d.string())
		case 2:
			o.Message = d.string()
		case 3:
			o.Hosted = d.bool()
		case 4:
			o.Forced = d.bool()
		case 5:
			if o.Detail == nil {
				o.Detail = new(gozzard.Detail)
			}
			d.nested(decodeDetail(d.message("detail"), o.Detail))
		case 6:
			o.Policy = d.bool()
		case 7:
			if o.Script == nil {
				o.Script = new(gozzard.ScriptResult)
			}
			d.nested(decodeScript(d.message("script"), o.Script))
		case 8:
			d.nested(decodeFileResult(d.message("file"), &o.File))
		default:
			d.skip()
		}
	}

	return d.err
}

func appendDetail(b []byte, num protowire.Number, t *gozzard.Detail) []byte {
	b, start := begin(b, num)
	b = appendInt(b, 1, int64(t.PID))
	b = appendBool(b, 2, t.Hosted)
	b = appendString(b, 3, t.Cmdline)
	b = appendString(b, 4, t.Version)
	b = appendString(b, 5, t.Health)
	b = appendDouble(b, 6, t.CPU)
	b = appendDouble(b, 7, t.CPUAvg)
	b = appendDouble(b, 8, t.Mem)
	b = appendInt(b, 9, t.MemKB)
	b = appendString(b, 10, t.Stat)
	b = appendInt(b, 11, t.UTime)
	b = appendInt(b, 12, t.STime)
	b = appendInt(b, 13, int64(t.Threads))
	b = appendInt(b, 14, t.StartedAt)
	b = appendInt(b, 15, t.Elapsed)
	b = appendInt(b, 16, t.RegisteredAt)
	b = appendInt(b, 17, t.LastStart)
	b = appendInt(b, 18, t.ReportedAt)
	b = appendInt(b, 19, int64(t.ZoneOffset))
	return end(b, start)
}

// decodeDetail is long because it has one case per field.
func decodeDetail(d decoder, t *gozzard.Detail) error {
	for d.next() {
		switch d.num {
		case 1:
			t.PID = d.int()
		case 2:
			t.Hosted = d.bool()
		case 3:
			t.Cmdline = d.string()
		case 4:
			t.Version = d.string()
		case 5:
			t.Health = d.string()
		case 6:
			t.CPU = d.double()
		case 7:
			t.CPUAvg = d.double()
		case 8:
			t.Mem = d.double()
		case 9:
			t.MemKB = d.int64()
		case 10:
			t.Stat = d.string()
		case 11:
			t.UTime = d.int64()
		case 12:
			t.STime = d.int64()
		case 13:
			t.Threads = d.int()
		case 14:
			t.StartedAt = d.int64()
		case 15:
			t.Elapsed = d.int64()
		case 16:
			t.RegisteredAt = d.int64()
		case 17:
			t.LastStart = d.int64()
		case 18:
			t.ReportedAt = d.int64()
		case 19:
			t.ZoneOffset = d.int()
		default:
			d.skip()
		}
	}

	return d.err
}
