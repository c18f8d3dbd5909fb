package wire

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/gozzard/gozzard"
)

func appendFileQuery(b []byte, num protowire.Number, q *gozzard.FileQuery) []byte {
	b, start := begin(b, num)
	b = appendQuestion(b, q.ID, q.Key)
	b = appendString(b, 4, q.Path)
	b = appendString(b, 5, q.Account)
	b = appendString(b, 6, q.Kept)
	b = appendBool(b, 7, q.List)
	b = appendInt(b, 8, q.Offset)
	b = appendInt(b, 9, int64(q.Max))
	return end(b, start)
}

func decodeFileQuery(d decoder, q *gozzard.FileQuery) error {
	for d.next() {
		switch d.num {
		case 4:
			q.Path = d.string()
		case 5:
			q.Account = d.string()
		case 6:
			q.Kept = d.string()
		case 7:
			q.List = d.bool()
		case 8:
			q.Offset = d.int64()
		case 9:
			q.Max = d.int()
		default:
			d.question(&q.ID, &q.Key)
		}
	}

	return d.err
}

func appendFileAnswer(b []byte, num protowire.Number, a *gozzard.FileAnswer) []byte {
	b, start := begin(b, num)
	b = appendID(b, 1, a.ID)
	b = appendFileView(b, 2, &a.View)
	b = appendInt(b, 3, a.Offset)
	for i := range a.Versions {
		b = appendFileVersion(b, 4, &a.Versions[i])
	}
	b = appendString(b, 5, a.Error)
	return end(b, start)
}

func decodeFileAnswer(d decoder, a *gozzard.FileAnswer) error {
	for d.next() {
		switch d.num {
		case 1:
			a.ID = d.id()
		case 2:
			d.nested(decodeFileView(d.message("file"), &a.View))
		case 3:
			a.Offset = d.int64()
		case 4:
			var v *gozzard.FileVersion
			a.Versions, v = grow(&d, a.Versions, MaxVersions)
			d.nested(decodeFileVersion(d.message("former content"), v))
		case 5:
			a.Error = d.string()
		default:
			d.skip()
		}
	}

	return d.err
}

func appendFileView(b []byte, num protowire.Number, v *gozzard.FileView) []byte {
	b, start := begin(b, num)
	b = appendBool(b, 1, v.Exists)
	b = appendString(b, 2, v.Owner)
	b = appendString(b, 3, v.Group)
	b = appendString(b, 4, v.Mode)
	b = appendInt(b, 5, v.Size)
	b = appendString(b, 6, v.SHA256)
	b = appendInt(b, 7, v.Changed)
	b = appendBytes(b, 8, v.Content[:min(len(v.Content), MaxLogBytes)])
	return end(b, start)
}

func decodeFileView(d decoder, v *gozzard.FileView) error {
	for d.next() {
		switch d.num {
		case 1:
			v.Exists = d.bool()
		case 2:
			v.Owner = d.string()
		case 3:
			v.Group = d.string()
		case 4:
			v.Mode = d.string()
		case 5:
			v.Size = d.int64()
		case 6:
			v.SHA256 = d.string()
		case 7:
			v.Changed = d.int64()
		case 8:
			part := d.bytes()
			if len(part) > MaxLogBytes {
				d.fail("has %d bytes, at most %d are allowed", len(part), MaxLogBytes)
				continue
			}
			v.Content = slices.Clone(part)
		default:
			d.skip()
		}
	}

	if len(v.Content) == 0 {
		v.Content = nil
	}

	return d.err
}

func appendFileVersion(b []byte, num protowire.Number, v *gozzard.FileVersion) []byte {
	b, start := begin(b, num)
	b = appendInt(b, 1, v.At)
	b = appendString(b, 2, v.SHA256)
	b = appendInt(b, 3, v.Size)
	b = appendString(b, 4, v.Owner)
	b = appendString(b, 5, v.Group)
	b = appendString(b, 6, v.Mode)
	b = appendInt(b, 7, int64(v.Task))
	return end(b, start)
}

func decodeFileVersion(d decoder, v *gozzard.FileVersion) error {
	for d.next() {
		switch d.num {
		case 1:
			v.At = d.int64()
		case 2:
			v.SHA256 = d.string()
		case 3:
			v.Size = d.int64()
		case 4:
			v.Owner = d.string()
		case 5:
			v.Group = d.string()
		case 6:
			v.Mode = d.string()
		case 7:
			v.Task = gozzard.TaskSeq(d.int64())
		default:
			d.skip()
		}
	}

	return d.err
}
