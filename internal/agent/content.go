package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
)

const (
	contentAgain    = 2 * time.Second // a question or its answer may be lost
	contentPatience = time.Minute     // without any progress
	maxBadParts     = 100             // parts of one content that are damaged or were not asked for
)

// errAgentEnds is the error of an operation that has not begun when the agent ends: the server sends it again.
var errAgentEnds = errors.New("the agent ends")

// fetches are the contents that come in parts now.
type fetches struct {
	mu   sync.Mutex
	open map[gozzard.OpID]chan *gozzard.ContentPart
}

func (f *fetches) begin(op gozzard.OpID) <-chan *gozzard.ContentPart {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open == nil {
		f.open = map[gozzard.OpID]chan *gozzard.ContentPart{}
	}
	f.open[op] = make(chan *gozzard.ContentPart, 2)
	return f.open[op]
}

func (f *fetches) end(op gozzard.OpID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.open, op)
}

// takePart hands a part over to the operation that waits for it. Without one it was not asked for.
func (a *Agent) takePart(cmd *gozzard.Command) {
	if cmd.Content == nil || !a.contact.Leased(cmd.Session, a.o.Now()) {
		return
	}
	a.fetches.mu.Lock()
	defer a.fetches.mu.Unlock()
	select {
	case a.fetches.open[cmd.Content.Op] <- cmd.Content:
	default:
		a.log.Debug("dropped a part of a content that no operation waits for", "op", cmd.Content.Op)
	}
}

// askContents sends the questions for parts.
func (a *Agent) askContents(ctx context.Context, link Link) {
	for {
		select {
		case <-ctx.Done():
			return
		case q := <-a.contentQueries:
			r := a.newReport(gozzard.ReportContent)
			r.Content = &q
			if err := link.Send(r); err != nil {
				a.log.Debug("cannot ask for the content of a file", "err", err)
			}
		}
	}
}

// fetchContent asks the server for the content of an operation, one part after the other. Nothing is written meanwhile, and the
// operation has not begun: an agent that is killed is sent the operation again. The digest is that of the operation, which is
// signed, so parts of any other content are worth nothing.
func (a *Agent) fetchContent(w *fileWork) ([]byte, error) {
	spec, id := w.spec.File, w.op.id
	parts := a.fetches.begin(id)
	defer a.fetches.end(id)

	content := make([]byte, 0, spec.Size)
	for bad := 0; int64(len(content)) < spec.Size; {
		part, err := a.nextPart(w, parts, int64(len(content)), &bad)
		if err != nil {
			return nil, err
		}
		content = append(content, part...)
		a.o.Failpoint("file-part")
	}
	if gozzard.FileDigest(content) != spec.SHA256 {
		return nil, fmt.Errorf("what came is not the content that the operation names (sha256 %s): nothing was written", spec.SHA256)
	}
	return content, nil
}

// nextPart asks for a part until it comes.
func (a *Agent) nextPart(w *fileWork, parts <-chan *gozzard.ContentPart, offset int64, bad *int) ([]byte, error) {
	spec, begin := w.spec.File, a.o.Now()
	var again <-chan time.Time
	for ask := true; ; {
		if ask {
			select {
			case a.contentQueries <- gozzard.ContentQuery{Op: w.op.id, SHA256: spec.SHA256, Offset: offset}:
			case <-a.ended:
				return nil, errAgentEnds
			}
			again = time.After(contentAgain)
		}

		ask = false
		select {
		case <-a.ended:
			return nil, errAgentEnds
		case <-again:
			if ask = true; a.isCancelled(w.op) || a.o.Now().Sub(begin) > contentPatience {
				return nil, fmt.Errorf("the content did not come: %d of %d bytes are here; nothing was written", offset, spec.Size)
			}
		case p := <-parts:
			size := int64(len(p.Data))
			switch {
			case p.Error != "":
				return nil, errors.New(p.Error)
			case p.SHA256 == spec.SHA256 && p.Offset == offset && size > 0 && offset+size <= spec.Size && gozzard.PartSum(p.Data) == p.Sum:
				return p.Data, nil
			case p.SHA256 == spec.SHA256 && p.Offset < offset: // it came twice
			default:
				if *bad++; *bad > maxBadParts {
					return nil, fmt.Errorf("%d parts of the content were damaged on the way: nothing was written", *bad)
				}
			}
		}
	}
}

// isCancelled reports whether an operation may not begin any more.
func (a *Agent) isCancelled(op *operation) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !gozzard.MayBegin(op.phase)
}
