package enrol

import (
	"context"
	"net/netip"
	"time"

	"github.com/gozzard/gozzard"
)

// State is the state of an agent's membership.
type State string

// The states. Only an active agent may connect.
const (
	StatePending     State = "pending" // waits for approval
	StateActive      State = "active"
	StateQuarantined State = "quarantined" // two copies run, or the agent showed a certificate that was replaced
	StateRevoked     State = "revoked"     // can be enrolled again
	StateRemoved     State = "removed"     // only its name is stored, so that no host can have it again

	// StateRestored: the agent was active when a backup was made, and the record comes from that backup. Whether the
	// agent was revoked since is not known, so it waits for an admin.
	StateRestored State = "restored"
)

// AgentRecord is the stored state of one member.
type AgentRecord struct {
	Agent    gozzard.AgentID
	Cloud    int
	IPs      []netip.Addr // as it enrolled, or as an admin changed them; 1 to 16
	Machine  string       // digest of the machine's id; "" if it has none
	Hostname string
	State    State
	Reason   string // why it has this state, for people
	Serial   string // of the newest certificate
	Previous string // of the certificate before: still valid, because the answer with the newest may have been lost
	NotAfter time.Time
	Enrolled time.Time
	Changed  time.Time
	Token    string // id of the token that enrolled it

	// Restored is when the backup was made that this record comes from, until the agent connects again; otherwise
	// zero. Certificates that were issued later are not in the record.
	Restored time.Time
}

// AuditEntry is one row of the audit: what a caller did.
type AuditEntry struct {
	At     time.Time
	Caller gozzard.Caller
	What   string // such as enrol:token
}

// Store stores tokens and members. A change is durable when its call returns. The audit entry is written in the same
// transaction; an entry with an empty What is not written.
type Store interface {
	AddEnrolToken(ctx context.Context, t TokenRecord, act AuditEntry) error

	// EnrolTokens lists all tokens, newest first.
	EnrolTokens(ctx context.Context) ([]TokenRecord, error)

	// RevokeEnrolToken revokes a token; ErrNotFound if there is no such token.
	RevokeEnrolToken(ctx context.Context, id string, act AuditEntry) error

	// Enrol reads a token and an agent and calls decide. If decide returns no error, Enrol counts one use of the token
	// and stores the agent. All of it is one transaction. decide gets a zero record for a token or agent that does not
	// exist. It is called again if the transaction is repeated.
	Enrol(ctx context.Context, token string, agent gozzard.AgentID,
		decide func(TokenRecord, AgentRecord) (AgentRecord, error), act AuditEntry) (AgentRecord, error)

	// ChangeMember reads an agent, calls change and stores the result, in one transaction. It returns ErrNotFound if
	// there is no such agent.
	ChangeMember(ctx context.Context, agent gozzard.AgentID, change func(AgentRecord) (AgentRecord, error),
		act AuditEntry) (AgentRecord, error)

	// Members lists all members, by name.
	Members(ctx context.Context) ([]AgentRecord, error)

	// ShownAuthorities are the pins of the authorities whose certificates agents showed last.
	ShownAuthorities(ctx context.Context) (map[gozzard.AgentID]string, error)

	// ShowAuthorities stores such pins.
	ShowAuthorities(ctx context.Context, shown map[gozzard.AgentID]string) error

	// NoteAct writes an audit row for what changes nothing in the record.
	NoteAct(ctx context.Context, act AuditEntry) error
}
