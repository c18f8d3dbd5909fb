package gozzard

// AgentMode is how far the rights of an agent reach on its host, as it found out when it started.
type AgentMode uint8

// The modes. The zero value is that of an agent which does not say.
const (
	ModeUnknown AgentMode = iota
	ModeRoot              // root with its powers
	ModeCap               // may act for other accounts and end their processes, and has no other power of root
	ModeUser              // acts for its own account only
)

var modeNames = [...]string{"", "root", "cap", "user"}

func (m AgentMode) String() string {
	if int(m) >= len(modeNames) {
		return ""
	}
	return modeNames[m]
}

// ParseAgentMode reads the word for a mode. One that is not known is ModeUnknown: it was said by an agent newer
// than this program.
func ParseAgentMode(word string) AgentMode {
	for m, name := range modeNames {
		if name == word {
			return AgentMode(m)
		}
	}
	return ModeUnknown
}
