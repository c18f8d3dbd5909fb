package control

import (
	"context"

	"github.com/gozzard/gozzard"
)

const maxLogAsk = 256 << 10 // bytes in one answer

// Log reads what a process printed from its host. It fails at once when the host is offline, and after a time when
// the host does not answer.
func (p *Plane) Log(ctx context.Context, caller gozzard.Caller, t gozzard.Target,
	q gozzard.LogQuery) (gozzard.LogChunk, error) {
	// Reject what the caller may not see. A hidden process gets the answer that an agent gives for one that it does not
	// have.
	host, err := p.hostToAsk(caller, t)
	if err != nil {
		return gozzard.LogChunk{}, err
	}
	if !caller.Rights.Sees(q.Key.Namespace, host.Info.Ref()) {
		return gozzard.LogChunk{}, gozzard.Errorf(gozzard.ErrNotFound, "%s: %s has no log on this host",
			targetName(t), q.Key)
	}

	// Ask the agent.
	if q.Max <= 0 || q.Max > maxLogAsk {
		q.Max = maxLogAsk
	}
	q.ID = gozzard.NewOpID()
	r, err := p.ask(ctx, t, host.Info.Agent, q.ID, &gozzard.Command{Kind: gozzard.CommandLogs, Logs: &q})
	if err != nil {
		return gozzard.LogChunk{}, err
	}

	c := r.Logs
	if c.Error != "" {
		return gozzard.LogChunk{}, gozzard.Errorf(gozzard.ErrNotFound, "%s: %s", targetName(t), c.Error)
	}
	return *c, nil
}

func (p *Plane) receiveLogs(from gozzard.AgentID, cloud int, r *gozzard.Report) {
	if r.Logs == nil {
		p.reject("logs_empty", from)
		return
	}
	if p.peers.passOn(from, cloud, r.Logs.ID, r) {
		return
	}
	p.answered(from, r.Logs.ID, r, "logs_unasked")
}
