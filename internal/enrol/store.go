package enrol

import (
	"context"
	"net/netip"
	"time"

	"github.com/gozzard/gozzard"
)

// State is what the fleet thinks of an agent.
type State string

// The states. Only an active agent is let in. A removed one is kept by its name only, so that nobody becomes it again.
const (
	StatePending     State = "pending" // waits for somebody to approve it
	StateActive      State = "active"
	StateQuarantined State = "quarantined" // runs twice, or shows a certificate that was replaced
	StateRevoked     State = "revoked"
	StateRemoved     State = "removed"
	// was active when a backup was taken; whether it was put out since is not known, so it waits for an admin
	StateRestored State = "restored"
)

// AgentRecord is one member.
type AgentRecord struct {
	Agent    gozzard.AgentID
	Cloud    int
	IPs      []netip.Addr // as it enrolled
	Machine  string       // digest of the machine's own id; "" when it has none
	Hostname string
	State    State
	Reason   string // of the state, in words
	Serial   string // of the newest certificate
	Previous string // of the one that the newest was asked with: its answer may have been lost
	NotAfter time.Time
	Enrolled time.Time
	Changed  time.Time
	Token    string // id of the token that brought it in
	// Restored is when the backup was taken that this came from, until the agent is heard again; else zero.
	// Certificates of later are not in the record.
	Restored time.Time
}

// AuditEntry is who does something, for the audit.
type AuditEntry struct {
	At     time.Time
	Caller gozzard.Caller
	What   string // such as enrol:token
}

// Store keeps tokens and members. A call that returns is durable. Its audit row is in the same transaction; an Act
// without a word has none.
type Store interface {
	AddEnrolToken(ctx context.Context, t TokenRecord, act AuditEntry) error
	// EnrolTokens lists all, newest first.
	EnrolTokens(ctx context.Context) ([]TokenRecord, error)
	// RevokeEnrolToken makes a token worthless; ErrNotFound when there is none.
	RevokeEnrolToken(ctx context.Context, id string, act AuditEntry) error

	// Enrol reads a token and the agent, asks decide, and on its word counts one use and puts the agent, all in one
	// transaction. A token or agent that does not exist is given as a zero record. decide may be called again when
	// the transaction is repeated.
	Enrol(ctx context.Context, token string, agent gozzard.AgentID,
		decide func(TokenRecord, AgentRecord) (AgentRecord, error), act AuditEntry) (AgentRecord, error)

	// ChangeMember reads an agent, asks change and puts what it says, in one transaction; ErrNotFound when there is
	// none.
	ChangeMember(ctx context.Context, agent gozzard.AgentID, change func(AgentRecord) (AgentRecord, error),
		act AuditEntry) (AgentRecord, error)

	// Members lists all members, by name.
	Members(ctx context.Context) ([]AgentRecord, error)
}
