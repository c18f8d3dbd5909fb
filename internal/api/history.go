package api

import (
	"cmp"
	"math"
	"net/http"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

const (
	defaultPoints = 300
	defaultReach  = 3600 // seconds
)

// getHistory reads the measurements of one process on one host, through its agent.
func (a *api) getHistory(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	q, err := a.readQuery(r)
	if err != nil {
		return err
	}

	// Read the process and the host.
	key := q.key()
	agent, host := q.one("agent"), q.one("host")
	if agent != "" && host != "" {
		q.faults.Add("agent", "give either agent or host")
	}
	target := a.targetOf(q, cmp.Or(agent, host), caller)

	// Read the time.
	to := q.number("to", int(time.Now().Unix()), 1, math.MaxInt)
	from := q.number("from", max(to-defaultReach, 0), 0, math.MaxInt)
	query := gozzard.HistoryQuery{Key: key, From: int64(from), To: int64(to),
		Points: q.number("points", defaultPoints, 1, gozzard.MaxHistoryPoints)}
	if from >= to {
		q.faults.Add("from", "must be before the end, %d", to)
	}
	if err := q.faults.Err(); err != nil {
		return err
	}

	// Ask the agent.
	h, err := a.Plane.History(r.Context(), caller, target, query.Fine())
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, showHistory(&h))
}

// showHistory turns points into columns.
func showHistory(h *gozzard.History) client.History {
	n := len(h.Points)
	out := client.History{From: h.From, Step: h.Step, CPU: make([]*float64, n), Mem: make([]*int64, n),
		FD: make([]*int64, n), Restarts: make([]*int64, n)}
	for i, p := range h.Points {
		if p.CPU >= 0 {
			out.CPU[i] = new(float64(p.CPU) / 10)
		}
		out.Mem[i], out.FD[i], out.Restarts[i] = measured(p.Mem), measured(p.FD), measured(p.Restarts)
	}
	return out
}

// measured is nil for what was not measured.
func measured(v int64) *int64 {
	if v < 0 {
		return nil
	}
	return &v
}
