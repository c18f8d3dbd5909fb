package supervise

import (
	"log/slog"
	"time"

	"github.com/gozzard/gozzard"
)

// LimitCounts is the count of samples over limits, for tests of the decision alone.
type LimitCounts = limitCounts

// After counts one sample and returns what must be reported.
func (s limitCounts) After(u Usage, r gozzard.Resource) (next LimitCounts, text string, over, first, report bool) {
	next, b, report := s.after(u, r)
	return next, b.text, b.over, b.first, report
}

// Member is one process of a pool.
type Member struct {
	Used, Limit float64
	Hosted      bool
}

// Victim chooses among members.
func Victim(members []Member, weight int) int {
	ms := make([]member, len(members))
	for i, m := range members {
		ms[i] = member{used: m.Used, limit: m.Limit, hosted: m.Hosted}
	}
	return victim(ms, weight)
}

// MaxPullUps is how many start commands of pull-ups run at a time.
const MaxPullUps = maxPullUps

// FewLines is a log about one process.
func FewLines(log *slog.Logger) *slog.Logger { return slog.New(newFewLines(log.Handler())) }

// FrontAfter is how long a start command must run before it counts as the process.
func FrontAfter(p gozzard.Policy, command string) time.Duration { return frontAfter(p, command) }

// ClipText bounds a text of a status or an event.
func ClipText(s string) string { return clipText(s) }
