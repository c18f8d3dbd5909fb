package api

import (
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/fleet"
)

// maxLabelRules bounds the rules about labels in one query: each is checked for every process that matches the rest.
const maxLabelRules = 64

// getProcesses lists the processes that match, in a stable order. With a business selection it lists processes of the
// business, also those that no agent has reported.
func (a *api) getProcesses(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	q, err := a.readQuery(r)
	if err != nil {
		return err
	}
	if s := a.readBusinessQuery(caller, q); s != nil {
		return a.getInstances(w, caller, q, s)
	}

	// Read the query.
	f := fleet.Filter{Namespaces: q.patterns("namespace"), Names: q.patterns("name"), Clouds: q.clouds(),
		Conditions: q.states(), Hosted: q.managed(), Labels: q.labels()}
	start, limit := q.page()
	agents, none := a.hostAgents(caller, q)
	f.Agents = agents
	if err := q.faults.Err(); err != nil {
		return err
	}

	// Find the processes.
	page := client.ProcessPage{Processes: []client.Process{}}
	if !none {
		count, rows := a.Plane.Find(caller, f, start, limit)
		for i := range rows {
			page.Processes = append(page.Processes, renderProcess(&rows[i]))
		}
		page.Count, page.Next = count, nextPage(start, len(rows), count)
	}

	say := said(r)
	for i := range page.Processes {
		sayProcess(say, &page.Processes[i])
	}
	return answer(w, http.StatusOK, page)
}

// nextPage is the start of the next page, 0 if this page is the last.
func nextPage(start, shown, count int) int {
	if next := start + shown; shown > 0 && next < count {
		return next
	}
	return 0
}

// clouds reads the numbers of cloud areas.
func (q *query) clouds() (list []int) {
	q.each("cloud", func(s string) string {
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 || n > math.MaxInt32 {
			return "must be the number of a cloud, is " + strconv.Quote(clip(s))
		}
		list = append(list, n)
		return ""
	})
	return list
}

// states reads the words for states.
func (q *query) states() (list []gozzard.Condition) {
	q.each("state", func(s string) string {
		c, ok := gozzard.ParseCondition(s)
		if !ok {
			return "must be one of " + strings.Join(client.States(), ", ") + ", is " + strconv.Quote(clip(s))
		}
		list = append(list, c)
		return ""
	})
	return list
}

// labels reads rules about labels.
func (q *query) labels() (list []gozzard.LabelRule) {
	if n := len(q.values["label"]); n > maxLabelRules {
		q.faults.Add("label", "given %d times, at most %d are allowed", n, maxLabelRules)
		return nil
	}
	q.each("label", func(s string) string {
		rule, err := gozzard.ParseLabelRule(s)
		if err != nil {
			return err.Error() + "; use key=value, key!=value, key or !key"
		}
		list = append(list, rule)
		return ""
	})
	return list
}

// managed is nil if the parameter is missing. Earlier versions called it hosted.
func (q *query) managed() *bool {
	name := "managed"
	if q.values.Has("hosted") {
		if q.values.Has(name) {
			q.faults.Add("hosted", "is another word for managed: give one of them")
		}
		name = "hosted"
	}
	if q.one(name) == "" {
		return nil
	}
	managed := q.flag(name)
	return &managed
}

func renderProcess(r *fleet.Row) client.Process {
	s := &r.Status
	p := client.Process{
		Host: hostRef(r.Agent, r.Addr), Namespace: s.Namespace, Name: s.Name,
		Labels: s.Labels, Wanted: s.Wanted.String(), Managed: s.Hosted, Stale: r.Stale,
		PID: s.PID, Version: s.Version, Message: s.Message, RegisteredAt: client.UnixTime(s.RegisteredAt),
		StartedAt: client.UnixTime(s.StartedAt), ReportedAt: client.UnixTime(s.ReportedAt),
		CPU: gozzard.Finite(s.CPU), Mem: gozzard.Finite(s.Mem), MemBytes: s.MemBytes, FD: s.FD,
		Disk: s.Disk, Net: s.Net, Kind: s.Kind.String(), Restarts: int(s.Restarts), NextAt: client.MilliTime(s.NextAt),
		Health: s.Health.String(), HealthMessage: s.HealthMessage, Exit: client.ExitOf(s.Exit), LastRun: client.LastRunOf(s.LastRun),
	}

	if p.State = r.Condition.String(); r.Condition == gozzard.ConditionUnknown && s.ReportedAt != 0 {
		p.LastState = lastState(s)
	}
	return p
}

// lastState is the state that the agent of a process reported last, "" if the agent could not say.
func lastState(s *gozzard.Status) string {
	if c := s.ConditionOf(); c != gozzard.ConditionUnknown {
		return c.String()
	}
	return ""
}

// hostRef is a host in the one form of answers.
func hostRef(agent gozzard.AgentID, addr gozzard.HostAddr) client.HostRef {
	return client.HostRef{Agent: agent, Cloud: addr.Cloud, IP: ipText(addr.IP)}
}

// ipText is "" for an address that is not known.
func ipText(ip netip.Addr) string {
	if !ip.IsValid() {
		return ""
	}
	return ip.String()
}
