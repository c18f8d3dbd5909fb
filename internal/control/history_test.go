package control_test

import (
	"math"
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
)

func TestHistoryIsAskedFromItsHost(t *testing.T) {
	r := newRig(t)
	r.histories = true
	r.hello(me, 1, journalA)
	r.hello(other, 1, journalA)
	type answer struct {
		history gozzard.History
		err     error
	}

	ask := func() chan answer {
		r.forget()
		got := make(chan answer, 1)
		go func() {
			h, err := r.plane.History(t.Context(), caller, gozzard.Target{Agent: me},
				gozzard.HistoryQuery{Key: key, From: 5, To: 10, Points: 1 << 30})
			got <- answer{h, err}
		}()
		r.until("not asked", func() bool { return len(r.commands(me, gozzard.CommandHistory)) > 0 })
		return got
	}
	reply := func(agent gozzard.AgentID, h gozzard.History) {
		h.ID = r.commands(me, gozzard.CommandHistory)[0].History.ID
		r.plane.Receive(agent, 0, &gozzard.Report{Version: 1, Kind: gozzard.ReportHistory, Session: 1, History: &h})
	}
	points := []gozzard.HistoryPoint{{CPU: 7}}

	// The agent that was asked answers, once, and with a history.
	got := ask()
	q := r.commands(me, gozzard.CommandHistory)[0].History
	if q.Points != gozzard.MaxHistoryPoints || q.From != 5 || q.To != 10 || q.Key != key {
		t.Errorf("asked %+v", q)
	}
	r.plane.Receive(me, 0, &gozzard.Report{Version: 1, Kind: gozzard.ReportHistory, Session: 1})
	r.plane.Receive(me, 0, &gozzard.Report{Version: 1, Kind: gozzard.ReportLogs, Session: 1,
		Logs: &gozzard.LogChunk{ID: q.ID}})
	reply(other, gozzard.History{Step: 99, Points: points})
	reply(me, gozzard.History{Step: 10, Points: points})
	reply(me, gozzard.History{Step: 20, Points: points})
	if a := <-got; a.err != nil || a.history.Step != 10 || len(a.history.Points) != 1 {
		t.Errorf("%+v", a)
	}

	// Its error is an error, and so is an answer that makes no sense.
	for _, c := range []struct {
		say  gozzard.History
		kind gozzard.ErrorKind
		text string
	}{
		{gozzard.History{Error: "is not registered"}, gozzard.ErrNotFound, "is not registered"},
		{gozzard.History{Points: points}, gozzard.ErrUnavailable, "makes no sense"},
		{gozzard.History{Step: 10, Points: make([]gozzard.HistoryPoint, 1001)}, gozzard.ErrUnavailable, "makes no sense"},
		{gozzard.History{Step: 10, From: -1, Points: points}, gozzard.ErrUnavailable, "makes no sense"},
		{gozzard.History{Step: 10, From: math.MaxInt64, Points: points}, gozzard.ErrUnavailable, "makes no sense"},
		{gozzard.History{Step: math.MaxInt64 / 2, From: 5, Points: points}, gozzard.ErrUnavailable, "makes no sense"},
	} {
		got = ask()
		reply(me, c.say)
		if a := <-got; gozzard.KindOf(a.err) != c.kind || !strings.Contains(a.err.Error(), c.text) {
			t.Errorf("%+v", a)
		}
	}
}

// TestHistoryOfOlderAgents: an agent of an earlier version would reject the command, so it is not sent.
func TestHistoryOfOlderAgents(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	_, err := r.plane.History(t.Context(), caller, gozzard.Target{Agent: me}, gozzard.HistoryQuery{Key: key, To: 10})
	if gozzard.KindOf(err) != gozzard.ErrUnavailable || !strings.Contains(err.Error(), "keeps no history") {
		t.Error(err)
	}
	if n := len(r.commands(me, gozzard.CommandHistory)); n > 0 {
		t.Errorf("asked %d times", n)
	}
}

// TestTI3History: a process that the caller may not see has no history, and no request goes to its host.
func TestTI3History(t *testing.T) {
	r := newRig(t)
	r.histories = true
	r.hello(me, 1, journalA)
	viewer := gozzard.Caller{App: "app", User: "u",
		Rights: &gozzard.Rights{Grants: []gozzard.Grant{{Role: gozzard.RoleViewer, Namespaces: []string{"mine"},
			Hosts: gozzard.HostsAny}}}}
	_, err := r.plane.History(t.Context(), viewer, gozzard.Target{Agent: me}, gozzard.HistoryQuery{Key: key, To: 10})
	if gozzard.KindOf(err) != gozzard.ErrNotFound {
		t.Error(err)
	}
	if n := len(r.commands(me, gozzard.CommandHistory)); n > 0 {
		t.Errorf("asked %d times", n)
	}
}
