package gozzard

// AgentMode is what the agent may do on its host. The agent finds it out when it starts.
type AgentMode uint8

// The modes. An agent that does not report one has ModeUnknown.
const (
	ModeUnknown AgentMode = iota
	ModeRoot              // root with all its capabilities
	ModeCap               // may act for other accounts and end their processes, and has no other capability of root
	ModeUser              // acts for its own account only
)

var modeNames = [...]string{"", "root", "cap", "user"}

// String is the word for the mode, "" for ModeUnknown.
func (m AgentMode) String() string {
	if int(m) >= len(modeNames) {
		return ""
	}
	return modeNames[m]
}

// ParseAgentMode reads the word for a mode. An unknown word is ModeUnknown: the agent is newer than this program.
func ParseAgentMode(word string) AgentMode {
	for m, name := range modeNames {
		if name == word {
			return AgentMode(m)
		}
	}
	return ModeUnknown
}
