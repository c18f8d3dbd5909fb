package agent_test

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozzard/gozzard"
)

// partOf is the part that a question asks for, as a server answers it.
func partOf(q *gozzard.ContentQuery, content []byte) *gozzard.ContentPart {
	data := content[q.Offset:min(q.Offset+gozzard.MaxPartBytes, int64(len(content)))]
	return &gozzard.ContentPart{Op: q.Op, SHA256: q.SHA256, Offset: q.Offset, Data: data, Sum: gozzard.PartSum(data)}
}

// TestContentInParts: a large content is written if what comes is the content that the operation names. Damaged parts, parts that were
// not asked for, parts that come twice, another content and silence lead to that content or to nothing.
func TestContentInParts(t *testing.T) {
	content := bytes.Repeat([]byte("a line of a file\n"), 50_000) // four parts
	evil := bytes.Repeat([]byte("a line of a fool\n"), 50_000)
	one := func(p *gozzard.ContentPart) []*gozzard.ContentPart { return []*gozzard.ContentPart{p} }
	asked := 0
	for name, c := range map[string]struct {
		part func(q *gozzard.ContentQuery) []*gozzard.ContentPart
		want string // of the message; "": it is written
	}{
		"as it is": {func(q *gozzard.ContentQuery) []*gozzard.ContentPart { return one(partOf(q, content)) }, ""},
		"twice": {func(q *gozzard.ContentQuery) []*gozzard.ContentPart {
			return []*gozzard.ContentPart{partOf(q, content), partOf(q, content)}
		}, ""},
		"every other answer is lost": {func(q *gozzard.ContentQuery) []*gozzard.ContentPart {
			if asked++; asked%2 == 0 {
				return nil
			}
			return one(partOf(q, content))
		}, ""},
		"damaged at first": {func(q *gozzard.ContentQuery) []*gozzard.ContentPart {
			p := partOf(q, content)
			if asked++; asked%3 != 0 {
				p.Data = append([]byte("x"), p.Data[1:]...)
			}
			return one(p)
		}, ""},
		"not asked for": {func(q *gozzard.ContentQuery) []*gozzard.ContentPart {
			foreign, ahead, long := partOf(q, evil), partOf(q, evil), partOf(q, content)
			foreign.Op, ahead.Offset, long.Data = gozzard.NewOpID(), q.Offset+1, append(content, evil...)
			long.Sum = gozzard.PartSum(long.Data)
			return []*gozzard.ContentPart{foreign, ahead, long, nil}
		}, "did not come"},
		"another content": {func(q *gozzard.ContentQuery) []*gozzard.ContentPart { return one(partOf(q, evil)) },
			"not the content that the operation names"},
		"a forged end": {func(q *gozzard.ContentQuery) []*gozzard.ContentPart {
			if q.Offset >= 2*gozzard.MaxPartBytes {
				return one(partOf(q, evil))
			}
			return one(partOf(q, content))
		}, "not the content that the operation names"},
		"silence": {func(*gozzard.ContentQuery) []*gozzard.ContentPart { return nil }, "did not come: 0 of 850000 bytes"},
		"gone": {func(q *gozzard.ContentQuery) []*gozzard.ContentPart {
			return one(&gozzard.ContentPart{Op: q.Op, SHA256: q.SHA256, Offset: q.Offset, Error: "it is gone"})
		}, "it is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.part, asked = c.part, 0
				r.o.Files = r.host.Files()
				r.start()
				r.connect()

				f := &gozzard.FileSpec{Path: "/etc/shop.conf", Mode: "0644"}
				f.SetContent(content)
				s := &gozzard.Spec{File: f}
				s.Identity.User = "shop"
				op := r.op(gozzard.ActionConfigure, "")
				op.Key, op.Spec = gozzard.FileKey("shop", f.Path), gozzard.EncodeSpec(s)
				r.do(op)
				time.Sleep(3 * time.Minute)
				synctest.Wait()

				file, err := r.host.Files().Open("shop", f.Path, false)
				if err != nil {
					t.Fatal(err)
				}
				got, out := file.View(), r.last(op.ID).Outcome
				switch {
				case c.want == "" && (out.Code != gozzard.CodeOK || !bytes.Equal(got.Content, content)):
					t.Errorf("%+v, the file has %d bytes", out, len(got.Content))
				case c.want != "" && (out.Code == gozzard.CodeOK || !strings.Contains(out.Message, c.want) || got.Exists):
					t.Errorf("%+v, the file exists: %v; want %q", out, got.Exists, c.want)
				}
				r.stop()
			})
		})
	}
}

// TestAgentEndsBetweenParts: an agent that ends while a content comes has written nothing, and has no verdict: the operation is sent
// to its next run.
func TestAgentEndsBetweenParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		content := bytes.Repeat([]byte("a line of a file\n"), 50_000)
		r := newRig(t)
		r.part = func(q *gozzard.ContentQuery) []*gozzard.ContentPart {
			if q.Offset > 0 {
				return nil
			}
			return []*gozzard.ContentPart{partOf(q, content)}
		}
		r.o.Files = r.host.Files()
		r.start()
		r.connect()
		f := &gozzard.FileSpec{Path: "/etc/shop.conf", Mode: "0644"}
		f.SetContent(content)
		s := &gozzard.Spec{File: f}
		s.Identity.User = "shop"
		op := r.op(gozzard.ActionConfigure, "")
		op.Key, op.Spec = gozzard.FileKey("shop", f.Path), gozzard.EncodeSpec(s)
		r.do(op)
		time.Sleep(time.Second)
		r.stop()
		if last := r.last(op.ID); last.Outcome.Code != "" {
			t.Errorf("it has the verdict %+v", last)
		}

		r.part = func(q *gozzard.ContentQuery) []*gozzard.ContentPart {
			return []*gozzard.ContentPart{partOf(q, content)}
		}
		r.start()
		r.connect()
		r.do(op)
		time.Sleep(time.Minute)
		if out := r.last(op.ID).Outcome; out.Code != gozzard.CodeOK {
			t.Errorf("%+v", out)
		}
	})
}
