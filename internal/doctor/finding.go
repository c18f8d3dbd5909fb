package doctor

// Level is how bad a finding is.
type Level string

// The levels.
const (
	OK   Level = "OK"
	Warn Level = "WARN" // it works, with less or with a risk
	Fail Level = "FAIL" // it does not work, or not reliably
)

// Finding is the result of one check.
type Finding struct {
	Level Level
	Check string
	Text  string
}
