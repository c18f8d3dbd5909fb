package upgrade

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/gozzard/gozzard"
)

// State is how far a roll is.
type State string

// The states of a roll. The last two are final.
const (
	StateWaiting State = "waiting" // for somebody else to approve it
	StateRunning State = "running"
	StateDone    State = "done"
	StateStopped State = "stopped" // by a host that failed, or by somebody
)

// Open reports whether anything will still happen.
func (s State) Open() bool { return s == StateWaiting || s == StateRunning }

// HostState is how far one host of a roll is.
type HostState string

// The states of a host. All but the first two are final.
const (
	HostWaiting HostState = "waiting"
	HostAsked   HostState = "asked"
	HostDone    HostState = "done"
	HostOffline HostState = "offline" // when its turn came: it is left out
	HostSkipped HostState = "skipped" // the release has nothing for it
	HostFailed  HostState = "failed"
)

func (s HostState) final() bool { return s != HostWaiting && s != HostAsked }

// Upgrade is one release on its way to some hosts.
type Upgrade struct {
	ID       int64
	Version  string
	Stages   []int // percent of the hosts, rising to 100
	State    State
	Reason   string // StateStopped
	Created  time.Time
	Changed  time.Time
	By       string // who created it
	Approved string // who approved it; "" when nobody had to or has
	Hosts    []Host // in the order of their turns
}

// Host is one host of a roll.
type Host struct {
	Agent  gozzard.AgentID
	Stage  int // counted from 0
	State  HostState
	Reason string
	Asked  time.Time
}

// HostView is what is known of a host now.
type HostView struct {
	Online   bool
	Version  string
	Platform string
	Report   *gozzard.UpdateReport // its newest answer in this roll; nil: none
}

const maxReason = 300

// checkStages: percents that rise and end with all.
func checkStages(stages []int) error {
	if len(stages) == 0 || len(stages) > 20 || stages[len(stages)-1] != 100 || stages[0] < 1 ||
		!slices.IsSorted(stages) {
		return gozzard.Errorf(gozzard.ErrInvalid,
			"stages are 1 to 20 rising percents of which the last is 100, such as 1,10,100")
	}
	return nil
}

// assign puts hosts into stages. Each release has another order: the same few hosts are not always the first.
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
		return cmp.Or(slices.Compare(a.key[:], b.key[:]),
			cmp.Compare(a.agent, b.agent))
	})

	hosts := make([]Host, 0, len(places))
	stage := 0
	for i, p := range places {
		for i >= (len(places)*stages[stage]+99)/100 { // of one host even 1 % is one
			stage++
		}
		hosts = append(hosts, Host{Agent: p.agent, Stage: stage, State: HostWaiting})
	}

	return hosts
}

// rules bound a roll.
type rules struct {
	window   int // hosts asked at a time
	patience time.Duration
	platform func(string) bool // the release has a program for it
}

// advance moves a running roll on: it returns the hosts that changed and those that are to be told the order now.
// Who calls it makes the changes durable before anybody is told.
func (r *Upgrade) advance(now time.Time, see func(gozzard.AgentID) HostView, k rules) (changed []int,
	order []gozzard.AgentID) {
	if r.State != StateRunning {
		return nil, nil
	}

	stage, asked := r.stage(), 0
	for i := range r.Hosts {
		h := &r.Hosts[i]
		if h.Stage != stage || h.State != HostAsked {
			continue
		}
		if h.judge(now, see(h.Agent), r.Version, k.patience) {
			changed = append(changed, i)
			continue
		}
		asked++
		order = append(order, h.Agent)
	}

	if r.stopFailed() {
		return changed, nil
	}

	for i := range r.Hosts {
		h := &r.Hosts[i]
		if h.Stage != stage || h.State != HostWaiting || asked >= k.window {
			continue
		}
		if h.begin(now, see(h.Agent), r.Version, k.platform); h.State == HostAsked {
			asked++
			order = append(order, h.Agent)
		}
		changed = append(changed, i)
	}

	if !slices.ContainsFunc(r.Hosts, func(h Host) bool { return !h.State.final() }) {
		r.State = StateDone
	}

	return changed, order
}

// stage is the first with a host that is not through.
func (r *Upgrade) stage() int {
	first := len(r.Stages)
	for i := range r.Hosts {
		if !r.Hosts[i].State.final() {
			first = min(first, r.Hosts[i].Stage)
		}
	}
	return first
}

func (r *Upgrade) stopFailed() bool {
	i := slices.IndexFunc(r.Hosts, func(h Host) bool { return h.State == HostFailed })
	if i < 0 {
		return false
	}
	r.State, r.Reason = StateStopped, fmt.Sprintf("host %s: %s", r.Hosts[i].Agent, r.Hosts[i].Reason)
	return true
}

// judge decides about a host that was asked. A host that goes away while it is at it has failed: it would come back
// at once.
func (h *Host) judge(now time.Time, s HostView, version string, patience time.Duration) (decided bool) {
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
		h.State, h.Reason = HostFailed, "did not come with the release within "+patience.String()
		return true
	}

	return false
}

// begin gives a host its turn.
func (h *Host) begin(now time.Time, s HostView, version string, has func(string) bool) {
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

// clip bounds what a host said.
func clip(s string) string {
	return gozzard.Clip(s, maxReason)
}

// person tells people apart for the rule that two must agree. A user whom an app only names is no more than the app.
func person(c gozzard.Caller) string {
	if c.Asserted || c.User == "" {
		return "app " + c.App
	}
	return "user " + c.User
}
