package supervise

import (
	"strings"
	"unicode"

	"github.com/gozzard/gozzard"
)

const (
	maxLastLine   = 300     // bytes of a line of output in a status
	lastLineBytes = 4 << 10 // that are read to find it
)

// noteOutput remembers where the output of the next run begins.
func (a *actor) noteOutput() {
	a.printed = 0
	if c := a.s.host.ReadLog(gozzard.LogQuery{Key: a.key, Offset: -1, Lines: 1, Max: 1}); c.Error == "" {
		a.printed = c.Next
	}
	a.printedKnown = true
}

// lastLine is the last line that the newest run or its start command printed, "" if there is none or its begin is not
// known, as after a start of the agent.
func (a *actor) lastLine() string {
	if !a.printedKnown {
		return ""
	}
	c := a.s.host.ReadLog(gozzard.LogQuery{Key: a.key, Offset: -1, Lines: 5, Max: lastLineBytes})
	if c.Error != "" || c.Next <= a.printed {
		return ""
	}
	return lastLineOf(c.Data[min(max(0, a.printed-c.Offset), int64(len(c.Data))):])
}

// lastLineOf is the last line with text, safe to show: the process wrote it, so it may contain anything. A line that is
// too long keeps its end.
func lastLineOf(b []byte) string {
	text := strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || unicode.IsPrint(r) && r != unicode.ReplacementChar:
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return -1
	}, strings.ToValidUTF8(string(b), "")))

	line := strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
	if len(line) > maxLastLine {
		line = strings.ToValidUTF8(line[len(line)-maxLastLine:], "")
	}
	return line
}
