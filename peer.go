package gozzard

import "time"

// PeerNews is what one server of an installation tells another one, or all of them. It is soft: what matters is in the
// record, and a server that missed something asks for everything again.
type PeerNews struct {
	From string // id of the server
	Run  uint64 // random for each run of that server
	Seq  uint64 // counts the messages to all; 0 in one to a single server

	Want     bool // asks for everything: a message to all was missed
	Snapshot bool // part of the answer to Want
	Last     bool // the last part: hosts of this server that were in no part are not its hosts

	Reports []PeerReport // what agents of this server reported, and descriptions of hosts (HELLO)
	Silent  []PeerSilent // its agents that went silent
	Seeds   []PeerSeed   // processes that were registered
	Removed []ProcID     // processes that were removed

	Tasks   []TaskSeq // tasks that got verdicts
	Wake    []TaskSeq // tasks with attempts that wait for agents of the receiver
	Changed []string  // kinds of recorded facts that changed
}

// PeerReport is a report of an agent.
type PeerReport struct {
	Agent  AgentID
	Cloud  int
	Report *Report
}

// PeerSilent is an agent that went silent.
type PeerSilent struct {
	Agent   AgentID
	Session uint64
	Since   time.Time
}

// PeerSeed is a registered process that no host has reported yet.
type PeerSeed struct {
	Agent  AgentID
	Status Status
}

// Empty reports whether the news say nothing beyond that the server lives.
func (n *PeerNews) Empty() bool {
	return !n.Want && !n.Snapshot && len(n.Reports)+len(n.Silent)+len(n.Seeds)+len(n.Removed)+len(n.Tasks)+len(n.Wake)+
		len(n.Changed) == 0
}
