package upgrade

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/gozzard/gozzard"
)

// State is the state of an upgrade.
type State string

// The states of an upgrade. The last two are final.
const (
	StateWaiting State = "waiting" // for the approval of another person
	StateRunning State = "running"
	StateDone    State = "done"
	StateStopped State = "stopped" // by a host that failed, or by a person
)

// Open reports whether the upgrade is not final.
func (s State) Open() bool { return s == StateWaiting || s == StateRunning }

// HostState is the state of one host of an upgrade.
type HostState string

// The states of a host. All but the first two are final.
const (
	HostWaiting HostState = "waiting"
	HostAsked   HostState = "asked"
	HostDone    HostState = "done"
	HostOffline HostState = "offline" // it was offline when its turn came, and is left out
	HostSkipped HostState = "skipped" // the release has no program for it
	HostFailed  HostState = "failed"
)

func (s HostState) final() bool { return s != HostWaiting && s != HostAsked }

// Upgrade brings one release to some hosts.
type Upgrade struct {
	ID       int64
	Version  string
	Stages   []int // percent of the hosts, rising to 100
	State    State
	Reason   string // why it was stopped
	Created  time.Time
	Changed  time.Time
	By       string // the person that created it
	Approved string // the person that approved it; "": none yet, or none is needed
	Hosts    []Host // in the order in which they are asked
}

// Host is one host of an upgrade.
type Host struct {
	Agent  gozzard.AgentID
	Stage  int // counted from 0
	State  HostState
	Reason string
	Asked  time.Time
}

// HostView is what the server knows of a host now.
type HostView struct {
	Online   bool
	Version  string
	Platform string
	Report   *gozzard.UpdateReport // its newest answer in this upgrade; nil: none
}

const maxReason = 300

// checkStages checks that stages are rising percentages that end with 100.
func checkStages(stages []int) error {
	if len(stages) == 0 || len(stages) > 20 || stages[len(stages)-1] != 100 || stages[0] < 1 ||
		!slices.IsSorted(stages) {
		return gozzard.Errorf(gozzard.ErrInvalid,
			"stages must be 1 to 20 rising percentages, the last of them 100, such as 1,10,100")
	}
	return nil
}

// assign distributes hosts over stages. The order is different for each release, so that the first hosts are not always
// the same.
func assign(version string, stages []int, agents []gozzard.AgentID) []Host {
	type place struct {
		agent gozzard.AgentID
		key   [sha256.Size]byte
	}
	places := make([]place, 0, len(agents))
	for _, a := range agents {
		places = append(places, place{a, sha256.Sum256([]byte(version + "\n" + string(a)))})
	}

	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(slices.Compare(a.key[:], b.key[:]), cmp.Compare(a.agent, b.agent))
	})

	hosts := make([]Host, 0, len(places))
	stage := 0
	for i, p := range places {
		for i >= (len(places)*stages[stage]+99)/100 { // rounded up: 1 % of one host is one host
			stage++
		}
		hosts = append(hosts, Host{Agent: p.agent, Stage: stage, State: HostWaiting})
	}

	return hosts
}

// rules are the limits of an upgrade.
type rules struct {
	window   int // hosts that are asked at the same time
	patience time.Duration
	platform func(string) bool // reports whether the release has a program for it
}

// advance moves a running upgrade forward. It returns the hosts that changed and those that must get the order now. The
// caller stores the changes before it sends the orders.
func (r *Upgrade) advance(
	now time.Time, view func(gozzard.AgentID) HostView, k rules,
) (changed []int, order []gozzard.AgentID) {
	if r.State != StateRunning {
		return nil, nil
	}

	// Check the hosts that were asked.
	stage, asked := r.stage(), 0
	for i := range r.Hosts {
		h := &r.Hosts[i]
		if h.Stage != stage || h.State != HostAsked {
			continue
		}
		if h.check(now, view(h.Agent), r.Version, k.patience) {
			changed = append(changed, i)
			continue
		}
		asked++
		order = append(order, h.Agent)
	}

	if r.stopFailed() {
		return changed, nil
	}

	// Ask further hosts of the stage.
	for i := range r.Hosts {
		h := &r.Hosts[i]
		if h.Stage != stage || h.State != HostWaiting || asked >= k.window {
			continue
		}
		if h.start(now, view(h.Agent), r.Version, k.platform); h.State == HostAsked {
			asked++
			order = append(order, h.Agent)
		}
		changed = append(changed, i)
	}

	// Finish when all hosts are final.
	if !slices.ContainsFunc(r.Hosts, func(h Host) bool { return !h.State.final() }) {
		r.State = StateDone
	}

	return changed, order
}

// stage is the first stage with a host that is not final.
func (r *Upgrade) stage() int {
	first := len(r.Stages)
	for i := range r.Hosts {
		if !r.Hosts[i].State.final() {
			first = min(first, r.Hosts[i].Stage)
		}
	}
	return first
}

// stopFailed stops the upgrade if a host has failed.
func (r *Upgrade) stopFailed() bool {
	i := slices.IndexFunc(r.Hosts, func(h Host) bool { return h.State == HostFailed })
	if i < 0 {
		return false
	}
	r.State, r.Reason = StateStopped, fmt.Sprintf("host %s: %s", r.Hosts[i].Agent, r.Hosts[i].Reason)
	return true
}

// check decides about a host that was asked. A host that disconnects during its upgrade and does not come back in time
// has failed.
func (h *Host) check(now time.Time, s HostView, version string, patience time.Duration) (decided bool) {
	if r := s.Report; r != nil {
		switch r.State {
		case gozzard.UpdateDone:
			if s.Version == version {
				h.State = HostDone
				return true
			}
		case gozzard.UpdateRefused, gozzard.UpdateRolledBack:
			h.State, h.Reason = HostFailed, clip(r.State.String()+": "+r.Reason)
			return true
		}
	}

	if now.Sub(h.Asked) > patience {
		h.State, h.Reason = HostFailed, "did not connect with the release within "+patience.String()
		return true
	}

	return false
}

// start asks a host, unless it has the release, is offline, or has no program in the release.
func (h *Host) start(now time.Time, s HostView, version string, has func(string) bool) {
	switch {
	case s.Version == version:
		h.State, h.Reason = HostDone, "had it already"
	case !s.Online:
		h.State = HostOffline
	case !has(s.Platform):
		h.State, h.Reason = HostSkipped, "the release has no program for "+clip(s.Platform)
	default:
		h.State, h.Asked = HostAsked, now
	}
}

// clip limits the length of a text from a host.
func clip(s string) string {
	return gozzard.Clip(s, maxReason)
}

// person identifies a person for the rule that two must agree. A user that an app only names, without a login, counts
// as the app.
func person(c gozzard.Caller) string {
	if c.Asserted || c.User == "" {
		return "app " + c.App
	}
	return "user " + c.User
}
