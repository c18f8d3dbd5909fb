package agent

import "github.com/gozzard/gozzard"

// handleUpdate passes an order to run another release on, and queues the answer. Nothing waits for the update itself:
// the server repeats the order until the answer is final.
func (a *Agent) handleUpdate(cmd *gozzard.Command) {
	if cmd.Update == nil || !a.contact.Leased(cmd.Session, a.o.Now()) {
		return
	}

	o := *cmd.Update
	r := gozzard.UpdateReport{
		Roll: o.Roll, Version: o.Version,
		State: gozzard.UpdateRefused, Reason: "this agent cannot replace its own program",
	}
	if a.o.Update != nil {
		r = a.o.Update(o)
	}
	r.Reason = clip(r.Reason)
	a.plan.update = &r
}

// sendUpdate sends the answer to the newest order.
func (a *Agent) sendUpdate(link Link) {
	if a.plan.update == nil {
		return
	}

	r := a.newReport(gozzard.ReportUpdate)
	r.Update, a.plan.update = a.plan.update, nil
	if err := link.Send(r); err != nil {
		a.log.Debug("cannot send the answer to an update", "err", err)
	}
}
