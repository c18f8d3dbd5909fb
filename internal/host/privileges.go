package host

import "github.com/gozzard/gozzard"

// Privileges are the account that an agent runs as, and what the account allows.
type Privileges struct {
	Mode    gozzard.AgentMode
	Account string
	UID     uint32 // 0 on systems where accounts have no numbers
}
