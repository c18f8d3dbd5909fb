package control

import "github.com/gozzard/gozzard"

// Dispatcher carries commands to agents. It promises nothing: the server repeats what matters until it is answered.
type Dispatcher interface {
	// Send hands a command to the fabric. It does not wait for the agent. An error says that the fabric did not
	// take it.
	Send(to gozzard.AgentID, cloud int, cmd *gozzard.Command) error
}
