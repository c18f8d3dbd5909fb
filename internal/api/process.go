package api

import (
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
)

// The sizes of a page.
const (
	defaultPage = 100
	maxPage     = 1000
)

type processesBody struct {
	Count     int           `json:"count"` // that fit, not only on this page
	Processes []processBody `json:"processes"`
	Next      int           `json:"next,omitempty"` // where the next page starts; 0: this is the last
}

type processBody struct {
	Agent        gozzard.AgentID   `json:"agent"`
	Cloud        int               `json:"cloud"`
	IP           string            `json:"ip"`
	Namespace    string            `json:"namespace"`
	Name         string            `json:"name"`
	Labels       map[string]string `json:"labels,omitempty"`
	Wanted       string            `json:"wanted"`
	State        string            `json:"state"`
	Hosted       bool              `json:"hosted"`
	Stale        bool              `json:"stale"` // its host is silent: this is the last that was heard
	PID          int32             `json:"pid"`
	Version      string            `json:"version,omitempty"`
	Message      string            `json:"message,omitempty"`
	RegisteredAt int64             `json:"registered_at"`
	StartedAt    int64             `json:"started_at"`
	ReportedAt   int64             `json:"reported_at"`
	CPU          float32           `json:"cpu"`
	Mem          float32           `json:"mem"`
	FD           int32             `json:"fd"`
	Disk         int64             `json:"disk"`
	Net          int64             `json:"net"`
	Topology     *placeBody        `json:"topology,omitempty"` // where in its business it is, when that was asked
}

// getProcesses lists what fits the query, in a stable order. With biz, processes of a business are listed, also
// those that no agent has heard of.
func (a *api) getProcesses(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	q, err := readQuery(r, append([]string{"namespace", "name", "host", "cloud", "state", "hosted", "start", "limit"},
		scopeParams...)...)
	if err != nil {
		return err
	}
	if s := a.queryScope(caller, q); s != nil {
		return a.getScope(w, caller, q, s)
	}

	var f fleet.Filter

	pattern := func(list *[]string) func(string) string {
		return func(s string) string {
			*list = append(*list, s)
			return checkGlob(s)
		}
	}

	q.each("namespace", pattern(&f.Namespaces))
	q.each("name", pattern(&f.Names))
	q.each("cloud", numbers(&f.Clouds))
	f.States, f.Hosted = q.states(), q.hosted()
	start, limit := q.number("start", 0, 0, math.MaxInt32), q.number("limit", defaultPage, 1, maxPage)
	none := a.hostFilter(caller, q, &f)

	if err := q.faults.Err(); err != nil {
		return err
	}

	body := processesBody{Processes: []processBody{}}

	if !none {
		count, rows := a.Plane.Find(caller, f, start, limit)
		body.Count = count
		for i := range rows {
			body.Processes = append(body.Processes, renderProcess(&rows[i]))
		}
		body.turn(start, len(rows))
	}

	return answer(w, http.StatusOK, body)
}

// turn says where the next page starts.
func (b *processesBody) turn(start, shown int) {
	if next := start + shown; shown > 0 && next < b.Count {
		b.Next = next
	}
}

// numbers reads the numbers of clouds.
func numbers(list *[]int) func(string) string {
	return func(s string) string {
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 || n > math.MaxInt32 {
			return "must be the number of a cloud, is " + strconv.Quote(clip(s))
		}
		*list = append(*list, n)
		return ""
	}
}

func (q *query) states() (list []gozzard.RunState) {
	q.each("state", func(s string) string {
		state, fault := parseState(s)
		list = append(list, state)
		return fault
	})
	return list
}

// hosted is nil when it does not matter.
func (q *query) hosted() *bool {
	if q.one("hosted") == "" {
		return nil
	}
	hosted := q.flag("hosted")
	return &hosted
}

func parseState(s string) (gozzard.RunState, string) {
	var known []string
	for _, st := range []gozzard.RunState{gozzard.StateUnregistered, gozzard.StateRunning, gozzard.StateStopped} {
		if st.String() == s {
			return st, ""
		}
		known = append(known, st.String())
	}
	return 0, "must be one of " + strings.Join(known, ", ") + ", is " + strconv.Quote(clip(s))
}

func renderProcess(r *fleet.Row) processBody {
	s := &r.Status
	b := processBody{
		Agent: r.Agent, Cloud: r.Addr.Cloud, Namespace: s.Namespace, Name: s.Name, Labels: s.Labels,
		Wanted: s.Wanted.String(), State: s.State.String(),
		Hosted: s.Hosted, Stale: r.Stale, PID: s.PID, Version: s.Version, Message: s.Message,
		RegisteredAt: s.RegisteredAt, StartedAt: s.StartedAt,
		ReportedAt: s.ReportedAt, CPU: gozzard.Finite(s.CPU), Mem: gozzard.Finite(s.Mem), FD: s.FD, Disk: s.Disk, Net: s.Net,
	}
	if r.Addr.IP.IsValid() {
		b.IP = r.Addr.IP.String()
	}
	return b
}
