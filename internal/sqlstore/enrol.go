package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/record"
)

var _ enrol.Store = (*Store)(nil)

const (
	enrolTokenColumns = "id, digest, created, expires, uses, used, cloud, nets, approve, agent_id, revoked, created_by"
	memberColumns     = `agent_id, cloud, ips, machine, hostname, state, reason, serial, previous, not_after, enrolled,
		changed, token, restored`

	upsertMember = `INSERT INTO enrol_agents (` + memberColumns + `)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
		ON CONFLICT (agent_id) DO UPDATE
		SET cloud = excluded.cloud, ips = excluded.ips, machine = excluded.machine, hostname = excluded.hostname,
		state = excluded.state, reason = excluded.reason, serial = excluded.serial, previous = excluded.previous,
		not_after = excluded.not_after,
		enrolled = excluded.enrolled, changed = excluded.changed, token = excluded.token, restored = excluded.restored`
)

// enrolRow is the audit row of an entry.
func enrolRow(ctx context.Context, audit enrol.AuditEntry) gozzard.AuditRow {
	return withOrigin(ctx, gozzard.AuditRow{At: audit.At, Caller: audit.Caller, Act: audit.What, Targets: 1})
}

// auditEnrolment writes an audit row about an agent, or about none, unless the row has no act.
func auditEnrolment(ctx context.Context, c *conn, row gozzard.AuditRow, of *enrol.AgentRecord) error {
	if row.Act == "" {
		return nil
	}
	if of != nil {
		addrs := make([]gozzard.HostAddr, 0, len(of.IPs))
		for _, ip := range of.IPs {
			addrs = append(addrs, gozzard.HostAddr{Cloud: of.Cloud, IP: ip})
		}
		row.SetHost(of.Agent, addrs...)
		row.Outcome = text(string(of.State))
	}
	return addAudit(ctx, c, row)
}

// AddEnrolToken implements enrol.Store.
func (s *Store) AddEnrolToken(ctx context.Context, t enrol.TokenRecord, audit enrol.AuditEntry) (err error) {
	defer s.timed("add_token", &err)()
	nets, err := json.Marshal(t.Nets)
	if err != nil {
		return fmt.Errorf("cannot encode the networks of a token: %w", err)
	}

	row := enrolRow(ctx, audit)
	return s.w.submit(ctx, &job{op: "a token", rows: 1, grows: true, run: func(ctx context.Context, c *conn) error {
		if err := auditEnrolment(ctx, c, row, nil); err != nil {
			return err
		}
		_, err := c.change(ctx, `INSERT INTO enrol_tokens (`+enrolTokenColumns+
			`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
			t.ID, t.Digest[:], millis(t.Created), millis(t.Expires), t.Uses, t.Used, t.Cloud, string(nets), t.Approve,
			string(t.Agent), t.Revoked, text(t.CreatedBy))
		return err
	}})
}

func scanEnrolToken(scan func(...any) error) (t enrol.TokenRecord, err error) {
	var digest []byte
	var nets string
	err = scan(&t.ID, &digest, (*stamp)(&t.Created), (*stamp)(&t.Expires), &t.Uses, &t.Used, &t.Cloud, &nets,
		&t.Approve, &t.Agent, &t.Revoked, &t.CreatedBy)
	if err != nil {
		return t, err
	}
	if len(digest) != len(t.Digest) {
		return t, fmt.Errorf("token %s has a digest of %d bytes", t.ID, len(digest))
	}

	copy(t.Digest[:], digest)

	if err := json.Unmarshal([]byte(nets), &t.Nets); err != nil {
		return t, fmt.Errorf("networks of token %s: %w", t.ID, err)
	}

	return t, nil
}

// EnrolTokens implements enrol.Store.
func (s *Store) EnrolTokens(ctx context.Context) (list []enrol.TokenRecord, err error) {
	defer s.timed("tokens", &err)()
	rows, err := s.read.db.QueryContext(ctx, `SELECT `+enrolTokenColumns+` FROM enrol_tokens ORDER BY created DESC, id`)
	err = scanAll(rows, err, func(r *sql.Rows) error {
		t, err := scanEnrolToken(r.Scan)
		list = append(list, t)
		return err
	})
	return list, s.readError("tokens", err)
}

// RevokeEnrolToken implements enrol.Store.
func (s *Store) RevokeEnrolToken(ctx context.Context, id string, audit enrol.AuditEntry) (err error) {
	defer s.timed("revoke_token", &err)()
	row := enrolRow(ctx, audit)
	return s.w.submit(ctx, &job{op: "a token", rows: 1, run: func(ctx context.Context, c *conn) error {
		n, err := c.change(ctx, `UPDATE enrol_tokens SET revoked = $2 WHERE id = $1`, text(id), true)
		if err != nil {
			return err
		}
		if n == 0 {
			return gozzard.Errorf(gozzard.ErrNotFound, "there is no such token")
		}
		return auditEnrolment(ctx, c, row, nil)
	}})
}

func scanMember(scan func(...any) error) (a enrol.AgentRecord, err error) {
	var ips string
	err = scan(&a.Agent, &a.Cloud, &ips, &a.Machine, &a.Hostname, &a.State, &a.Reason, &a.Serial, &a.Previous,
		(*stamp)(&a.NotAfter), (*stamp)(&a.Enrolled), (*stamp)(&a.Changed), &a.Token, (*stamp)(&a.Restored))
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal([]byte(ips), &a.IPs); err != nil {
		return a, fmt.Errorf("addresses of agent %s: %w", a.Agent, err)
	}
	return a, nil
}

// member reads an enrolled agent and locks its row. It returns a zero value when there is none.
func member(ctx context.Context, c *conn, agent gozzard.AgentID) (a enrol.AgentRecord, err error) {
	err = c.each(ctx, `SELECT `+memberColumns+` FROM enrol_agents WHERE agent_id = $1`+c.d.forUpdate,
		[]any{text(string(agent))}, func(r *sql.Rows) (err error) {
			a, err = scanMember(r.Scan)
			return err
		})
	return a, err
}

func putMember(ctx context.Context, c *conn, a *enrol.AgentRecord) error {
	ips, err := json.Marshal(a.IPs)
	if err != nil {
		return fmt.Errorf("cannot encode the addresses of agent %s: %w", a.Agent, err)
	}
	_, err = c.change(ctx, upsertMember, text(string(a.Agent)), a.Cloud, string(ips),
		text(a.Machine), text(a.Hostname), string(a.State), text(a.Reason), a.Serial, a.Previous,
		millis(a.NotAfter), millis(a.Enrolled), millis(a.Changed), a.Token, millis(a.Restored))
	return err
}

// Enrol implements enrol.Store.
func (s *Store) Enrol(ctx context.Context, token string, agent gozzard.AgentID,
	decide func(enrol.TokenRecord, enrol.AgentRecord) (enrol.AgentRecord, error),
	audit enrol.AuditEntry) (out enrol.AgentRecord, err error) {
	defer s.timed("enrol", &err)()
	row := enrolRow(ctx, audit)

	err = s.w.submit(ctx, &job{op: "an enrolment", rows: 2, grows: true, run: func(ctx context.Context, c *conn) error {
		// Read and lock the token and the agent.
		var t enrol.TokenRecord
		err := c.each(ctx, `SELECT `+enrolTokenColumns+` FROM enrol_tokens WHERE id = $1`+c.d.forUpdate,
			[]any{text(token)}, func(r *sql.Rows) (err error) {
				t, err = scanEnrolToken(r.Scan)
				return err
			})
		if err != nil {
			return err
		}

		known, err := member(ctx, c, agent)
		if err != nil {
			return err
		}

		// Let the caller decide, then record the decision.
		if out, err = decide(t, known); err != nil {
			return err
		}
		if _, err := c.change(ctx, `UPDATE enrol_tokens SET used = used + 1 WHERE id = $1`, t.ID); err != nil {
			return err
		}
		if err := putMember(ctx, c, &out); err != nil {
			return err
		}
		if err := c.bump(ctx, record.KindEnrol); err != nil {
			return err
		}

		return auditEnrolment(ctx, c, row, &out)
	}})

	return out, err
}

// ChangeMember implements enrol.Store.
func (s *Store) ChangeMember(ctx context.Context, agent gozzard.AgentID,
	change func(enrol.AgentRecord) (enrol.AgentRecord, error),
	audit enrol.AuditEntry) (out enrol.AgentRecord, err error) {
	defer s.timed("change_agent", &err)()
	row := enrolRow(ctx, audit)

	err = s.w.submit(ctx, &job{op: "an agent", rows: 1, run: func(ctx context.Context, c *conn) error {
		known, err := member(ctx, c, agent)
		if err != nil {
			return err
		}
		if known.Agent == "" {
			return gozzard.Errorf(gozzard.ErrNotFound, "no agent %s is enrolled", agent)
		}
		if out, err = change(known); err != nil {
			return err
		}
		if err := putMember(ctx, c, &out); err != nil {
			return err
		}
		if err := c.bump(ctx, record.KindEnrol); err != nil {
			return err
		}

		return auditEnrolment(ctx, c, row, &out)
	}})

	return out, err
}

// Members implements enrol.Store.
func (s *Store) Members(ctx context.Context) (list []enrol.AgentRecord, err error) {
	defer s.timed("agents", &err)()
	rows, err := s.read.db.QueryContext(ctx, `SELECT `+memberColumns+` FROM enrol_agents ORDER BY agent_id`)
	err = scanAll(rows, err, func(r *sql.Rows) error {
		a, err := scanMember(r.Scan)
		list = append(list, a)
		return err
	})
	return list, s.readError("agents", err)
}
