package host

import "github.com/gozzard/gozzard"

// Standing is whom an agent runs as, and how far that reaches.
type Standing struct {
	Mode    gozzard.AgentMode
	Account string
	UID     uint32 // 0 where accounts have no numbers
}
