package control

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

const (
	contentWorkers = 2
	contentQueries = 4096     // that wait; an agent repeats what is dropped
	contentCache   = 64 << 20 // bytes of contents in memory, beside one that is larger
)

// contents are the large contents of files that agents ask for. Each is in memory once, for all agents of this server.
type contents struct {
	asked chan contentQuery

	loading sync.Mutex // one content is read at a time, so that a thousand agents that ask for it read it once
	mu      sync.Mutex
	held    map[string][]byte
	order   []string // the one that was used longest ago first
	bytes   int
}

type contentQuery struct {
	from    gozzard.AgentID
	cloud   int
	session uint64
	gozzard.ContentQuery
}

func newContents() *contents {
	return &contents{asked: make(chan contentQuery, contentQueries), held: map[string][]byte{}}
}

// find is a content in memory.
func (c *contents) find(digest string) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	body, ok := c.held[digest]
	if ok {
		c.use(digest)
	}
	return body, ok
}

// put holds a content in memory, and removes those that were used longest ago.
func (c *contents) put(digest string, body []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.held[digest]; !ok {
		c.held[digest] = body
		c.bytes += len(body)
	}
	c.use(digest)
	for len(c.order) > 1 && c.bytes > contentCache {
		c.bytes -= len(c.held[c.order[0]])
		delete(c.held, c.order[0])
		c.order = c.order[1:]
	}
}

// use moves a content to the end of the order. The lock is held.
func (c *contents) use(digest string) {
	for i, d := range c.order {
		if d == digest {
			c.order = append(c.order[:i:i], c.order[i+1:]...)
			break
		}
	}
	c.order = append(c.order, digest)
}

// KeepContents makes sure that the record has the large contents that an operation names, for as long as it can need them.
func (p *Plane) KeepContents(ctx context.Context, op *gozzard.Operation) error {
	digests := map[string]bool{}
	for i := range op.Items {
		if it := &op.Items[i]; it.Refused == nil && inParts(it.Spec) {
			digests[it.Spec.File.SHA256] = true
		}
	}
	return p.keepContents(ctx, op, digests)
}

// inParts reports whether a description is that of a file whose content travels in parts.
func inParts(s *gozzard.Spec) bool { return s != nil && s.File != nil && s.File.Parts }

// contents are the digests of the large contents that a task needs, now or when it is repeated: those of files that the caller may
// write on their hosts. A caller without that right must not fill the record.
func (d *draft) contents(rights *gozzard.Rights) map[string]bool {
	digests := map[string]bool{}
	for i := range d.given {
		g, a := &d.given[i], &d.task.Attempts[i]
		if inParts(g.spec) && rights.May(a.Action, a.Key.Namespace, g.host, g.spec.Account()) {
			digests[g.spec.File.SHA256] = true
		}
	}
	return digests
}

// keepContents keeps some of the contents of an operation.
func (p *Plane) keepContents(ctx context.Context, op *gozzard.Operation, digests map[string]bool) error {
	var list []record.Content
	for _, digest := range slices.Sorted(maps.Keys(digests)) {
		list = append(list, record.Content{Digest: digest, Body: op.Contents[digest]})
	}
	if len(list) == 0 {
		return nil
	}

	if err := p.o.Store.KeepContents(ctx, list, p.o.Now().Add(p.o.Keep+op.WaitOffline+time.Hour)); err != nil {
		return err
	}
	for _, x := range list {
		if x.Body != nil {
			p.contents.put(x.Digest, x.Body)
		}
	}
	return nil
}

// receiveContent takes in that an agent asks for a part of a content. It gets those of its own open operations only.
func (p *Plane) receiveContent(from gozzard.AgentID, cloud int, r *gozzard.Report) {
	q := r.Content
	if q == nil {
		p.reject("content_empty", from)
		return
	}
	spec, err := gozzard.DecodeSpec(p.delivery.SpecOf(from, q.Op))
	if err != nil || spec.File == nil || !spec.File.Parts || spec.File.SHA256 != q.SHA256 || q.Offset < 0 || q.Offset >= spec.File.Size {
		p.reject("content_unasked", from)
		return
	}

	select {
	case p.contents.asked <- contentQuery{from, cloud, r.Session, *q}:
	default:
		p.reject("content_busy", from)
	}
}

// contentLoop answers agents that ask for parts of contents.
func (p *Plane) contentLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case q := <-p.contents.asked:
			part := gozzard.ContentPart{Op: q.Op, SHA256: q.SHA256, Offset: q.Offset}
			body, err := p.content(ctx, q.SHA256)
			switch {
			case err == nil && q.Offset < int64(len(body)):
				part.Data = body[q.Offset:min(q.Offset+gozzard.MaxPartBytes, int64(len(body)))]
				part.Sum = gozzard.PartSum(part.Data)
			case gozzard.KindOf(err) == gozzard.ErrNotFound:
				part.Error = err.Error()
			default:
				p.o.Log.Error("cannot read the content of a file for an agent; it asks again", "agent", q.from, "sha256", q.SHA256, "err", err)
				continue
			}
			p.delivery.Send(q.from, q.cloud, &gozzard.Command{Version: gozzard.ProtocolVersion, Kind: gozzard.CommandContent,
				Session: q.session, Content: &part})
		}
	}
}

// content is a content from memory, or from the record.
func (p *Plane) content(ctx context.Context, digest string) ([]byte, error) {
	if body, ok := p.contents.find(digest); ok {
		return body, nil
	}
	p.contents.loading.Lock()
	defer p.contents.loading.Unlock()
	if body, ok := p.contents.find(digest); ok {
		return body, nil
	}

	body, err := p.o.Store.Content(ctx, digest)
	if err == nil {
		p.contents.put(digest, body)
	}
	return body, err
}
