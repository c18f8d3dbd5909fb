package agentd

import (
	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/host"
)

// LogFile is the file for what a process prints, in the state folder of its agent.
func LogFile(state string, key gozzard.Key) string { return host.LogFile(state, key) }
