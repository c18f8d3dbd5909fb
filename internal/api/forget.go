package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/fleet"
)

// deleteHost forgets a host that will not come back. A member of the fleet is removed by that.
func (a *api) deleteHost(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	agent, err := memberOf(r)
	if err != nil {
		return err
	}

	// Reject what the caller may not take out of the fleet.
	host, online, known := a.hostToForget(agent)
	if !known || !caller.Rights.MayExclude(host) {
		return gozzard.Errorf(gozzard.ErrNotFound, "there is no host with agent %s", agent)
	}
	if online {
		return gozzard.Errorf(gozzard.ErrConflict, "host %s is online, so it cannot be forgotten: run gozzard agent leave "+
			"there, or stop its agent and wait until gozzard hosts shows it as offline", agent)
	}

	// Its agent can never come back from here on.
	if a.Enrol != nil {
		if s := a.Enrol.StateOf(agent); s != "" && s != enrol.StateRemoved {
			if _, err := a.Enrol.SetState(r.Context(), caller, agent, enrol.StateRemoved); err != nil {
				return err
			}
		}
	}

	gone, err := a.Plane.Forget(r.Context(), caller, host)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, client.ForgottenHost{Agent: agent, Processes: gone.Processes,
		Operations: gone.Operations})
}

// hostToForget finds a host that reported, is enrolled, or has processes on record, with every address that it has.
func (a *api) hostToForget(agent gozzard.AgentID) (host gozzard.HostRef, online, known bool) {
	self := gozzard.Caller{Rights: gozzard.Everything()}
	host.Agent = agent
	if h, ok := a.Plane.Resolve(self, gozzard.Target{Agent: agent}); ok {
		host.Addrs, online, known = slices.Clone(h.Info.Addrs), h.Online, true
	}

	if a.Enrol != nil {
		for _, m := range a.Enrol.Agents() {
			if m.Agent != agent {
				continue
			}
			known = known || m.State != enrol.StateRemoved
			for _, at := range memberRef(&m).Addrs {
				if !slices.Contains(host.Addrs, at) {
					host.Addrs = append(host.Addrs, at)
				}
			}
		}
	}

	if !known {
		n, _ := a.Plane.Find(self, fleet.Filter{Agents: []gozzard.AgentID{agent}}, 0, 0)
		known = n > 0
	}
	return host, online, known
}

// forgetMember takes away what the server has about a member that was removed.
func (a *api) forgetMember(ctx context.Context, caller gozzard.Caller, host gozzard.HostRef) error {
	if _, err := a.Plane.Forget(ctx, caller, host); err != nil {
		return &gozzard.Error{Kind: gozzard.KindOf(err), Cause: err, Message: fmt.Sprintf("agent %s is removed, but its "+
			"processes could not be taken away: %v. Run: gozzard hosts forget %s", host.Agent, err, host.Agent)}
	}
	return nil
}

// memberRef is a member as rights know it.
func memberRef(m *enrol.AgentRecord) gozzard.HostRef {
	ref := gozzard.HostRef{Agent: m.Agent}
	for _, ip := range m.IPs {
		ref.Addrs = append(ref.Addrs, gozzard.HostAddr{Cloud: m.Cloud, IP: ip})
	}
	return ref
}
