package control

import "github.com/gozzard/gozzard"

// Dispatcher carries commands to agents. Nothing is promised about delivery: control repeats what matters until it
// is answered.
type Dispatcher interface {
	// Send hands a command to the fabric. It does not wait for the agent. An error says that the fabric would not
	// take it.
	Send(to gozzard.AgentID, cloud int, cmd *gozzard.Command) error
}
