package agent

import "github.com/gozzard/gozzard"

// update hands an order on and has the answer told. Nothing waits for the update itself: the server gives the order
// again until the answer is final.
func (a *Agent) update(cmd *gozzard.Command) {
	if cmd.Update == nil || !a.contact.Leased(cmd.Session, a.o.Now()) {
		return
	}
	o := *cmd.Update
	r := gozzard.UpdateReport{Roll: o.Roll, Version: o.Version, State: gozzard.UpdateRefused,
		Reason: "this agent cannot replace its own program"}
	if a.o.Update != nil {
		r = a.o.Update(o)
	}
	r.Reason = clip(r.Reason)
	a.plan.update = &r
}

// sendUpdate tells the answer to the newest order.
func (a *Agent) sendUpdate(link Link) {
	if a.plan.update == nil {
		return
	}
	r := a.frame(gozzard.ReportUpdate)
	r.Update, a.plan.update = a.plan.update, nil
	if err := link.Send(r); err != nil {
		a.log.Debug("answer to an update did not leave", "error", err)
	}
}
