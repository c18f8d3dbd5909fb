package agent

import (
	"context"

	"github.com/gozzard/gozzard"
)

const (
	maxLogQueries = 16        // queries that wait for the disk
	maxLogBytes   = 256 << 10 // in one answer, well below the largest message of the fabric
	maxLogLines   = 100_000
)

// queueLogQuery queues a log query. The loop does not read logs, because a slow disk would delay everything else. The
// server repeats a query that was dropped.
func (a *Agent) queueLogQuery(cmd *gozzard.Command) {
	if cmd.Logs == nil || !a.contact.Leased(cmd.Session, a.o.Now()) {
		return
	}
	select {
	case a.logQueries <- cmd.Logs:
	default:
		a.log.Debug("dropped a log query: too many at once", "proc", cmd.Logs.Key)
	}
}

// answerLogs answers the queries, one after the other.
func (a *Agent) answerLogs(ctx context.Context, link Link) {
	for {
		select {
		case <-ctx.Done():
			return
		case q := <-a.logQueries:
			r := a.newReport(gozzard.ReportLogs)
			chunk := a.readLog(*q)
			r.Logs = &chunk
			if err := link.Send(r); err != nil {
				a.log.Debug("cannot send a log", "err", err)
			}
		}
	}
}

// readLog reads a log within limits. The names are checked here again, as those of an operation.
func (a *Agent) readLog(q gozzard.LogQuery) gozzard.LogChunk {
	for _, name := range []string{q.Key.Namespace, q.Key.Name} {
		if err := gozzard.ValidateProcessName(name); err != nil {
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
