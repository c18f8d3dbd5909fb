package control

import (
	"cmp"
	"context"

	"github.com/gozzard/gozzard"
)

// History reads what the agent of a host measured of a process. It fails at once when the host is offline, and after a time
// when the host does not answer.
func (p *Plane) History(ctx context.Context, caller gozzard.Caller, t gozzard.Target,
	q gozzard.HistoryQuery) (gozzard.History, error) {
	// Reject what the caller may not see. A hidden process gets the answer that an agent gives for one that it does not
	// have.
	host, err := p.hostToAsk(caller, t)
	if err != nil {
		return gozzard.History{}, err
	}
	if !caller.Rights.Sees(q.Key.Namespace, host.Info.Ref()) {
		return gozzard.History{}, gozzard.Errorf(gozzard.ErrNotFound, "%s: %s is not registered on this host",
			targetName(t), q.Key)
	}

	// An older agent would reject the whole message, and the caller would wait for nothing.
	if !host.Info.History {
		return gozzard.History{}, gozzard.Errorf(gozzard.ErrUnavailable,
			"the agent of %s keeps no history: it has version %s and is older than this function, or it cannot write its "+
				"folder of histories. Upgrade the agent, or look into its log", targetName(t),
			cmp.Or(host.Info.Version, "unknown"))
	}

	// Ask the agent.
	q.Points = min(max(q.Points, 1), gozzard.MaxHistoryPoints)
	q.ID = gozzard.NewOpID()
	r, err := p.ask(ctx, t, host.Info.Agent, q.ID, &gozzard.Command{Kind: gozzard.CommandHistory, History: &q})
	if err != nil {
		return gozzard.History{}, err
	}

	h := r.History
	switch {
	case h.Error != "":
		return gozzard.History{}, gozzard.Errorf(gozzard.ErrNotFound, "%s: %s", targetName(t), h.Error)
	case !sensible(h):
		return gozzard.History{}, gozzard.Errorf(gozzard.ErrUnavailable,
			"%s: the agent answered with %d points in steps of %d seconds, which makes no sense: upgrade the agent",
			targetName(t), len(h.Points), h.Step)
	}
	return *h, nil
}

// sensible reports whether programs can draw a history: those of browsers fail with a time that no calendar has.
func sensible(h *gozzard.History) bool {
	const (
		year9999 = 253_402_300_799 // Unix seconds
		month    = 31 * 24 * 3600
	)
	return h.From >= 0 && h.From <= year9999 && h.Step >= 1 && h.Step <= month && len(h.Points) <= gozzard.MaxHistoryPoints
}

func (p *Plane) receiveHistory(from gozzard.AgentID, cloud int, r *gozzard.Report) {
	if r.History == nil {
		p.reject("history_empty", from)
		return
	}
	if p.peers.passOn(from, cloud, r.History.ID, r) {
		return
	}
	p.answered(from, r.History.ID, r, "history_unasked")
}
