package host

import (
	"path/filepath"

	"github.com/gozzard/gozzard"
)

// LogFile is the file for what a process prints, in the state folder of its agent.
func LogFile(state string, key gozzard.Key) string {
	return filepath.Join(state, "logs", keyFolder(key), currentLog)
}
