package agent

import (
	"context"

	"github.com/gozzard/gozzard"
)

const (
	maxQuestions = 16        // waiting for the disk
	maxLogBytes  = 256 << 10 // in one answer, well below what the fabric carries
	maxLogLines  = 100_000
)

// askLogs queues a question. The loop does not read logs itself: a slow disk would hold up everything else. Who
// asked repeats what was dropped.
func (a *Agent) askLogs(cmd *gozzard.Command) {
	if cmd.Logs == nil || !a.contact.Leased(cmd.Session, a.o.Now()) {
		return
	}
	select {
	case a.questions <- cmd.Logs:
	default:
		a.log.Debug("question for a log was dropped: too many at once", "proc", cmd.Logs.Key)
	}
}

// answerLogs answers one question after the other.
func (a *Agent) answerLogs(ctx context.Context, link Link) {
	for {
		select {
		case <-ctx.Done():
			return
		case q := <-a.questions:
			r := a.frame(gozzard.ReportLogs)
			chunk := a.readLog(*q)
			r.Logs = &chunk
			if err := link.Send(r); err != nil {
				a.log.Debug("log did not leave", "error", err)
			}
		}
	}
}

// readLog asks the host within bounds. Names travel into paths, so they are checked here once more.
func (a *Agent) readLog(q gozzard.LogQuery) gozzard.LogChunk {
	for _, name := range []string{q.Key.Namespace, q.Key.Name} {
		if err := gozzard.ValidateName(name); err != nil {
			return gozzard.LogChunk{ID: q.ID, Error: "not the name of a process: " + clip(err.Error())}
		}
	}

	if q.Max <= 0 || q.Max > maxLogBytes {
		q.Max = maxLogBytes
	}

	q.Lines = min(max(q.Lines, 0), maxLogLines)
	q.Offset = max(q.Offset, -1)
	chunk := a.o.Host.ReadLog(q)
	chunk.ID = q.ID
	chunk.Data = chunk.Data[:min(len(chunk.Data), maxLogBytes)]
	chunk.Error = clip(chunk.Error)
	return chunk
}
