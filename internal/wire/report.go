package wire

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/gozzard/gozzard"
)

// AppendReport appends an encoded report. A zero Version is written as the version of this build.
func AppendReport(b []byte, r *gozzard.Report) []byte {
	b = appendUint(b, fieldVersion, uint64(ownVersion(r.Version)))
	b = appendUint(b, 2, uint64(r.Kind))
	b = appendUint(b, 3, r.Session)
	b = appendID(b, 4, r.Journal.ID)
	b = appendUint(b, 5, r.Journal.LSN)

	if r.Hello != nil {
		b = appendHello(b, 6, r.Hello)
	}

	for i := range r.Results {
		b = appendOpReport(b, 7, &r.Results[i])
	}

	for i := range r.Statuses {
		b = appendStatus(b, 8, &r.Statuses[i])
	}

	for i := range r.Removed {
		b = appendKey(b, 9, r.Removed[i])
	}

	b = appendUint(b, 10, r.Round)
	b = appendUint(b, 11, uint64(r.Part))
	b = appendUint(b, 12, uint64(r.Parts))
	b = appendUint(b, 13, r.Beat)
	for i := range r.Events {
		b = appendEvent(b, 14, &r.Events[i])
	}

	if r.Logs != nil {
		b = appendLogChunk(b, 15, r.Logs)
	}
	if r.Update != nil {
		b = appendUpdateReport(b, 16, r.Update)
	}
	if r.History != nil {
		b = appendHistory(b, 17, r.History)
	}
	if r.Vitals != nil {
		b = appendVitals(b, 18, r.Vitals)
	}
	if r.File != nil {
		b = appendFileAnswer(b, 19, r.File)
	}
	if r.Content != nil {
		b = appendContentQuery(b, 20, r.Content)
	}

	return b
}

// DecodeReport decodes a report. The result shares no memory with b. Statuses with equal labels may share one map,
// which must not be changed.
func DecodeReport(b []byte) (*gozzard.Report, error) {
	d := decoder{rest: b, text: &arena{left: len(b)}, what: "report"}
	r := &gozzard.Report{Version: d.version()}
	for d.next() {
		decodeReportField(&d, r)
	}
	if d.err == nil && r.Kind == 0 {
		d.err = fmt.Errorf("report: no kind")
	}
	if d.err != nil {
		return nil, d.err
	}
	return r, nil
}

// decodeReportField decodes the current field. It is long because it has one case per field.
func decodeReportField(d *decoder, r *gozzard.Report) {
	switch d.num {
	case 2:
		r.Kind = gozzard.ReportKind(d.atMost(uint64(gozzard.ReportContent)))
	case 3:
		r.Session = d.uint()
	case 4:
		r.Journal.ID = d.id()
	case 5:
		r.Journal.LSN = d.uint()
	case 6:
		if r.Hello == nil {
			r.Hello = new(gozzard.Hello)
		}
		d.nested(decodeHello(d.message("hello"), r.Hello))
	case 7:
		var o *gozzard.OpReport
		r.Results, o = grow(d, r.Results, MaxReports)
		d.nested(decodeOpReport(d.message("result"), o))
	case 8:
		var s *gozzard.Status
		r.Statuses, s = grow(d, r.Statuses, MaxStatuses)
		d.nested(decodeStatus(d.message("status"), s))
	case 9:
		var k *gozzard.Key
		r.Removed, k = grow(d, r.Removed, MaxKeys)
		d.nested(decodeKey(d.message("removed"), k))
	case 10:
		r.Round = d.uint()
	case 11:
		r.Part = d.uint32()
	case 12:
		r.Parts = d.uint32()
	case 13:
		r.Beat = d.uint()
	case 14:
		var e *gozzard.Event
		r.Events, e = grow(d, r.Events, MaxEvents)
		d.nested(decodeEvent(d.message("event"), e))
	case 15:
		if r.Logs == nil {
			r.Logs = new(gozzard.LogChunk)
		}
		d.nested(decodeLogChunk(d.message("log chunk"), r.Logs))
	case 16:
		if r.Update == nil {
			r.Update = new(gozzard.UpdateReport)
		}
		d.nested(decodeUpdateReport(d.message("update"), r.Update))
	case 17:
		if r.History == nil {
			r.History = new(gozzard.History)
		}
		d.nested(decodeHistory(d.message("history"), r.History))
	case 18:
		if r.Vitals == nil {
			r.Vitals = new(gozzard.Vitals)
		}
		d.nested(decodeVitals(d.message("vitals"), r.Vitals))
	case 20:
		if r.Content == nil {
			r.Content = new(gozzard.ContentQuery)
		}
		d.nested(decodeContentQuery(d.message("content query"), r.Content))
	case 19:
		if r.File == nil {
			r.File = new(gozzard.FileAnswer)
		}
		d.nested(decodeFileAnswer(d.message("file"), r.File))
	case fieldVersion:
		d.fail("comes twice")
	default:
		d.skip()
	}
}

func appendKey(b []byte, num protowire.Number, k gozzard.Key) []byte {
	b, start := begin(b, num)
	b = appendString(b, 1, k.Namespace)
	b = appendString(b, 2, k.Name)
	return end(b, start)
}

func decodeKey(d decoder, k *gozzard.Key) error {
	for d.next() {
		switch d.num {
		case 1:
			k.Namespace = d.string()
		case 2:
			k.Name = d.string()
		default:
			d.skip()
		}
	}

	return d.err
}

func appendStatus(b []byte, num protowire.Number, s *gozzard.Status) []byte {
	b, start := begin(b, num)
	b = appendString(b, 1, s.Namespace)
	b = appendString(b, 2, s.Name)
	b = appendLabels(b, 3, s.Labels)
	b = appendUint(b, 4, uint64(s.Wanted))
	b = appendUint(b, 5, uint64(s.State))
	b = appendBool(b, 6, s.Hosted)
	b = appendInt(b, 7, int64(s.PID))
	b = appendString(b, 8, s.Version)
	b = appendString(b, 9, s.Message)
	b = appendInt(b, 10, s.RegisteredAt)
	b = appendInt(b, 11, s.StartedAt)
	b = appendInt(b, 12, s.ReportedAt)
	b = appendFloat(b, 13, s.CPU)
	b = appendFloat(b, 14, s.Mem)
	b = appendInt(b, 15, int64(s.FD))
	b = appendInt(b, 16, s.Disk)
	b = appendInt(b, 17, s.Net)
	b = appendUint(b, 18, uint64(s.Condition))
	b = appendUint(b, 19, uint64(s.Kind))
	b = appendUint(b, 20, uint64(s.Restarts))
	if !s.Exit.IsZero() {
		b = appendEnding(b, 21, &s.Exit)
	}
	b = appendInt(b, 22, s.NextAt)
	if s.LastRun != (gozzard.LastRun{}) {
		b = appendLastRun(b, 23, &s.LastRun)
	}
	b = appendInt(b, 24, s.MemBytes)
	b = appendUint(b, 25, uint64(s.Health))
	b = appendString(b, 26, s.HealthMessage)
	return end(b, start)
}

// decodeStatus is long because it has one case per field.
func decodeStatus(d decoder, s *gozzard.Status) error {
	for d.next() {
		switch d.num {
		case 1:
			s.Namespace = d.string()
		case 2:
			s.Name = d.string()
		case 3:
			s.Labels = d.labels(s.Labels)
		case 4:
			s.Wanted = gozzard.RunState(d.atMost(uint64(gozzard.StateStopped)))
		case 5:
			s.State = gozzard.RunState(d.atMost(uint64(gozzard.StateStopped)))
		case 6:
			s.Hosted = d.bool()
		case 7:
			s.PID = d.int32()
		case 8:
			s.Version = d.string()
		case 9:
			s.Message = d.string()
		case 10:
			s.RegisteredAt = d.int64()
		case 11:
			s.StartedAt = d.int64()
		case 12:
			s.ReportedAt = d.int64()
		case 13:
			s.CPU = d.float()
		case 14:
			s.Mem = d.float()
		case 15:
			s.FD = d.int32()
		case 16:
			s.Disk = d.int64()
		case 17:
			s.Net = d.int64()
		case 18: // a value that only a later version knows counts as none
			s.Condition = gozzard.Condition(d.orNone(uint64(gozzard.ConditionUnregistered)))
		case 19:
			s.Kind = gozzard.ShownKind(d.orNone(uint64(gozzard.ShownOneShot)))
		case 20:
			s.Restarts = d.uint32()
		case 21:
			d.nested(decodeEnding(d.message("exit"), &s.Exit))
		case 22:
			s.NextAt = d.int64()
		case 23:
			d.nested(decodeLastRun(d.message("last run"), &s.LastRun))
		case 24:
			s.MemBytes = d.int64()
		case 25:
			s.Health = gozzard.Health(d.orNone(uint64(gozzard.HealthFailing)))
		case 26:
			s.HealthMessage = d.string()
		default:
			d.skip()
		}
	}

	return d.err
}
