package main

import (
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/agentsock"
)

// The answers of an agent's socket with the forms of the server's API: times are client.Time. The socket itself keeps
// its form, because agent and command line may be of different versions.

// agentState is agentsock.Status for people and programs.
type agentState struct {
	agentsock.Status
	StartedAt   client.Time  `json:"started_at"`
	Certificate client.Time  `json:"certificate_until,omitzero"`
	Session     agentSession `json:"session"`
}

type agentSession struct {
	agentsock.Session
	Since   client.Time `json:"since"`
	HeardAt client.Time `json:"heard_at"`
}

func newAgentState(st agentsock.Status) agentState {
	return agentState{Status: st, StartedAt: client.UnixTime(st.StartedAt), Certificate: client.UnixTime(st.Certificate),
		Session: agentSession{Session: st.Session, Since: client.UnixTime(st.Session.Since),
			HeardAt: client.UnixTime(st.Session.HeardAt)}}
}

// agentProcess is agentsock.Process for people and programs.
type agentProcess struct {
	agentsock.Process
	Hosted  *bool       `json:"hosted,omitempty"` // never written: managed is the present word
	Managed bool        `json:"managed"`
	Since   client.Time `json:"since"`

	Exit    *client.Exit    `json:"exit,omitempty"`
	NextAt  client.Time     `json:"next_at,omitzero"`
	LastRun *client.LastRun `json:"last_run,omitempty"`
}

type agentProcesses struct {
	Count     int            `json:"count"`
	Processes []agentProcess `json:"processes"`
}

func newAgentProcesses(found agentsock.Processes) agentProcesses {
	out := agentProcesses{Count: found.Count, Processes: []agentProcess{}}
	for _, p := range found.Processes {
		out.Processes = append(out.Processes, agentProcess{Process: p, Managed: p.Hosted, Since: client.UnixTime(p.Since),
			Exit: client.ExitOf(p.Exit), NextAt: client.MilliTime(p.NextAt), LastRun: client.LastRunOf(p.LastRun)})
	}
	return out
}
