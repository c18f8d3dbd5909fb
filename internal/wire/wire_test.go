package wire_test

import (
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/wire"
)

func TestNewerVersionIsDetected(t *testing.T) {
	// The bytes after the version are invalid for this build: that must not matter.
	b := []byte{1 << 3, gozzard.ProtocolVersion + 1, 0xff, 0xff}
	_, err := wire.DecodeCommand(b)
	checkNewer(t, err)
	_, err = wire.DecodeReport(b)
	checkNewer(t, err)
}

func checkNewer(t *testing.T, err error) {
	t.Helper()
	var newer *wire.NewerError
	if !errors.Is(err, wire.ErrNewer) || !errors.As(err, &newer) || newer.Version != gozzard.ProtocolVersion+1 {
		t.Errorf("got %v, want ErrNewer with version %d", err, gozzard.ProtocolVersion+1)
	}
	if err != nil && !strings.Contains(err.Error(), "version 2, this build supports up to 1") {
		t.Errorf("the text does not say which: %v", err)
	}
}

func TestZeroVersionIsOurs(t *testing.T) {
	c, err := wire.DecodeCommand(wire.AppendCommand(nil, &gozzard.Command{Kind: gozzard.CommandGreet}))
	if err != nil || c.Version != gozzard.ProtocolVersion {
		t.Errorf("got %+v, %v", c, err)
	}
	r, err := wire.DecodeReport(wire.AppendReport(nil, &gozzard.Report{Kind: gozzard.ReportHeartbeat}))
	if err != nil || r.Version != gozzard.ProtocolVersion {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestUnknownFieldsAreSkipped(t *testing.T) {
	b := wire.AppendReport(nil, &gozzard.Report{Kind: gozzard.ReportHeartbeat, Beat: 5})
	b = protowire.AppendTag(b, 1000, protowire.VarintType)
	b = protowire.AppendVarint(b, 1)
	b = protowire.AppendTag(b, 1001, protowire.Fixed32Type)
	b = protowire.AppendFixed32(b, 1)
	b = protowire.AppendTag(b, 1002, protowire.Fixed64Type)
	b = protowire.AppendFixed64(b, 1)
	b = protowire.AppendTag(b, 1003, protowire.BytesType)
	b = protowire.AppendString(b, "later")
	b = protowire.AppendTag(b, 8, protowire.BytesType) // a status with a field of a later build
	b = protowire.AppendBytes(b, []byte{0x12, 1, 'n', 0xf8, 0x07, 1})
	r, err := wire.DecodeReport(b)
	if err != nil {
		t.Fatal(err)
	}
	if r.Beat != 5 || len(r.Statuses) != 1 || r.Statuses[0].Name != "n" {
		t.Errorf("got %+v", r)
	}
}

func TestRefused(t *testing.T) {
	head := wire.AppendReport(nil, &gozzard.Report{Kind: gozzard.ReportStatus})
	field := func(num protowire.Number, v []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(append([]byte(nil), head...), num, protowire.BytesType), v)
	}

	status := func(v ...byte) []byte { return field(8, v) }
	var labels []byte
	for i := range wire.MaxLabels + 1 {
		labels = append(labels, 0x1a, 3, 0x0a, 1, byte(i)+1)
	}

	long := protowire.AppendString(protowire.AppendTag(nil, 2, protowire.BytesType),
		strings.Repeat("x", wire.MaxString+1))
	many := append([]byte(nil), head...)
	for range wire.MaxStatuses + 1 {
		many = append(many, 8<<3|2, 0)
	}

	interrupted := append([]byte(nil), head...) // the limit holds also with other fields between
	for range wire.MaxStatuses + 1 {
		interrupted = append(interrupted, 8<<3|2, 0, 3<<3, 1)
	}

	for name, c := range map[string]struct {
		in   []byte
		text string
	}{
		"nothing":         {nil, "empty"},
		"no version":      {[]byte{2 << 3, 1}, "does not begin with its version"},
		"version 0":       {[]byte{1 << 3, 0, 2 << 3, 1}, "no version"},
		"two versions":    {append(append([]byte(nil), head...), 1<<3, 1), "comes twice"},
		"no kind":         {[]byte{1 << 3, 1}, "no kind"},
		"unknown kind":    {[]byte{1 << 3, 1, 2 << 3, 11}, "11 is more than 10"},
		"wrong wire type": {[]byte{1 << 3, 1, 2<<3 | 2, 1, 1}, "wire type"},
		"group":           {append(append([]byte(nil), head...), 99<<3&0x7f|3|0x80, 6, 0), "group"},
		"truncated":       {field(8, []byte("abcdef"))[:len(head)+4], "unexpected EOF"},
		"length past end": {append(append([]byte(nil), head...), 8<<3|2, 0xff, 0xff, 0xff, 0xff, 0x07),
			"unexpected EOF"},
		"bad UTF-8":        {status(0x12, 2, 0xc3, 0x28), "not valid UTF-8"},
		"long string":      {field(8, long), "at most 65536"},
		"labels":           {field(8, labels), "more than 64 labels"},
		"statuses":         {many, "more than 16384 elements"},
		"statuses, spread": {interrupted, "more than 16384 elements"},
		"state":            {status(5<<3, 3), "3 is more than 2"},
		"bool":             {status(6<<3, 2), "2 is more than 1"},
		"pid":              {status(7<<3, 0x80, 0x80, 0x80, 0x80, 0x80, 1), "32 bits"},
		"NaN":              {status(13<<3|5, 0, 0, 0xc0, 0x7f), "finite"},
		"infinite":         {status(13<<3|5, 0, 0, 0x80, 0x7f), "finite"},
		"journal id":       {field(4, []byte("short")), "an id has 16 bytes, has 5"},
		"phase":            {field(7, []byte{4 << 3, 6}), "6 is more than 5"},
		"address":          {field(6, []byte{0x0a, 5, 0x12, 3, 0x12, 1, 7}), "4 or 16 bytes, has 1"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := wire.DecodeReport(c.in)
			if err == nil || r != nil || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, %v; want an error with %q", r, err, c.text)
			}
		})
	}
}

// An unknown mode is from a newer agent: the rest of its hello is accepted.
func TestModeOfANewerAgent(t *testing.T) {
	b := wire.AppendReport(nil, &gozzard.Report{Kind: gozzard.ReportHello})
	b = append(b, 6<<3|2, 6, 1<<3|2, 4, 12<<3, 99, 9<<3, 4)
	r, err := wire.DecodeReport(b)
	if err != nil {
		t.Fatal(err)
	}
	if h := r.Hello.Host; h.Mode != gozzard.ModeUnknown || h.CPUs != 2 {
		t.Errorf("got %+v", h)
	}
}

// The reader accepts everything that the writer writes: a rejected result would be repeated for ever.
func TestHostileTextIsRepairedOnTheWayOut(t *testing.T) {
	long := strings.Repeat("鹅", wire.MaxString/3+5)
	for _, s := range []string{"a\xff\xfeb", long, long[1:], strings.Repeat("\xff", wire.MaxString*2),
		strings.Repeat("a", wire.MaxString-1) + "é"} {
		in := &gozzard.Report{Kind: gozzard.ReportResults, Results: []gozzard.OpReport{{Outcome: gozzard.Outcome{
			Message: s, Detail: &gozzard.Detail{Cmdline: s, CPU: math.NaN(), Mem: math.Inf(1),
				CPUAvg: math.Copysign(0, -1)},
		}}}}
		r, err := wire.DecodeReport(wire.AppendReport(nil, in))
		if err != nil {
			t.Fatal(err)
		}
		got := r.Results[0].Outcome
		if !utf8.ValidString(got.Message) || len(got.Message) > wire.MaxString || got.Message != got.Detail.Cmdline {
			t.Errorf("%.20q became %.20q (%d bytes)", s, got.Message, len(got.Message))
		}
		if got.Detail.CPU != 0 || got.Detail.Mem != 0 || !math.Signbit(got.Detail.CPUAvg) {
			t.Errorf("got floats %v %v %v", got.Detail.CPU, got.Detail.Mem, got.Detail.CPUAvg)
		}
	}
}

func TestResultSharesNoMemoryWithInput(t *testing.T) {
	c := commands()["operate"]
	b := wire.AppendCommand(nil, c)
	got, err := wire.DecodeCommand(b)
	if err != nil {
		t.Fatal(err)
	}
	clear(b)
	if got.Ops[0].Key.Name != "nginx-1" || string(got.Ops[0].Spec) != string(c.Ops[0].Spec) ||
		got.Ops[0].ID != c.Ops[0].ID {
		t.Errorf("the result changed with the input: %+v", got.Ops[0])
	}
}

// A wrong length field or many empty elements must not use much memory.
func TestAllocationIsBoundedByInput(t *testing.T) {
	head := wire.AppendReport(nil, &gozzard.Report{Kind: gozzard.ReportStatus})
	swarm := append([]byte(nil), head...)
	for range 400_000 {
		swarm = append(swarm, 8<<3|2, 0)
	}

	full := append([]byte(nil), head...)
	for range wire.MaxStatuses {
		full = append(full, 8<<3|2, 0)
	}

	lie := append(append([]byte(nil), head...), 8<<3|2, 0xff, 0xff, 0xff, 0xff, 0x07)
	for name, c := range map[string]struct {
		in    []byte
		bytes uint64
	}{"swarm": {swarm, 64 << 10}, "full": {full, 8 << 20}, "lie": {lie, 64 << 10}} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = wire.DecodeReport(c.in)
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > c.bytes {
			t.Errorf("%s: %d bytes of input allocated %d", name, len(c.in), got)
		}
	}
}

// TestNewerConditions: a state, a kind or a result of a health check that only a later version knows counts as none, and
// the rest of the report is read.
func TestNewerConditions(t *testing.T) {
	sent := gozzard.Status{Key: gozzard.Key{Namespace: "ns", Name: "p"}, State: gozzard.StateRunning, PID: 7,
		Condition: 99, Kind: 99, Health: 99, Restarts: 3}
	got, err := wire.DecodeReport(wire.AppendReport(nil, &gozzard.Report{Kind: gozzard.ReportStatus,
		Statuses: []gozzard.Status{sent}}))
	if err != nil {
		t.Fatal(err)
	}
	want := sent
	want.Condition, want.Kind, want.Health = 0, 0, 0
	if d := cmp.Diff([]gozzard.Status{want}, got.Statuses); d != "" {
		t.Errorf("read something else (-want +got):\n%s", d)
	}
	if c := got.Statuses[0].ConditionOf(); c != gozzard.ConditionRunning {
		t.Errorf("it is shown as %s", c)
	}
}
