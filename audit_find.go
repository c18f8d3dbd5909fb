package gozzard

import (
	"slices"
	"strings"
	"time"
)

// AuditFilter chooses rows of the audit. Empty fields choose all.
type AuditFilter struct {
	Host    string // an agent id, a host name, an address, or cloud:address
	Account string // an OS account; root also finds definitions without an account
	App     string // of the caller, or of credentials that were wrong
	User    string // as App
	Action  string // a word of the act, such as stop, login:failed or enrol
	Since   time.Time
	Until   time.Time

	After  int64 // rows after this number, oldest first
	Before int64 // with Newest: rows before this number; 0 means from the newest on
	Newest bool  // newest first
}

// AuditFound is a row that a filter chose.
type AuditFound struct {
	AuditLink
	Result    string // the outcome in the row that refers to it; "" when there is none yet
	ResultRow int64
}

// Match reports whether a row has everything that a filter asks for, except the host.
func (f *AuditFilter) Match(r *AuditRow) bool {
	return (f.App == "" || r.Caller.App == f.App || r.failedAs("app "+f.App)) &&
		(f.User == "" || r.Caller.User == f.User || r.failedAs("user "+f.User)) &&
		(f.Account == "" || r.hasAccount(f.Account)) && (f.Action == "" || r.hasAction(f.Action)) &&
		(f.Since.IsZero() || !r.At.Before(f.Since)) && (f.Until.IsZero() || r.At.Before(f.Until))
}

// Bounded reports whether a filter asks for less than everything.
func (f *AuditFilter) Bounded() bool {
	return f.Host+f.Account+f.App+f.User+f.Action != "" || !f.Since.IsZero() || !f.Until.IsZero()
}

// failedAs reports whether a row is about wrong credentials of this app or user. Its caller is not known, so the row has
// the name in its outcome, and only if there is an app or user of that name.
func (r *AuditRow) failedAs(holder string) bool {
	return r.Act == "login:failed" && r.Caller.App == "" && r.Caller.User == "" && r.Outcome == holder
}

func (r *AuditRow) hasAccount(name string) bool {
	list := strings.Split(r.Accounts, ",")
	return slices.Contains(list, name) || name == "root" && slices.Contains(list, AgentAccount)
}

// hasAction reports whether an act is the action, begins with it, or has it among its words. Older rows have older words
// for some operations: both words find both.
func (r *AuditRow) hasAction(action string) bool {
	if a, err := ParseAction(action); err == nil && a.Stored() != a.String() && r.operates() {
		return r.hasWord(a.String()) || r.hasWord(a.Stored())
	}
	return r.hasWord(action)
}

// operates reports whether an act is an operation on processes.
func (r *AuditRow) operates() bool {
	kind, _, _ := strings.Cut(r.Act, ":")
	return kind == "operate" || kind == "job" || kind == "retry"
}

func (r *AuditRow) hasWord(action string) bool {
	words := strings.FieldsFunc(r.Act, func(c rune) bool { return c == ':' || c == ',' || c == ' ' })
	return r.Act == action || strings.HasPrefix(r.Act, action+":") || strings.HasPrefix(r.Act, action+" ") ||
		slices.Contains(words, action)
}
