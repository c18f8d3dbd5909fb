package agent

import (
	"context"
	"fmt"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/history"
	"github.com/gozzard/gozzard/internal/supervise"
)

const maxHistoryQueries = 16 // that wait for the disk

// keepMeasured adds what was measured to the histories.
func (a *Agent) keepMeasured(list []supervise.Measurement) {
	samples := make([]history.Sample, len(list))
	for i := range list {
		m := &list[i]
		samples[i] = history.Sample{
			Key: m.Key, Process: history.Process{PID: m.Proc.PID, Start: m.Proc.Start},
			Cores: m.Usage.Cores, MemKB: m.Usage.MemKB, FD: m.Usage.FD, Restarts: m.Restarts,
		}
	}

	// A process that was unregistered during the pass has no history any more, and nothing else would remove it.
	for _, key := range a.o.History.Add(samples) {
		if _, managed := a.sup.Status(key); !managed {
			a.o.History.Remove(key)
		}
	}
}

// removed handles a process that is no longer managed.
func (a *Agent) removed(key gozzard.Key) {
	if a.o.History != nil {
		a.o.History.Remove(key)
	}
	a.markChanged(key)
}

// queueHistoryQuery queues a query, as queueLogQuery does.
func (a *Agent) queueHistoryQuery(cmd *gozzard.Command) {
	if cmd.History == nil || a.o.History == nil || !a.contact.Leased(cmd.Session, a.o.Now()) {
		return
	}
	select {
	case a.historyQueries <- cmd.History:
	default:
		a.log.Debug("dropped a history query: too many at once", "proc", cmd.History.Key)
	}
}

// answerHistory answers the queries, one after the other.
func (a *Agent) answerHistory(ctx context.Context, link Link) {
	for {
		select {
		case <-ctx.Done():
			return
		case q := <-a.historyQueries:
			r := a.newReport(gozzard.ReportHistory)
			h := a.readHistory(*q)
			r.History = &h
			if err := link.Send(r); err != nil {
				a.log.Debug("cannot send a history", "err", err)
			}
		}
	}
}

func (a *Agent) readHistory(q gozzard.HistoryQuery) gozzard.History {
	if _, managed := a.sup.Status(q.Key); !managed {
		return gozzard.History{ID: q.ID, Error: fmt.Sprintf("%s is not registered on this host", q.Key)}
	}
	h, err := a.o.History.Read(q)
	if err != nil {
		return gozzard.History{ID: q.ID, Error: clip(err.Error())}
	}
	return h
}
