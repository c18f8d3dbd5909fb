package wire

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/gozzard/gozzard"
)

func appendScript(b []byte, num protowire.Number, r *gozzard.ScriptResult) []byte {
	b, start := begin(b, num)
	for i := range r.Steps {
		b = appendStep(b, 1, &r.Steps[i])
	}
	return end(b, start)
}

func decodeScript(d decoder, r *gozzard.ScriptResult) error {
	for d.next() {
		switch d.num {
		case 1:
			var s *gozzard.StepResult
			r.Steps, s = grow(&d, r.Steps, MaxSteps)
			d.nested(decodeStep(d.message("step"), s))
		default:
			d.skip()
		}
	}

	return d.err
}

func appendStep(b []byte, num protowire.Number, s *gozzard.StepResult) []byte {
	b, start := begin(b, num)
	b = appendInt(b, 1, int64(s.ID))
	b = appendString(b, 2, string(s.State))
	b = appendInt(b, 3, int64(s.Exit))
	b = appendString(b, 4, s.Message)
	b = appendString(b, 5, s.Output)
	b = appendInt(b, 6, s.LeftOut)
	b = appendInt(b, 7, s.Began)
	b = appendInt(b, 8, s.Ended)
	return end(b, start)
}

func decodeStep(d decoder, s *gozzard.StepResult) error {
	for d.next() {
		switch d.num {
		case 1:
			s.ID = d.int()
		case 2:
			s.State = gozzard.StepState(d.string())
		case 3:
			s.Exit = d.int()
		case 4:
			s.Message = d.string()
		case 5:
			s.Output = d.string()
		case 6:
			s.LeftOut = d.int64()
		case 7:
			s.Began = d.int64()
		case 8:
			s.Ended = d.int64()
		default:
			d.skip()
		}
	}

	return d.err
}
