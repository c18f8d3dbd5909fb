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

	Commands []PeerCommand // for agents of the receiver

	Cancel    []PeerCancel    `json:",omitempty"` // callers cancel attempts on agents of the receiver
	Cancelled []PeerCancelled `json:",omitempty"` // answers to that

	Key *PeerKey `json:",omitempty"` // about the signing key; then there is nothing else in the message
}

// The messages between servers about a signing key, in the order in which two servers exchange them.
const (
	PeerKeyOffer = "offer" // the sender has the key, and its receivers should ask for it
	PeerKeyAsk   = "ask"   // the sender wants the key, sealed for Public
	PeerKeyGive  = "give"  // the key, sealed for the server that asked
	PeerKeyKept  = "kept"  // the sender has stored it, or says in Fault why not
)

// PeerKey is a message about a signing key. The secret part is in Sealed only.
type PeerKey struct {
	What   string
	Key    string // the public part
	Public []byte `json:",omitempty"` // X25519 of the sender
	Sealed []byte `json:",omitempty"`
	Fault  string `json:",omitempty"`
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

// PeerCommand is a command for an agent whose home is the receiver, which sends it.
type PeerCommand struct {
	Agent   AgentID
	Cloud   int
	Command *Command
}

// PeerCancel asks the home of agents to cancel those attempts of a task that it has not sent.
type PeerCancel struct {
	ID       OpID // of the request
	Task     TaskSeq
	Attempts []int32 // their indexes in the task
}

// PeerCancelled says that the record has the verdicts of all attempts of a request that were not sent.
type PeerCancelled struct {
	ID      OpID
	Missing []int32 `json:",omitempty"` // the sender does not deliver these
}

// Empty reports whether the news say nothing beyond that the server lives.
func (n *PeerNews) Empty() bool {
	return !n.Want && !n.Snapshot && n.Key == nil && len(n.Reports)+len(n.Silent)+len(n.Seeds)+len(n.Removed)+len(n.Tasks)+len(n.Wake)+
		len(n.Changed)+len(n.Commands)+len(n.Cancel)+len(n.Cancelled) == 0
}
