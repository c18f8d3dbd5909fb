package host

import "github.com/gozzard/gozzard"

// Privileges is whom an agent runs as, and how far that reaches.
type Privileges struct {
	Mode    gozzard.AgentMode
	Account string
	UID     uint32 // 0 where accounts have no numbers
}
