package wire

import (
	"fmt"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/gozzard/gozzard"
)

// AppendCommand appends an encoded command. A zero Version is written as the version of this build.
func AppendCommand(b []byte, c *gozzard.Command) []byte {
	b = appendUint(b, fieldVersion, uint64(ownVersion(c.Version)))
	b = appendUint(b, 2, uint64(c.Kind))
	b = appendUint(b, 3, c.Session)
	for i := range c.Ops {
		b = appendOp(b, 4, &c.Ops[i])
	}

	b = appendIDs(b, 5, c.Cancel)
	b = appendIDs(b, 6, c.Acked)
	b = appendUint(b, 7, c.AckRound)
	b = appendUint(b, 8, c.Beat)
	b = appendInt(b, 9, int64(c.Interval))
	for i := range c.Groups {
		b = appendGroup(b, 10, &c.Groups[i])
	}

	if c.Logs != nil {
		b = appendLogQuery(b, 11, c.Logs)
	}

	b = appendUint(b, 12, c.AckEvents)

	if c.Update != nil {
		b = appendUpdateOrder(b, 13, c.Update)
	}

	if c.History != nil {
		b = appendHistoryQuery(b, 14, c.History)
	}

	for i := range c.Servers {
		b = appendServer(b, 15, &c.Servers[i])
	}

	b = appendInt(b, 16, int64(c.NextBeat))

	if c.File != nil {
		b = appendFileQuery(b, 17, c.File)
	}

	if c.Content != nil {
		b = appendContentPart(b, 18, c.Content)
	}

	return b
}

// DecodeCommand decodes a command. The result shares no memory with b.
func DecodeCommand(b []byte) (*gozzard.Command, error) {
	d := decoder{rest: b, text: &arena{left: len(b)}, what: "command"}
	c := &gozzard.Command{Version: d.version()}
	for d.next() {
		switch d.num {
		case 2:
			c.Kind = gozzard.CommandKind(d.atMost(uint64(gozzard.CommandContent)))
		case 3:
			c.Session = d.uint()
		case 4:
			var op *gozzard.Op
			c.Ops, op = grow(&d, c.Ops, MaxOps)
			d.nested(decodeOp(d.message("operation"), op))
		case 5:
			c.Cancel = decodeID(&d, c.Cancel)
		case 6:
			c.Acked = decodeID(&d, c.Acked)
		case 7:
			c.AckRound = d.uint()
		case 8:
			c.Beat = d.uint()
		case 9:
			c.Interval = time.Duration(d.int64())
		case 10:
			var g *gozzard.Group
			c.Groups, g = grow(&d, c.Groups, MaxGroups)
			d.nested(decodeGroup(d.message("group"), g))
		case 11:
			if c.Logs == nil {
				c.Logs = new(gozzard.LogQuery)
			}
			d.nested(decodeLogQuery(d.message("log query"), c.Logs))
		case 12:
			c.AckEvents = d.uint()
		case 13:
			if c.Update == nil {
				c.Update = new(gozzard.UpdateOrder)
			}
			d.nested(decodeUpdateOrder(d.message("update"), c.Update))
		case 14:
			if c.History == nil {
				c.History = new(gozzard.HistoryQuery)
			}
			d.nested(decodeHistoryQuery(d.message("history query"), c.History))
		case 15:
			var s *gozzard.ServerAddress
			c.Servers, s = grow(&d, c.Servers, MaxServers)
			d.nested(decodeServer(d.message("server"), s))
		case 16:
			c.NextBeat = time.Duration(d.int64())
		case 17:
			if c.File == nil {
				c.File = new(gozzard.FileQuery)
			}
			d.nested(decodeFileQuery(d.message("file query"), c.File))
		case 18:
			if c.Content == nil {
				c.Content = new(gozzard.ContentPart)
			}
			d.nested(decodeContentPart(d.message("part of a content"), c.Content))
		case fieldVersion:
			d.fail("comes twice")
		default:
			d.skip()
		}
	}

	if d.err == nil && c.Kind == 0 {
		d.err = fmt.Errorf("command: no kind")
	}
	if d.err != nil {
		return nil, d.err
	}

	return c, nil
}

func appendOp(b []byte, num protowire.Number, op *gozzard.Op) []byte {
	b, start := begin(b, num)
	b = appendID(b, 1, op.ID)
	b = appendInt(b, 2, int64(op.Ref.Task))
	b = appendInt(b, 3, int64(op.Ref.Index))
	b = appendUint(b, 4, op.Gen)
	b = appendUint(b, 5, uint64(op.Action))
	b = appendString(b, 6, op.Key.Namespace)
	b = appendString(b, 7, op.Key.Name)
	b = appendLabels(b, 8, op.Labels)
	b = appendBytes(b, 9, op.Spec)
	b = appendBool(b, 10, op.Adopt)
	b = appendString(b, 11, op.Account)
	b = appendString(b, 12, string(op.Trace))
	return end(b, start)
}

func decodeOp(d decoder, op *gozzard.Op) error {
	for d.next() {
		switch d.num {
		case 1:
			op.ID = d.id()
		case 2:
			op.Ref.Task = gozzard.TaskSeq(d.int64())
		case 3:
			op.Ref.Index = d.int32()
		case 4:
			op.Gen = d.uint()
		case 5: // an unknown action is rejected alone; the other operations of the command run
			op.Action = gozzard.Action(d.atMost(math.MaxUint8))
		case 6:
			op.Key.Namespace = d.string()
		case 7:
			op.Key.Name = d.string()
		case 8:
			op.Labels = d.label(op.Labels)
		case 9:
			op.Spec = slices.Clone(d.bytes())
		case 10:
			op.Adopt = d.bool()
		case 11:
			op.Account = d.string()
		case 12:
			op.Trace = gozzard.Trace(d.string())
		default:
			d.skip()
		}
	}

	if len(op.Spec) == 0 {
		op.Spec = nil
	}

	return d.err
}

func appendIDs(b []byte, num protowire.Number, ids []gozzard.OpID) []byte {
	for i := range ids {
		b = protowire.AppendTag(b, num, protowire.BytesType)
		b = protowire.AppendBytes(b, ids[i][:])
	}
	return b
}

func decodeID(d *decoder, ids []gozzard.OpID) []gozzard.OpID {
	ids, id := grow(d, ids, MaxIDs)
	*id = d.id()
	return ids
}
